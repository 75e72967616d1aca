"""Whether every block of an output is written by some step."""

from __future__ import annotations

import islpy as isl

from mosaic_grid.symbolic.arith import constant
from mosaic_grid.symbolic.choice import comparison
from mosaic_grid.symbolic.division import ceildiv
from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.nodes import Param
from mosaic_grid.symbolic.problem import Grid, Window
from mosaic_grid.symbolic.proofs.affine import Space, unknowns_of
from mosaic_grid.symbolic.proofs.decide import surely, without
from mosaic_grid.symbolic.proofs.effort import MOST, UndecidedError, limited
from mosaic_grid.symbolic.proofs.enough import enough
from mosaic_grid.symbolic.proofs.races import span
from mosaic_grid.symbolic.proofs.reachable import may_reach
from mosaic_grid.symbolic.proofs.steps import Steps
from mosaic_grid.symbolic.ranges import Range
from mosaic_grid.symbolic.verdict import Proved, Refuted, Unknown, Verdict, Witness


def covered(grid: Grid, window: Window, most: int = MOST) -> Verdict:
    """Where there is a step at all, every block of the array is the window of some step.

    A witness has the block that no step writes; in a dimension whose windows don't lie side by side, an element.
    """
    question = _Question(grid, window)
    if not grid.proofs and question.tiled and may_reach(question.steps, question.index, question.counts):
        return Unknown("nobody asked for a proof")
    try:
        context = isl.Context()
        with limited(context, most):
            names, running, blocks, always, ever = question.parts(context)
            if blocks.subtract(always).is_empty():
                return Proved()
            never = blocks.subtract(ever)
        values = surely(names, running, never, question.steps.hidden(), most)
    except UndecidedError as error:
        return Unknown(str(error))
    if values is None:
        return Unknown(question.steps.obstacle(question.hits))
    block = tuple(values[p.name] for p in question.block)
    coordinates = {p.name for p in question.block}
    inputs = tuple((k, v) for k, v in values.items() if k not in coordinates)
    promise = None
    if grid.explains:
        promise = enough(question.steps, names, running, [blocks.subtract(always)], coordinates, most)
    return Refuted(Witness(inputs, (), block, question.steps.overflow((), values), promise))


class _Question:
    """`block` are a block's coordinates, `inside` says that it lies in the array, `hits` that the step shows it.

    Where `tiled`, the latter is that it is the `index` of the step, and the former that it is below `counts`.
    """

    def __init__(self, grid: Grid, window: Window) -> None:
        self.steps = Steps(grid, "only")
        self.block: list[Param] = []
        self.inside: list[Expr] = []
        self.hits = [self.steps.at(guard, "only") for guard in window.guards]
        self.index: list[Expr] = []
        self.counts: list[Expr] = []
        self.tiled = not window.guards
        for axis, index in enumerate(window.index):
            size = self.steps.at(window.array[axis], "only")
            placed = self.steps.at(index, "only")
            tiled = window.is_tiled(axis)
            count = ceildiv(size, constant(window.block[axis])) if tiled else size
            block = Param(f"block.{axis}", Range(0, max(count.range.hi - 1, 0)))
            self.block.append(block)
            self.index.append(placed)
            self.counts.append(count)
            self.tiled &= tiled
            self.inside.append(comparison("<", block, count))
            if tiled:
                self.hits.append(comparison("==", block, placed))
            else:
                start, stop = span(window, axis, placed)
                self.hits += [comparison("<=", start, block), comparison("<", block, stop)]

    def parts(self, context: isl.Context) -> tuple[list[str], isl.Set, isl.Set, isl.Set, isl.Set]:
        """The names of the unknowns, and sets of them: those for which there is a step, which of these are a block of
        the array, those that are hit whatever is read at run time, and those hit for some of it.

        The unknowns are the inputs and the coordinates of a block.
        """
        facts, truths, indices = self.steps.facts(), self.steps.truths(), self.steps.unknowns()
        index_names = {p.name for p in indices}
        read_names = self.steps.varying()
        params = unknowns_of([*facts, *truths, *self.inside, *self.hits])
        space = Space(context, [*params, *self.block, *indices])
        space.assume(facts, truths)
        inside = space.domain
        for truth in self.inside:
            inside = inside.intersect(space.where(truth))
        hit = inside
        for truth in self.hits:
            hit = hit.intersect(space.where(truth))
        steps, read = (
            [place for place, name in enumerate(space.places) if name in group] for group in (index_names, read_names)
        )
        names = [name for name in space.places if name not in index_names | read_names]
        running, blocks, ever = (without(points, [*steps, *read]) for points in (space.domain, inside, hit))
        if not read:
            return names, running, blocks, ever, ever
        settled = without(hit, read).subtract(without(space.prior.subtract(hit), read))
        left = [name for name in space.places if name not in read_names]
        always = without(settled, [place for place, name in enumerate(left) if name in index_names])
        return names, running, blocks, always, ever
