"""`window-out-of-bounds`, `output-not-covered`, `nonconsecutive-revisit`: the blocks that the steps of a launch show.

An error is what happens whenever the kernel runs; what takes certain inputs is a warning, with these inputs. That a
part of an output stays unwritten is a warning: the program may never read it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.checks.finding import EFFORT, Finding, ask
from mosaic_grid.checks.index_in_elements import index_in_elements
from mosaic_grid.checks.returns import may_read, reads_on_return
from mosaic_grid.checks.subject import Subject, location_of_map, name_of
from mosaic_grid.dataflow.geometry import Geometry
from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.legality.sharing import has_blocks, listed
from mosaic_grid.program import Launch
from mosaic_grid.summary.facts import WindowSummary
from mosaic_grid.summary.windows import with_operands
from mosaic_grid.symbolic import obvious
from mosaic_grid.symbolic.problem import Grid, Window

OUTSIDE, UNCOVERED, REVISIT = "window-out-of-bounds", "output-not-covered", "nonconsecutive-revisit"
RACE = "parallel-race"


def blocks(subject: Subject) -> Iterator[Diagnostic]:
    """What is wrong with the blocks of each window, launch by launch."""
    for launch in subject.launches if subject.kernel.on_tensor_core else ():
        geometry = subject.geometry(launch)
        outside: dict[Window, Finding | sym.Unknown | None] = {}
        told = subject.summaries[0].windows
        if len(subject.launches) > 1:
            told = with_operands(told, launch)
        for number, window in enumerate(geometry.windows):
            if window is None or (told[number].role != "out" and obvious.meets_array(geometry.grid, window)):
                continue
            if has_blocks(subject.windows[number]):
                yield from _Blocks(subject, launch, geometry, number, window, told[number], outside).findings()


@dataclasses.dataclass(frozen=True)
class _Blocks:
    """The `number`th window of a launch; `told` is what the summary says of it.

    `outside` has the answers about windows that are alike.
    """

    subject: Subject
    launch: Launch
    geometry: Geometry
    number: int
    window: Window
    told: WindowSummary
    outside: dict[Window, Finding | sym.Unknown | None]

    def findings(self) -> Iterator[Diagnostic]:
        """What is wrong with it, unless that is said already: of an index map that counts elements."""
        outside = list(self._outside())
        if outside and any(told.about == self._about for told in index_in_elements(self.subject)):
            return
        yield from outside
        if self.told.role == "out":
            if not self.told.alias and not any(found.severity is Severity.ERROR for found in outside):
                yield from self._uncovered()
            if not self.subject.windows[self.number].restores:
                yield from self._revisited()
            yield from self._raced()

    def _outside(self) -> Iterator[Diagnostic]:
        if obvious.meets_array(self.geometry.grid, self.window):
            return
        from mosaic_grid.symbolic import proofs  # isl is loaded only where it isn't obvious

        if self.window not in self.outside:
            self.outside[self.window] = ask(
                self.geometry, lambda grid: proofs.meets_array(grid, self.window, EFFORT), self.subject.strict
            )
        found = self.outside[self.window]
        if isinstance(found, sym.Unknown):
            yield from self._undecided(OUTSIDE, f"each block of {self._name} meets its array", found)
        elif found is not None:
            step = listed(found.witness.points[0][1])
            message = f"{found.where}step {step} shows block {found.block} of {self._name}, wholly outside of its array"
            advice = "keep the index map within the array, as jnp.minimum does"
            yield self._say(OUTSIDE, found, message, self._sizes, advice)

    def _uncovered(self) -> Iterator[Diagnostic]:
        tiled = all(map(self.window.is_tiled, range(len(self.window.block))))
        if not tiled or obvious.covered(self.geometry.grid, self.window):
            return
        from mosaic_grid.symbolic import proofs

        strict = self.subject.strict
        found = ask(self.geometry, lambda grid: proofs.covered(grid, self.window, EFFORT), strict, inputs=strict)
        if isinstance(found, sym.Unknown):
            yield from self._undecided(UNCOVERED, f"every block of {self._name} is written", found)
        elif found is not None and (found.always or strict):
            message = f"{found.where}no step writes block {found.block} of {self._name}: it holds what was in memory"
            advice = "let the grid and the index map reach each block, or write the output over an input with the rest"
            yield self._say(UNCOVERED, found, message, self._sizes, advice)

    def _revisited(self) -> Iterator[Diagnostic]:
        if obvious.revisits_follow(self.geometry.grid, self.window):
            return
        argument = self.subject.argument_of(self.number)
        step = self.subject.step if may_read(self.subject.kernel, argument) else None
        reads = reads_on_return(step, argument, self.geometry) if step else ()
        if not reads:
            # what is written whole at each visit may come back
            return
        undecided: sym.Unknown | None = None
        for read in reads:
            found = ask(self.geometry, partial(self._follows, read.when or ()), self.subject.strict)
            if isinstance(found, Finding) and read.when is not None:
                yield self._of_the_return(found, read.location)
                return
            if found is not None:
                undecided = found if isinstance(found, sym.Unknown) else sym.Unknown("nobody knows when it is read")
        if undecided:
            claim = f"{self._name} isn't read back at a block that the grid has left before"
            yield from self._undecided(REVISIT, claim, undecided)

    def _follows(self, when: tuple[sym.Expr, ...], grid: Grid) -> sym.Verdict:
        from mosaic_grid.symbolic import proofs

        return proofs.revisits_follow(grid, self.window, when, EFFORT)

    def _raced(self) -> Iterator[Diagnostic]:
        """A race that takes tables of certain contents, which contracts allow; what is certain is told elsewhere."""
        if not self.geometry.grid.arrays or not self.geometry.grid.parallel:
            return
        from mosaic_grid.symbolic import proofs

        found = ask(self.geometry, lambda grid: proofs.no_race(grid, self.window, most=EFFORT), self.subject.strict)
        if isinstance(found, Finding) and not found.always:
            first, second = (point for _, point in found.witness.points)
            axis = next(axis for axis in self.geometry.grid.parallel if first[axis] != second[axis])
            message = (
                f"{found.where}parallel dimension {axis} is a race: steps {listed(first)} and {listed(second)} write "
                f"the same block {found.block} of {self._name}"
            )
            advice = f"make dimension {axis} arbitrary, or give each of its steps a block of its own"
            yield self._say(RACE, found, message, self._sizes, advice)

    def _of_the_return(self, found: Finding, location: ir.Location) -> Diagnostic:
        first, left, again = (listed(point) for _, point in found.witness.points)
        message = (
            f"{found.where}step {again} reads block {found.block} of {self._name} back, which the grid has left since "
            f"step {first}: what is written out isn't brought in again"
        )
        why = f"step {left}, right before, is at another block, so that the buffer holds something else"
        advice = "let the dimensions that choose the block come before the others, or accumulate in scratch"
        return self._say(REVISIT, found, message, why, advice, location)

    def _undecided(self, name: str, claim: str, unknown: sym.Unknown) -> Iterator[Diagnostic]:
        if self.subject.strict:
            message = f"can't tell whether {claim}: {unknown.reason}"
            ways, enough = self.subject.ways, unknown.enough
            notes = [note(f"{ways.promise(str(enough))} would settle it")] if enough else []
            yield self.subject.say(name, Severity.WARNING, message, self._about, at=self._location, notes=notes)

    def _say(
        self, name: str, found: Finding, message: str, why: str, advice: str, location: ir.Location | None = None
    ) -> Diagnostic:
        notes = [note(why), note("; or ".join(filter(None, (advice, found.otherwise(self.subject.ways)))))]
        # who reads only what was written loses nothing
        severity = Severity.WARNING if name == UNCOVERED else found.severity
        return self.subject.say(name, severity, message, self._about, at=location or self._location, notes=notes)

    @property
    def _name(self) -> str:
        return name_of(self.told)

    @property
    def _about(self) -> str:
        return f"{self.told.role} {self.told.number}"

    @property
    def _sizes(self) -> str:
        return f"the array is {self.told.operand}, a block {self.told.block}"

    @property
    def _location(self) -> ir.Location | None:
        return location_of_map(self.subject.kernel, self.subject.windows[self.number])
