"""Reads and updates of one element of an array in each iteration: slices, and what `jax.vmap` makes of a slice."""

from __future__ import annotations

from collections.abc import Mapping

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from mosaic_grid.batching.iterations import Iterations, Numbers, Place
from mosaic_grid.ir_types import Value

READS = frozenset({"stablehlo.dynamic_slice", "stablehlo.gather"})
UPDATES = frozenset({"stablehlo.dynamic_update_slice", "stablehlo.scatter"})


def axis_read(op: ir.Operation, calls: tuple[ir.Operation, ...], iterations: Iterations) -> int | None:
    """The axis along which a read takes element k in iteration k, and all else whole; `None` for any other read."""
    if op.name not in READS:
        return None
    if op.name == "stablehlo.dynamic_slice":
        starts: dict[int, Numbers | None] | None = _scalars(op, 1, calls, iterations)
    else:
        numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
        plain = _is_plain(op.results[0], numbers.offset_dims, numbers.collapsed_slice_dims, numbers.index_vector_dim)
        starts = _vector(op, numbers.start_index_map, calls, iterations) if plain else None
    return _axis(_shape(op.operands[0]), _shape(op.results[0]), starts, iterations.count)


def axis_updated(op: ir.Operation, calls: tuple[ir.Operation, ...], iterations: Iterations) -> int | None:
    """The axis along which an update replaces element k in iteration k, and no more; `None` for any other update."""
    if op.name not in UPDATES:
        return None
    if op.name == "stablehlo.dynamic_update_slice":
        return _axis(
            _shape(op.operands[0]), _shape(op.operands[1]), _scalars(op, 2, calls, iterations), iterations.count
        )
    numbers = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    if len(op.operands) != 3 or not _replaces(op):
        return None
    update = op.operands[2]
    plain = _is_plain(update, numbers.update_window_dims, numbers.inserted_window_dims, numbers.index_vector_dim)
    starts = _vector(op, numbers.scattered_dims_to_operand_dims, calls, iterations) if plain else None
    return _axis(_shape(op.operands[0]), _shape(update), starts, iterations.count)


def update_of(op: ir.Operation) -> Value:
    """What an update puts into the array."""
    value: Value = op.operands[2 if op.name == "stablehlo.scatter" else 1]
    return value


def _scalars(
    op: ir.Operation, first: int, calls: tuple[ir.Operation, ...], iterations: Iterations
) -> dict[int, Numbers | None]:
    """The starts that are operands from `first` on, by axis."""
    found: dict[int, Numbers | None] = {}
    for axis, start in enumerate(list(op.operands)[first:]):
        numbers = iterations.numbers(Place(start, calls))
        found[axis] = numbers[0] if numbers else None
    return found


def _vector(
    op: ir.Operation, axes: list[int], calls: tuple[ir.Operation, ...], iterations: Iterations
) -> dict[int, Numbers | None] | None:
    """The starts that are the entries of the second operand, each for one of `axes`."""
    numbers = iterations.numbers(Place(op.operands[1], calls))
    return dict(zip(axes, numbers, strict=True)) if numbers is not None and len(numbers) == len(axes) else None


def _is_plain(piece: Value, window: list[int], dropped: list[int], vector: int) -> bool:
    """Whether a gather or scatter moves one piece that has all axes of the array."""
    return list(window) == list(range(len(_shape(piece)))) and not dropped and vector == 0


def _axis(whole: list[int], part: list[int], starts: Mapping[int, Numbers | None] | None, count: int) -> int | None:
    """The axis along which the part is element k of `count`; the others are whole, and begin at 0."""
    if starts is None or len(whole) != len(part):
        return None
    wanted, zeros = tuple(range(count)), (0,) * count
    for axis, size in enumerate(whole):
        if size != count or starts.get(axis) != wanted or part != [*whole[:axis], 1, *whole[axis + 1 :]]:
            continue
        if all(numbers == zeros for other, numbers in starts.items() if other != axis):
            return axis
    return None


def _replaces(scatter: ir.Operation) -> bool:
    """Whether a scatter's computation gives the new value and forgets the old one."""
    block = scatter.regions[0].blocks[0]
    end = block.operations[0].operation
    return end.name == "stablehlo.return" and list(end.operands) == [block.arguments[1]]


def _shape(value: Value) -> list[int]:
    return list(ir.RankedTensorType(value.type).shape)
