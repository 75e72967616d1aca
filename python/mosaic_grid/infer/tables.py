"""What the outer program says of the first entry of a prefetch operand, told to a copy of the kernel for its analysis.

Kernels over a list of blocks take from tables whether a block is the first of its row. The list's first one always is,
and the outer program says so: `table.at[0].set(1)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import arith, stablehlo

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.outer import OuterScalars
from mosaic_grid.dataflow.tensors import element, shape_of
from mosaic_grid.ir_types import Value
from mosaic_grid.partition.kernel_scalars import constant
from mosaic_grid.program import Kernel, Launch

_LOAD = "memref.load"


def with_first_entries(kernel: Kernel, launches: Sequence[Launch], scalars: OuterScalars) -> Kernel:
    """The kernel, or a copy of it whose body knows the first entries of tables that are the same in all launches.

    In the copy a load at `i` becomes `i == 0 ? entry : load`. The copy stands in no program.
    """
    known: dict[int, int] = {}
    for k, table in enumerate(kernel.prefetch):
        entries = {_first_entry(launch.op.operands[len(launch.bounds) + k], scalars) for launch in launches}
        if len(entries) == 1 and (entry := entries.pop()) is not None and _may_hold(table, entry):
            known[len(kernel.grid) + k] = entry
    if not known:
        return kernel
    copy = Kernel(kernel.module.clone(ip=False).operation)
    _tell(copy, known)
    return copy


def _tell(kernel: Kernel, known: Mapping[int, int]) -> None:
    for number, entry in known.items():
        loads = [use.owner.operation for use in kernel.arguments[number].uses]
        for load in loads:
            with ir.InsertionPoint(load), load.location:
                zero = constant(0, ir.IndexType.get())
                first = arith.cmpi(arith.CmpIPredicate.eq, load.operands[1], zero)
                value = constant(entry, load.results[0].type)
                chosen = arith.SelectOp(first, value, load.results[0])
            load.results[0].replace_all_uses_except(chosen.result, chosen.operation)
            chosen.operation.move_after(load)


def _may_hold(table: Value, entry: int) -> bool:
    """Whether a prefetch operand is a list of such numbers, with which the body does nothing but read entries."""
    kind = ir.MemRefType(table.type)
    integer = kind.element_type
    if len(kind.shape) != 1 or not isinstance(integer, ir.IntegerType):
        return False
    half = 1 << (integer.width - 1)
    return -half <= entry < half and all(use.owner.operation.name == _LOAD for use in table.uses)


def _first_entry(table: Value, scalars: OuterScalars) -> int | None:
    """The entry at 0 of an outer tensor of one dimension, where it is a constant."""
    shape = shape_of(table.type)
    if shape is None or len(shape) != 1 or shape[0] < 1:
        return None
    tensor = scalars.tensor(table)
    known = sym.constant_of(element(tensor, shape, (0,))) if tensor is not None else None
    if known is not None or not isinstance(table, ir.OpResult) or table.owner.name != "stablehlo.scatter":
        return known
    return _scattered(table.owner.operation, shape[0], scalars)


def _scattered(op: ir.Operation, size: int, scalars: OuterScalars) -> int | None:
    """The entry at 0 after one entry of a list has been replaced."""
    if len(op.operands) != 3 or not _replaces_one(op):
        return None
    before, places, update = op.operands
    place = _constant(places, scalars)
    if place is None or not 0 <= place < size:
        return None  # beyond the end nothing is replaced, which is nobody's intention
    return _constant(update, scalars) if place == 0 else _first_entry(before, scalars)


def _replaces_one(op: ir.Operation) -> bool:
    """Whether a scatter puts a scalar at the one place of a list that `[place]` says."""
    numbers = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    kinds = [ir.RankedTensorType(operand.type) for operand in op.operands]
    if [list(kind.shape) for kind in kinds[1:]] != [[1], []] or numbers.index_vector_dim != 0:
        return False
    body = op.regions[0].blocks[0]
    (end, *more) = body.operations
    return not more and list(end.operation.operands) == [body.arguments[1]]


def _constant(value: Value, scalars: OuterScalars) -> int | None:
    """The constant that all elements of an outer tensor are."""
    shape, tensor = shape_of(value.type), scalars.tensor(value)
    return (
        sym.constant_of(element(tensor, shape, (0,) * len(shape))) if tensor is not None and shape is not None else None
    )
