"""Which dimensions of a kernel's grid are to be called parallel: decided for each, before anything is changed.

A set of dimensions may be called parallel if no two steps that differ in one of them touch the same place of an output,
and if nothing is carried in a core's own memory from one to the other. Both are said of pairs of steps that differ in
some dimension of the set, so the set is legal if each dimension is by itself: the legal ones together are the largest
legal set, and there is only one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from mosaic_grid.dataflow.outer import OuterScalars
from mosaic_grid.grid import Dimension, Semantics
from mosaic_grid.infer.examples import with_example
from mosaic_grid.infer.order import printing
from mosaic_grid.infer.tables import with_first_entries
from mosaic_grid.legality import examine
from mosaic_grid.legality.handover import CARRIED
from mosaic_grid.legality.launches import most_steps
from mosaic_grid.objections import Judgement
from mosaic_grid.program import Kernel, Launch


@dataclasses.dataclass(frozen=True)
class Refusal:
    """A dimension that stays as it is, with what speaks against it and what isn't proved of it."""

    axis: int
    judgement: Judgement


@dataclasses.dataclass(frozen=True)
class Plan:
    """What becomes of a kernel: `axes` will be called parallel. `left` says why its dimensions weren't looked at."""

    kernel: Kernel
    axes: tuple[int, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    left: str = ""

    @property
    def grid(self) -> tuple[Dimension, ...]:
        """The grid as it will be."""
        return tuple(
            Dimension(dimension.bound, Semantics.PARALLEL) if axis in self.axes else dimension
            for axis, dimension in enumerate(self.kernel.grid)
        )


def make_plan(kernel: Kernel, launches: Sequence[Launch], scalars: OuterScalars) -> Plan:
    """Judges each dimension that nobody has called parallel; the word of those that are is taken.

    `launches` are all those of the kernel, `scalars` know the program that they are in. Raises `ProgramError` for a
    kernel whose parts don't fit together.
    """
    left = _nothing_to_judge(kernel, launches)
    if left:
        return Plan(kernel, left=left)
    told, most = with_first_entries(kernel, launches, scalars), most_steps(launches, scalars)
    judgements = {axis: _judge(told, axis, launches, most) for axis in _open_axes(kernel.grid)}
    refusals = tuple(Refusal(axis, judgement) for axis, judgement in judgements.items() if judgement != Judgement())
    proved = judgements.keys() - {refusal.axis for refusal in refusals}
    # no two steps differ in a dimension of one step; those in front are called parallel so that none stands between
    idle = {
        axis
        for axis, dimension in enumerate(kernel.grid[: max(proved, default=0)])
        if dimension.bound in (0, 1) and dimension.semantics is Semantics.ARBITRARY
    }
    return Plan(kernel, tuple(sorted(proved | idle)), refusals)


def _judge(kernel: Kernel, axis: int, launches: Sequence[Launch], most: Mapping[int, int]) -> Judgement:
    judgement = examine(kernel, (axis,), launches, most)
    carried = (
        with_example(kernel, axis, each) if each.name == CARRIED and not each.certain else each
        for each in judgement.objections
    )
    return dataclasses.replace(judgement, objections=(*carried, *printing(kernel)))


def _open_axes(grid: Sequence[Dimension]) -> list[int]:
    """The dimensions that may have two steps, and an order."""
    return [axis for axis, d in enumerate(grid) if d.semantics is Semantics.ARBITRARY and d.bound not in (0, 1)]


def _nothing_to_judge(kernel: Kernel, launches: Sequence[Launch]) -> str:
    """Why a kernel isn't looked at; empty where it is."""
    words = {dimension.semantics for dimension in kernel.grid}
    if not kernel.on_tensor_core:
        return "it runs on the SparseCores"
    if words & {Semantics.CORE_PARALLEL, Semantics.SUBCORE_PARALLEL}:
        return "its grid has a dimension for the cores already"
    if not kernel.grid:
        return "it has no grid"
    if not _open_axes(kernel.grid):
        return "no arbitrary dimension has two steps" if Semantics.ARBITRARY in words else "all dimensions are parallel"
    return "" if launches else "nothing launches it, so which operands share memory isn't known"
