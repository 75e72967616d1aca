"""Bits as other types, and several narrow numbers in one wide: bit casts, packing and unpacking, packed masks."""

from __future__ import annotations

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.bits import packed_axis, repack, width_of
from mosaic_grid.cpu.lowering import Lowering, Rule, UnsupportedError
from mosaic_grid.cpu.rules.attributes import flag, integer, integers, keyword
from mosaic_grid.cpu.rules.shape import shape_of_result, stack_last
from mosaic_grid.cpu.types import lowered, unsigned
from mosaic_grid.ir_types import Value


def _bitcast(low: Lowering, op: ir.Operation) -> Value:
    """`vector.bitcast` packs along the last dimension; `tpu.bitcast` along the second last, which its types show."""
    value, result = low.value(op.operands[0]), lowered(op.results[0].type)
    before, after = build.shape_of(value), tuple(result.shape)
    if width_of(build.element_of(value)) != width_of(result.element_type) and packed_axis(before, after) is None:
        raise UnsupportedError(f"a bit cast from the shape {before} to {after}")
    return repack(value, result.element_type, after)


def _pack_elementwise(low: Lowering, op: ir.Operation) -> Value:
    """Each element of the result is made of one of each source, the first source's in the low bits.

    Integers lose their high bits; f32 is rounded to bf16, to nearest even.
    """
    target = ir.TypeAttr(op.attributes["target_type"]).value
    word = lowered(op.results[0].type).element_type
    parts = [_low_bits(source, target, word) for source in low.operands(op)]
    result = parts[0]
    for number, part in enumerate(parts[1:], start=1):
        result = hlo.or_(result, hlo.shift_left(part, _count(number * width_of(target), part)))
    return result


def _low_bits(source: Value, target: ir.Type, word: ir.Type) -> Value:
    """The bits of `source` as a `target`, in the low bits of words that are otherwise zero."""
    if build.is_float(target):
        bits = build.bitcast(build.convert(source, target), unsigned_of_width(width_of(target)))
        return build.bitcast(build.convert(bits, unsigned(word)), word)
    mask = build.constant(2 ** width_of(target) - 1, build.shape_of(source), unsigned(word))
    return hlo.and_(source, build.bitcast(mask, word))


def _unpack_elementwise(low: Lowering, op: ir.Operation) -> Value:
    """The numbers at a place in each word, the low bits being place 0; integers are sign-extended, bf16 becomes f32."""
    packed = low.value(op.operands[0])
    source = ir.TypeAttr(op.attributes["source_type"]).value
    result = lowered(op.results[0].type).element_type
    wide, narrow = width_of(build.element_of(packed)), width_of(source)
    above = wide - (integer(op, "index") + 1) * narrow
    top = hlo.shift_left(packed, _count(above, packed))
    down = _count(wide - narrow, packed)
    if not build.is_float(source):
        return build.convert(hlo.shift_right_arithmetic(top, down), result)
    bits = build.convert(hlo.shift_right_logical(top, down), ir.IntegerType.get_signless(narrow))
    return build.convert(build.bitcast(bits, source), result)


def _pack_subelements(low: Lowering, op: ir.Operation) -> Value:
    """Of two vectors of the SparseCore one of half as wide numbers: alternating, or one behind the other.

    Integers lose their high bits; floats are rounded to nearest even.
    """
    sources = low.operands(op)
    element = lowered(op.results[0].type).element_type
    if integers(op, "positions") != list(range(len(sources))) or len(build.shape_of(sources[0])) != 1:
        raise UnsupportedError("sources of more than one dimension, or places that stay empty")
    if build.is_float(element) != build.is_float(build.element_of(sources[0])):
        raise UnsupportedError("a conversion between floats and integers")
    parts = [build.convert(source, element) for source in sources]
    packed = stack_last(parts) if keyword(op, "pack_format") == "interleaved" else build.concatenate(parts, 0)
    return build.reshape(packed, shape_of_result(op))


def _unpack_subelements(low: Lowering, op: ir.Operation) -> Value:
    """The numbers at a place of each word, widened: the inverse of packing."""
    value, result = low.value(op.operands[0]), lowered(op.results[0].type)
    if len(result.shape) != 1:
        raise UnsupportedError("a result of more than one dimension")
    (size,) = result.shape
    index, element = integer(op, "index"), build.element_of(value)
    if build.is_float(element) != build.is_float(result.element_type):
        raise UnsupportedError("a conversion between floats and integers")
    packing = width_of(result.element_type) // width_of(element)
    if keyword(op, "pack_format") == "interleaved":
        part = build.slice_(build.reshape(value, (size, packing)), (0, index), (size, 1))
    else:
        part = build.slice_(build.reshape(value, (packing, size)), (index, 0), (1, size))
    part = build.reshape(part, (size,))
    if flag(op, "unsigned_integers"):
        part = build.bitcast(part, unsigned(element))
        return build.bitcast(build.convert(part, unsigned(result.element_type)), result.element_type)
    return build.convert(part, result.element_type)


def _mask_cast(low: Lowering, op: ir.Operation) -> Value:
    """A mask for rows of another packing: each word's predicate is repeated, or one stands for several equal ones."""
    value, after = low.value(op.operands[0]), shape_of_result(op)
    before = build.shape_of(value)
    if before[:2] != after[:2] or not {len(before), len(after)} <= {2, 3}:
        raise UnsupportedError(f"a mask of the shape {before} as one of {after}")
    old, new = (shape[2] if len(shape) == 3 else 1 for shape in (before, after))
    rows = before[:2]
    value = build.reshape(value, (*rows, old))
    if new < old:
        kept = build.slice_(value, (0, 0, 0), (*rows, new), (1, 1, old // new))
        return build.reshape(kept, after)
    repeated = build.broadcast(value, (*rows, old, new // old), (0, 1, 2))
    return build.reshape(repeated, after)


def unsigned_of_width(width: int) -> ir.Type:
    """The unsigned integers of a width."""
    return ir.IntegerType.get_unsigned(width)


def _count(bits: int, like: Value) -> Value:
    return build.constant(bits, build.shape_of(like), build.element_of(like))


RULES: dict[str, Rule] = {
    "vector.bitcast": _bitcast,
    "tpu.bitcast": _bitcast,
    "tpu.mask_cast": _mask_cast,
    "tpu.pack_elementwise": _pack_elementwise,
    "tpu.pack_subelements": _pack_subelements,
    "tpu.unpack_elementwise": _unpack_elementwise,
    "tpu.unpack_subelements": _unpack_subelements,
}
