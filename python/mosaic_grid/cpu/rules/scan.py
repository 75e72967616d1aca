"""The SparseCore's operations along a vector: running reductions, running counts of duplicates, and sorting."""

from __future__ import annotations

from collections.abc import Callable

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.lowering import Lowering, Rule, UnsupportedError
from mosaic_grid.cpu.rules.attributes import flag, integer, keyword
from mosaic_grid.cpu.rules.combining import combination
from mosaic_grid.cpu.rules.floats import is_nan
from mosaic_grid.cpu.types import lowered, unsigned
from mosaic_grid.ir_types import Value


def running(value: Value, axis: int, neutral: Value, combine: Callable[[Value, Value], Value]) -> Value:
    """Element `i` combines all elements up to `i`, itself included, in log(size) steps."""
    shape = build.shape_of(value)
    distance = 1
    while distance < shape[axis]:
        low = [distance if k == axis else 0 for k in range(len(shape))]
        shifted = build.pad(value, low, [-count for count in low], neutral)
        value = combine(shifted, value)
        distance *= 2
    return value


def _scan(low: Lowering, op: ir.Operation) -> Value:
    """A running sum, maximum or minimum of the elements that the mask, if there is one, lets through.

    Those before the first of them are left as they are, as `plsc.cummax` says. Predicates are counted.
    """
    value, *masks = low.operands(op)
    element, result = build.element_of(value), lowered(op.results[0].type).element_type
    shape = build.shape_of(value)
    axis = integer(op, "dimension") if "dimension" in op.attributes else len(shape) - 1
    if element == build.i1_type():
        value, element = build.convert(value, result), result
    kind = combination(keyword(op, "kind"), element)
    wide = kind.enter(value)
    neutral = kind.start(build.element_of(wide))
    if not masks:
        return kind.leave(running(wide, axis, neutral, kind.combine), element)
    mask = build.broadcast(masks[0], shape, (axis,)) if build.shape_of(masks[0]) != shape else masks[0]
    kept = build.select(mask, wide, build.splat(neutral, shape))
    scanned = kind.leave(running(kept, axis, neutral, kind.combine), element)
    begun = running(mask, axis, build.constant(0, (), build.i1_type()), hlo.or_)
    return build.select(begun, scanned, value)


def _scan_count(low: Lowering, op: ir.Operation) -> list[Value]:
    """For each element the how-many-th of its value it is along the last dimension, and which is the last of its value.

    Elements that the mask excludes count as the first, are not counted, and are never the last.
    """
    mask, value = low.operands(op)
    shape = build.shape_of(value)
    size = shape[-1]
    rank = len(shape)
    square = (*shape, size)
    others, own = [*range(rank - 1), rank], [*range(rank)]  # where an element compares with all others of its row
    same = build.compare(build.broadcast(value, square, own), build.broadcast(value, square, others), "EQ")
    counted = hlo.and_(build.broadcast(mask, square, own), build.broadcast(mask, square, others))
    same = hlo.and_(same, counted)
    here, there = build.iota(square, rank - 1), build.iota(square, rank)
    before = hlo.and_(same, build.compare(there, here, "LT"))
    after = hlo.and_(same, build.compare(there, here, "GT"))
    earlier = build.reduce(build.convert(before, build.i32_type()), [rank], build.i32(0), hlo.add)
    no = build.constant(0, (), build.i1_type())
    last = hlo.and_(mask, hlo.not_(build.reduce(after, [rank], no, hlo.or_)))
    return [last, hlo.add(earlier, build.constant(1, shape, build.i32_type()))]


def _sort(low: Lowering, op: ir.Operation) -> list[Value]:
    """Sorts rows by key, stably both upwards and downwards; what the mask excludes goes to the end.

    Integer keys are unsigned. Floats are ordered as `lax.sort` does: zeros are equal, and NaN is the greatest.
    """
    keys, values, *masks = low.operands(op)
    shape = build.shape_of(keys)
    mask = masks[0] if masks else build.constant(1, shape, build.i1_type())
    outside = build.convert(hlo.not_(mask), build.i32_type())
    inputs = [outside, _sortable(keys), keys, values]
    op_ = hlo.SortOp([v.type for v in inputs], inputs, dimension=len(shape) - 1, is_stable=True)
    scalars = [build.tensor((), build.element_of(v)) for v in inputs for _ in range(2)]
    block = op_.regions[0].blocks.append(*scalars)
    with ir.InsertionPoint(block):
        first_outside, second_outside, first, second, *_ = block.arguments
        earlier = build.compare(first, second, "GT" if flag(op, "descending") else "LT")
        apart = build.compare(first_outside, second_outside, "LT")
        together = build.compare(first_outside, second_outside, "EQ")
        hlo.return_([hlo.or_(apart, hlo.and_(together, earlier))])
    sorted_outside, _, sorted_keys, sorted_values = op_.results
    valid = build.compare(sorted_outside, build.constant(0, shape, build.i32_type()), "EQ")
    return [valid, sorted_keys, sorted_values]


def _sortable(keys: Value) -> Value:
    """Numbers that are ordered as the keys: integers, unsigned for integers and signed for floats."""
    element, shape = build.element_of(keys), build.shape_of(keys)
    if not build.is_float(element):
        return build.bitcast(keys, unsigned(element))
    if element != ir.F32Type.get():
        raise UnsupportedError(f"keys of {element}")
    zero = build.constant(0, shape, element)
    bits = build.bitcast(build.select(build.compare(keys, zero, "EQ"), zero, keys), build.i32_type())
    greatest = build.constant(2**31 - 1, shape, build.i32_type())
    ordered = build.select(
        build.compare(bits, build.constant(0, shape, build.i32_type()), "LT"),
        hlo.xor(bits, greatest),
        bits,
    )
    return build.select(is_nan(keys), greatest, ordered)


RULES: dict[str, Rule] = {
    "tpu.scan": _scan,
    "tpu.scan_count": _scan_count,
    "tpu.sort": _sort,
}
