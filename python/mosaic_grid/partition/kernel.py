"""Building the partitioned kernel: grid indices of the original from the core, the step in its share, and the others.

In the kernel's body the steps beyond a share's end are skipped. In an index map they give the indices of the share's
last step, so that no block changes there: nothing is fetched, and no garbage is written back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import cast

from jaxlib.mlir import ir

from mosaic_grid.ir_types import Value
from mosaic_grid.kernel_edit import (
    drop_arguments,
    insert_argument,
    iteration_bounds,
    replace_leading_arguments,
    run_only_if,
    set_grid,
)
from mosaic_grid.partition import kernel_scalars as scalars
from mosaic_grid.partition.split import Split
from mosaic_grid.partition.table import Table, table_of
from mosaic_grid.program import Kernel


def table_for(kernel: Kernel, split: Split) -> Table:
    """The table that `partition_kernel` makes the kernel take."""
    return table_of(split, frozenset(axis for _, axis in iteration_bounds(kernel.module) if axis in split.axes))


def partition_kernel(module: ir.Operation, split: Split) -> None:
    """Rewrites a kernel module in place to the split's grid. It takes its table as the last scalar-prefetch operand.

    The caller has made sure that the split keeps the kernel's meaning; nothing is checked here.
    """
    kernel = Kernel(module)
    table = table_for(kernel, split)
    body, prefetch = kernel.body, kernel.prefetch_count
    maps = {window.transform for window in kernel.windows} - {None}
    _set_rank_of_affine_maps(kernel, len(split.partitioned_grid))
    for symbol, function in kernel.functions.items():
        if symbol in maps or function == body:
            _rewrite_function(function, split, table, prefetch, is_body=function == body)
    set_grid(body, split.partitioned_grid)
    if table.size:
        count = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), prefetch + 1)
        body.attributes["scalar_prefetch"] = count


def _set_rank_of_affine_maps(kernel: Kernel, rank: int) -> None:
    """Gives the index maps that are attributes, and constant, the partitioned grid's number of dimensions."""
    if all(window.affine_map is None for window in kernel.windows):
        return
    params: list[ir.Attribute] = []
    for window in kernel.windows:
        entries = {attribute.name: attribute.attr for attribute in cast(Iterable[ir.NamedAttribute], window.params)}
        if window.affine_map is not None:
            constant = ir.AffineMap.get(rank, 0, list(window.affine_map.results))
            entries["transform_indices"] = ir.AffineMapAttr.get(constant)
        params.append(ir.DictAttr.get(entries))
    kernel.body.attributes["window_params"] = ir.ArrayAttr.get(params)


def _rewrite_function(function: ir.Operation, split: Split, table: Table, prefetch: int, *, is_body: bool) -> None:
    """Gives one function the new grid arguments and computes the old ones from them."""
    rank, new_rank = len(split.grid), len(split.partitioned_grid)
    asked = iteration_bounds(function)
    block = function.regions[0].blocks[0]
    original = [op.operation for op in block.operations]
    with function.location, ir.InsertionPoint.at_block_begin(block):
        fresh = replace_leading_arguments(function, rank, [scalars.i32()] * new_rank)
        entries = None
        if table.size:
            where = new_rank + rank + prefetch
            entries = insert_argument(function, where, _table_type(table), ir.Location.name("partition"))
        fresh, old = list(block.arguments)[:new_rank], list(block.arguments)[new_rank : new_rank + rank]
        indices = _Indices(split, table, fresh, entries)
        answered = [op for op, axis in asked if _replace_bound(op, axis, indices)]
        needed = frozenset(axis for axis, argument in enumerate(old) if next(iter(argument.uses), None) is not None)
        values = indices.body_values(needed) if is_body else indices.map_values(needed)
        for axis in needed:
            old[axis].replace_all_uses_with(values[axis])
        drop_arguments(function, new_rank, rank)
        if is_body and (valid := indices.valid()) is not None:
            run_only_if(valid, original)
    for op in answered:
        op.erase()


def _replace_bound(op: ir.Operation, axis: int, indices: _Indices) -> bool:
    """Makes a `tpu.iteration_bound` ask for the original dimension, or answers it: then it is of no more use."""
    split = indices.split
    if axis in split.outer or axis in split.inner:
        op.attributes["dim"] = ir.IntegerAttr.get(scalars.i32(), split.position(axis))
        return False
    op.results[0].replace_all_uses_with(indices.bound(axis))
    return True


@dataclasses.dataclass
class _Indices:
    """Computes, at the current insertion point, the original grid indices from the partitioned ones.

    `fresh` are the new grid arguments (i32), `entries` the table.
    """

    split: Split
    table: Table
    fresh: Sequence[Value]
    entries: Value | None
    _first: Value | None = None
    _last: Value | None = None
    _raw: Value | None = None
    _valid: Value | None = None

    @property
    def guarded(self) -> bool:
        """Whether some core's loop runs beyond its share."""
        return not self.split.even

    def body_values(self, needed: frozenset[int]) -> dict[int, Value]:
        """The original indices in a step that lies within the share."""
        steps = self._take_apart(self.raw(), needed) if needed & self._counted_axes else {}
        others = {axis: self.fresh[self.split.position(axis)] for axis in self.split.outer + self.split.inner}
        return steps | others

    def map_values(self, needed: frozenset[int]) -> dict[int, Value]:
        """The original indices, those of the share's last step beyond its end."""
        values = {axis: self.fresh[self.split.position(axis)] for axis in self.split.outer}
        if needed & self._counted_axes:
            step = scalars.minimum(self.raw(), self.last()) if self.guarded else self.raw()
            values |= self._take_apart(step, needed)
        for axis in self.split.inner:
            values[axis] = self._inner_index(axis, axis in needed)
        return values

    def valid(self) -> Value | None:
        """Whether this step lies within the core's share; `None` where every step does."""
        if self.guarded and self._valid is None:
            self._valid = scalars.compare("sle", self.raw(), self.last())
        return self._valid

    def raw(self) -> Value:
        """The number of this step among all steps of the shared and fused dimensions."""
        if self._raw is None:
            self._raw = scalars.add(self.first(), self.fresh[self.split.counted])
        return self._raw

    def first(self) -> Value:
        """The number of the core's first step."""
        if self._first is None:
            self._first = self._static_first() if self.split.static_steps is not None else self._dynamic_first()
        return self._first

    def last(self) -> Value:
        """The number of the core's last step."""
        if self._last is None:
            self._last = self._static_last() if self.split.static_steps is not None else self._dynamic_last()
        return self._last

    def bound(self, axis: int) -> Value:
        """The bound of an original shared or fused dimension."""
        static = self.split.grid[axis].bound
        return scalars.constant(static) if static is not None else self._entry(scalars.index(self.table.bound_at(axis)))

    @property
    def _counted_axes(self) -> frozenset[int]:
        return frozenset(self.split.axes + self.split.fused)

    def _static_first(self) -> Value:
        # first(core) = core * ceil(n/2) on two cores, core * q + min(core, r) on more, n = cores * q + r
        share = self.split.partitioned_grid[self.split.counted].bound
        if not self.guarded or self.split.cores == 2:
            return scalars.multiply(self.fresh[0], scalars.constant(share or 0))
        quotient, remainder = divmod(self.split.static_steps or 0, self.split.cores)
        even_part = scalars.multiply(self.fresh[0], scalars.constant(quotient))
        first = scalars.add(even_part, scalars.minimum(self.fresh[0], scalars.constant(remainder)))
        return scalars.multiply(first, scalars.constant(self.split.fused_steps))

    def _static_last(self) -> Value:
        steps, fused = self.split.static_steps or 0, self.split.fused_steps
        if self.split.cores == 2:
            return scalars.constant(steps * fused - 1)
        quotient, remainder = divmod(steps, self.split.cores)
        longer = scalars.compare("slt", self.fresh[0], scalars.constant(remainder))
        length = scalars.select(
            longer, scalars.constant((quotient + 1) * fused - 1), scalars.constant(quotient * fused - 1)
        )
        return scalars.add(self.first(), length)

    def _dynamic_first(self) -> Value:
        if self.table.firsts:
            core = scalars.to_index(self.fresh[0])
            return self._entry(scalars.add(core, scalars.index(self.table.first_at)) if self.table.first_at else core)
        return scalars.multiply(self.fresh[0], scalars.iteration_bound(self.split.counted))

    def _dynamic_last(self) -> Value:
        if not self.table.firsts:
            return self._entry(scalars.index(0))
        core = scalars.to_index(self.fresh[0])
        return scalars.subtract(
            self._entry(scalars.add(core, scalars.index(self.table.first_at + 1))), scalars.constant(1)
        )

    def _take_apart(self, step: Value, needed: frozenset[int]) -> dict[int, Value]:
        """The indices of the shared and fused dimensions from a step count, innermost first."""
        values: dict[int, Value] = {}
        axes = [*self.split.axes, *self.split.fused]
        while len(axes) > 1 and needed & frozenset(axes):
            axis = axes.pop()
            step, values[axis] = self._divide(step, axis)
        return values | {axes[0]: step}

    def _divide(self, step: Value, axis: int) -> tuple[Value, Value]:
        """Quotient and remainder of a step count (>= 0) by a dimension's bound."""
        bound = self.split.grid[axis].bound
        if bound == 1:
            return step, scalars.constant(0)
        if bound is not None and bound & (bound - 1) == 0:
            shift = bound.bit_length() - 1
            return scalars.shift_right(step, shift), scalars.mask(step, shift)
        divisor = self.bound(axis)
        quotient = scalars.divide(step, divisor)
        return quotient, scalars.subtract(step, scalars.multiply(quotient, divisor))

    def _inner_index(self, axis: int, needed: bool) -> Value:
        index, bound = self.fresh[self.split.position(axis)], self.split.grid[axis].bound
        valid = self.valid() if needed and bound != 1 else None
        if valid is None:
            return index
        if bound is not None:
            return scalars.select(valid, index, scalars.constant(bound - 1))
        return scalars.select(
            valid, index, scalars.subtract(scalars.iteration_bound(self.split.position(axis)), scalars.constant(1))
        )

    def _entry(self, index: Value) -> Value:
        assert self.entries is not None, "the split has no table"
        return scalars.load(self.entries, index)


def _table_type(table: Table) -> ir.Type:
    return ir.Type.parse(f"memref<{table.size}xi32, #tpu.memory_space<smem>>")
