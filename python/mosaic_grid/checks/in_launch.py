"""Claims about what a step does, in the terms of one launch: what tables hold, bounds, and the program's inputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from functools import cached_property

from mosaic_grid import memory
from mosaic_grid import symbolic as sym
from mosaic_grid.checks.finding import EFFORT, Finding
from mosaic_grid.checks.subject import Subject
from mosaic_grid.dataflow.accesses import ITERATION, TABLE, is_table
from mosaic_grid.dataflow.geometry import Geometry
from mosaic_grid.dataflow.kernel import prefetch_names
from mosaic_grid.dataflow.scalars import BOUND, GRID_INDEX
from mosaic_grid.dataflow.tables import Table, table_of
from mosaic_grid.dataflow.tensors import shape_of
from mosaic_grid.dataflow.unknowns import name_of
from mosaic_grid.ir_types import Value
from mosaic_grid.program import Launch
from mosaic_grid.summary.windows import with_operands
from mosaic_grid.symbolic.problem import Grid

_MORE_EFFORT = 20 * EFFORT
"""For what is asked of few kernels, those that have a fault."""

_TOO_COMPLEX = "too complex"
"""In the reason why isl gave up, whatever else is known."""


@dataclasses.dataclass(frozen=True)
class InLaunch:
    """One launch of a kernel."""

    subject: Subject
    launch: Launch

    @cached_property
    def geometry(self) -> Geometry:
        """The launch's grid."""
        return self.subject.geometry(self.launch)

    @cached_property
    def _tables(self) -> dict[str, Table]:
        kernel, scalars = self.subject.kernel, self.subject.scalars
        operands = list(self.launch.op.operands)[len(self.launch.bounds) :]
        found: dict[str, Table] = {}
        for k, (name, argument) in enumerate(zip(prefetch_names(kernel), kernel.prefetch, strict=True)):
            table = table_of(name, operands[k], scalars) if is_table(argument) else None
            if table is not None:
                found[f"{TABLE}{len(kernel.grid) + k}"] = table
        return found | self._whole_inputs(operands[kernel.prefetch_count :])

    def _whole_inputs(self, operands: Sequence[Value]) -> dict[str, Table]:
        """Inputs that lie in SMEM as a whole, and stay what they are."""
        found: dict[str, Table] = {}
        if any(window.alias for window in with_operands(self.subject.summaries[0].windows, self.launch)):
            # an output may be the same memory
            return found
        for number, (window, operand) in enumerate(zip(self.subject.windows, operands, strict=False)):
            argument, kind = window.argument, window.type
            if memory.space_of(kind) != memory.SMEM or self._moves(number):
                continue
            shape, tensor = shape_of(operand.type), self.subject.scalars.tensor(operand)
            if shape == tuple(kind.shape) and tensor is not None and is_table(argument):
                name = name_of(argument)
                found[f"{TABLE}{self.subject.argument_of(number)}"] = Table(name, tensor, shape)
        return found

    def _moves(self, number: int) -> bool:
        """Whether a window may show something else than the beginning of its array."""
        shown = self.geometry.windows[number]
        if shown is None:
            return "transform_indices" in self.subject.windows[number].params
        return any(sym.constant_of(index) != 0 for index in shown.index)

    def read(self, expr: sym.Expr) -> sym.Expr:
        """An expression of a walk over a step (`accesses_of`) as the launch has it."""
        return sym.substitute(expr, self._replaced)

    def _replaced(self, part: sym.Expr) -> sym.Expr | None:
        grid = self.geometry.grid
        match part:
            case sym.Param(name, values) if name[:1] == GRID_INDEX and name[1:].isdigit():
                return sym.parameter(grid.indices[int(name[1:])], values)
            case sym.Param(name) if name[:1] == BOUND and name[1:].isdigit():
                return sym.maximum(grid.bounds[int(name[1:])], sym.constant(1))
            case sym.Load(name, index, values) if name in self._tables:
                return self._tables[name].element(tuple(map(self.read, index)), values)
        return None

    def never(
        self, bad: Sequence[sym.Expr], guards: Sequence[sym.Expr], shown: tuple[sym.Expr, ...]
    ) -> Finding | sym.Unknown | None:
        """Whether none of these truth values is 1 at any step where all of `guards` are.

        All in the launch's terms; a witness shows the values of `shown`. None where it is proved.
        """
        bad = [truth for truth in bad if truth != sym.constant(0)]
        key = (*bad, sym.constant(0), *guards)
        if key not in self._answers:
            self._answers[key] = self._asked(bad, guards, shown)
        return self._answers[key]

    def is_unavoidable(self, bad: Sequence[sym.Expr]) -> bool:
        """Whether for all arguments one of these truth values is 1 at some step, in some iteration of its loops."""
        from mosaic_grid.symbolic import proofs

        loops = {leaf.name for truth in bad for leaf in sym.leaves_of(truth) if leaf.name.startswith(ITERATION)}
        return proofs.unavoidable(self._grid(bad, whatever=True), bad, loops, _MORE_EFFORT)

    @cached_property
    def _answers(self) -> dict[tuple[sym.Expr, ...], Finding | sym.Unknown | None]:
        return {}

    def _asked(
        self, bad: Sequence[sym.Expr], guards: Sequence[sym.Expr], shown: tuple[sym.Expr, ...]
    ) -> Finding | sym.Unknown | None:
        # what is proved where few of the conditions hold is proved, and they are what makes a question hard
        linked = _linked(guards, bad)
        known = {leaf for truth in bad for leaf in sym.leaves_of(truth)}
        near = tuple(guard for guard in linked if known.issuperset(sym.leaves_of(guard)))
        verdict: sym.Verdict = sym.Unknown("")
        for some in dict.fromkeys((near, linked)):
            verdict = self._verdict(some, bad, shown, whatever=True)
            if isinstance(verdict, sym.Proved):
                return None
        always = isinstance(verdict, sym.Refuted)
        if isinstance(verdict, sym.Unknown) and _TOO_COMPLEX not in verdict.reason:
            verdict = self._verdict(linked, bad, shown, whatever=False)
        # it fails only where the other conditions hold as well
        if isinstance(verdict, sym.Refuted) and len(linked) < len(guards):
            verdict = self._verdict(guards, bad, shown, whatever=always)
            if always and isinstance(verdict, sym.Unknown):
                always, verdict = False, self._verdict(guards, bad, shown, whatever=False)
        match verdict:
            case sym.Refuted(witness):
                return Finding(witness, always)
            case sym.Unknown():
                return verdict
        return None

    def _verdict(
        self, guards: Sequence[sym.Expr], bad: Sequence[sym.Expr], shown: tuple[sym.Expr, ...], whatever: bool
    ) -> sym.Verdict:
        failures = [sym.conjunction(*guards, truth) for truth in bad]
        if all(failure == sym.constant(0) for failure in failures):
            return sym.Proved()
        from mosaic_grid.symbolic import proofs  # isl is loaded only where it isn't obvious

        return proofs.never(self._grid((*failures, *shown), whatever), failures, shown, EFFORT)

    def _grid(self, about: Iterable[sym.Expr], whatever: bool) -> Grid:
        """The grid with what isn't known; what happens for some iterations of a loop happens."""
        grid, scalars = self.geometry.grid, self.subject.scalars
        leaves = [leaf for expr in about for leaf in sym.leaves_of(expr)]
        names = {leaf.name for leaf in leaves if isinstance(leaf, sym.Param) and not isinstance(leaf, sym.Total)}
        names = {name for name in names if not name.startswith(ITERATION)} - set(grid.indices)
        if whatever:
            known = self.geometry.whatever_the_inputs
            return dataclasses.replace(known, opaque=known.opaque | names)
        inputs = frozenset(known.name for known in scalars.inputs.values())
        reached = inputs if scalars.runs_always(self.launch.op) else frozenset[str]()
        # a table that is an input holds anything
        return dataclasses.replace(grid, opaque=grid.opaque | (names - reached), arrays=reached, explains=True)


def _linked(guards: Sequence[sym.Expr], about: Sequence[sym.Expr]) -> tuple[sym.Expr, ...]:
    """Those of the conditions that have an unknown in common with the truth values, or with such a condition."""
    known = {leaf for truth in about for leaf in sym.leaves_of(truth)}
    left, found = list(guards), set[sym.Expr]()
    while linked := [guard for guard in left if not known.isdisjoint(sym.leaves_of(guard))]:
        found.update(linked)
        known.update(leaf for guard in linked for leaf in sym.leaves_of(guard))
        left = [guard for guard in left if guard not in found]
    return tuple(guard for guard in guards if guard in found)
