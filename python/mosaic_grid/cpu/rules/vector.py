"""What is left of `vector`: counting, masks of a prefix of each dimension, and an arithmetic operation."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.build import Index, Shape
from mosaic_grid.cpu.fma import exact_fma
from mosaic_grid.cpu.lowering import Lowering, Rule
from mosaic_grid.cpu.rules.attributes import integers
from mosaic_grid.cpu.rules.shape import shape_of_result
from mosaic_grid.ir_types import Value


def box(shape: Shape, low: Sequence[Index], high: Sequence[Index]) -> Value:
    """Holds where the position is at least `low` and less than `high` in each dimension."""
    result = build.constant(1, shape, build.i1_type())
    for axis, bounds in enumerate(zip(low, high, strict=True)):
        for bound, direction, trivial in zip(bounds, ("GE", "LT"), (0, shape[axis]), strict=True):
            if bound != trivial:
                limit = build.splat(build.as_value(bound), shape)
                result = hlo.and_(result, build.compare(build.iota(shape, axis), limit, direction))
    return result


def _step(_: Lowering, op: ir.Operation) -> Value:
    return build.iota(shape_of_result(op), 0)


def _create_mask(low: Lowering, op: ir.Operation) -> Value:
    """The operands say how much of each dimension is set."""
    shape = shape_of_result(op)
    return box(shape, [0] * len(shape), [low.index(operand) for operand in op.operands])


def _constant_mask(_: Lowering, op: ir.Operation) -> Value:
    shape = shape_of_result(op)
    return box(shape, [0] * len(shape), integers(op, "mask_dim_sizes"))


def _fma(low: Lowering, op: ir.Operation) -> Value:
    return exact_fma(*low.operands(op))


RULES: dict[str, Rule] = {
    "vector.constant_mask": _constant_mask,
    "vector.create_mask": _create_mask,
    "vector.fma": _fma,
    "vector.step": _step,
}
