"""Contractions: `tpu.matmul` and `vector.contract` become one `stablehlo.dot_general`.

XLA:CPU runs its fast matmul whatever the order of dimensions, so that nothing needs to be transposed but a result whose
dimensions are in another order than `dot_general` gives them.

The matrix unit multiplies exactly what it is given and adds up in f32, integers in i32. So does XLA: with bf16 operands
and a result of f32 it rounds no product, and where the CPU has instructions for it, it is faster than f32. Operands of
which one doesn't fit into bf16 are converted to f32.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.bits import width_of
from mosaic_grid.cpu.lowering import Lowering, Rule, UnsupportedError
from mosaic_grid.cpu.rules.attributes import flag, keyword, splat_of
from mosaic_grid.ir_types import Value

_LHS, _RHS = 0, 1


@dataclasses.dataclass(frozen=True)
class Contraction:
    """Which dimensions of the two operands are contracted, paired as a batch, or kept.

    `order` says where each dimension of the result comes from: an operand, 0 or 1, and its dimension.
    """

    contracting: tuple[tuple[int, ...], tuple[int, ...]]
    batch: tuple[tuple[int, ...], tuple[int, ...]]
    order: tuple[tuple[int, int], ...]

    @property
    def natural_order(self) -> list[tuple[int, int]]:
        """The order of `dot_general`: the batch, then what is kept of the left operand, then of the right."""
        batch = [(_LHS, axis) for axis in self.batch[_LHS]]
        kept = [(side, axis) for side, axis in self.order if axis not in self.batch[side]]
        return [*batch, *sorted(kept)]

    @property
    def permutation(self) -> list[int]:
        """Which dimension of the natural order each dimension of the result is."""
        natural = self.natural_order
        pairs = dict(zip(self.batch[_RHS], self.batch[_LHS], strict=True))
        return [
            natural.index((_LHS, pairs[axis]) if side == _RHS and axis in pairs else (side, axis))
            for side, axis in self.order
        ]


def contract(lhs: Value, rhs: Value, contraction: Contraction, result: ir.Type) -> Value:
    """The contraction of two operands of one element type, in the element type `result`."""
    numbers = hlo.DotDimensionNumbers.get(
        lhs_batching_dimensions=list(contraction.batch[_LHS]),
        rhs_batching_dimensions=list(contraction.batch[_RHS]),
        lhs_contracting_dimensions=list(contraction.contracting[_LHS]),
        rhs_contracting_dimensions=list(contraction.contracting[_RHS]),
    )
    shapes = build.shape_of(lhs), build.shape_of(rhs)
    shape = [shapes[side][axis] for side, axis in contraction.natural_order]
    product = hlo.dot_general(build.tensor(shape, result), lhs, rhs, numbers)
    return build.transpose(product, contraction.permutation)


def _matmul(low: Lowering, op: ir.Operation) -> Value:
    lhs, rhs, accumulator = op.operands
    left, right = low.value(lhs), low.value(rhs)
    if "dimension_numbers" in op.attributes:
        contraction = parse_dimension_numbers(str(op.attributes["dimension_numbers"]))
    else:
        contraction = of_matrices(left, right, transposed=flag(op, "transpose_rhs"))
    return _accumulated(low, left, right, contraction, accumulator, rounded=is_rounded(low, op))


def _contract(low: Lowering, op: ir.Operation) -> Value:
    """The sum of products over dimensions that stand in both operands' maps and not in the result's."""
    if keyword(op, "kind") != "add":
        raise UnsupportedError(f"the kind {keyword(op, 'kind')}")
    lhs, rhs, accumulator = op.operands
    maps = ir.ArrayAttr(op.attributes["indexing_maps"])
    left_map, right_map, result_map = (_positions(ir.AffineMapAttr(item)) for item in maps)
    common = [axis for axis in left_map if axis in right_map]
    batch = [axis for axis in common if axis in result_map]
    contracted = [axis for axis in common if axis not in result_map]
    if sorted(result_map) != sorted({*left_map, *right_map} - set(contracted)):
        raise UnsupportedError("a dimension that stands in one map only")
    contraction = Contraction(
        (_places(left_map, contracted), _places(right_map, contracted)),
        (_places(left_map, batch), _places(right_map, batch)),
        tuple((_LHS, left_map.index(a)) if a in left_map else (_RHS, right_map.index(a)) for a in result_map),
    )
    left, right = low.value(lhs), low.value(rhs)
    return _accumulated(low, left, right, contraction, accumulator, rounded=is_rounded(low, op))


def is_rounded(low: Lowering, op: ir.Operation) -> bool:
    """Whether f32 operands are rounded to bf16, as the matrix unit does: the options say, if the operation doesn't."""
    stated = "precision" in op.attributes
    return (keyword(op, "precision") if stated else low.options.precision) == "bf16"


def _accumulated(
    low: Lowering, left: Value, right: Value, contraction: Contraction, accumulator: Value, *, rounded: bool
) -> Value:
    """The contraction added to the accumulator, in the type of the accumulator."""
    start = low.value(accumulator)
    element = build.element_of(start)
    lhs, rhs = common_type(left, right, element, rounded=rounded)
    wide = ir.F32Type.get() if build.is_float(element) else element
    result = contract(lhs, rhs, contraction, wide)
    if splat_of(accumulator) != 0:
        result = hlo.add(build.convert(start, wide), result)
    return build.convert(result, element)


def common_type(left: Value, right: Value, result: ir.Type, *, rounded: bool) -> list[Value]:
    """The operands in the one type in which they are multiplied and added up to a `result`.

    Raises:
        UnsupportedError: no TPU has a matrix unit for such operands and such a result.
    """
    elements = [build.element_of(left), build.element_of(right)]
    if build.is_float(result):
        if not any(build.is_float(element) for element in elements):
            raise UnsupportedError("integers that are added up as floats")
        if ir.F64Type.get() in (*elements, result):
            raise UnsupportedError("f64")
        factors = [_factor(value, rounded=rounded) for value in (left, right)]
        same = build.element_of(factors[0]) == build.element_of(factors[1])
        return factors if same else [build.convert(value, ir.F32Type.get()) for value in factors]
    if any(build.is_float(element) for element in elements):
        raise UnsupportedError("floats that are added up as integers")
    if width_of(result) < 32:
        raise UnsupportedError(f"a sum in i{width_of(result)}")
    width = max(8, *(width_of(element) for element in elements))
    common = ir.IntegerType.get_signless(8) if width == 8 else result
    return [build.convert(value, common) for value in (left, right)]


def _factor(value: Value, *, rounded: bool) -> Value:
    """The numbers in bf16, which holds all of 8 bits or less and those that are to be rounded to it; others in f32."""
    element = build.element_of(value)
    fits = width_of(element) <= 8 or element == ir.BF16Type.get()
    narrow = fits or (rounded and element == ir.F32Type.get())
    return build.convert(value, ir.BF16Type.get() if narrow else ir.F32Type.get())


def parse_dimension_numbers(text: str) -> Contraction:
    """Reads `#tpu.dot_dimension_numbers<...>`.

    Its seven lists are the contracting dimensions of the left and of the right operand, the kept ones of both, the
    order of the result as pairs of an operand and its dimension, and the batch dimensions of both.
    """
    lists = [tuple(int(number) for number in re.findall(r"\d+", part)) for part in re.findall(r"\[([^\]]*)\]", text)]
    left, right, _, _, order, left_batch, right_batch = lists
    return Contraction((left, right), (left_batch, right_batch), tuple(zip(order[::2], order[1::2], strict=True)))


def of_matrices(lhs: Value, rhs: Value, *, transposed: bool) -> Contraction:
    """The older form: two matrices, the right one transposed or not. MLIR refuses a left one that is transposed."""
    if len(build.shape_of(lhs)) != 2 or len(build.shape_of(rhs)) != 2:
        raise UnsupportedError("operands that are no matrices, without dimension numbers")
    contracted = int(transposed)
    return Contraction(((1,), (contracted,)), ((), ()), ((_LHS, 0), (_RHS, 1 - contracted)))


def _positions(attribute: ir.AffineMapAttr) -> list[int]:
    return [ir.AffineDimExpr(result).position for result in attribute.value.results]


def _places(positions: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(positions.index(axis) for axis in axes)


RULES: dict[str, Rule] = {
    "tpu.matmul": _matmul,
    "vector.contract": _contract,
}
