"""A kernel with all that checks ask of it: its launches, the target, what is known of bounds and of its steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import cached_property

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.freshness import any_step
from mosaic_grid.dataflow.geometry import Geometry, geometry_of
from mosaic_grid.dataflow.loop_bodies import with_bodies
from mosaic_grid.dataflow.outer import OuterScalars
from mosaic_grid.dataflow.step import Findings
from mosaic_grid.diagnostics import Diagnostic, Severity, first_place, place_of
from mosaic_grid.errors import Place
from mosaic_grid.grid import I32_MAX, is_placeholder
from mosaic_grid.objections import Judgement
from mosaic_grid.program import Kernel, Launch, Program, Window
from mosaic_grid.session import Session
from mosaic_grid.summary import LaunchSummary, summarize
from mosaic_grid.summary.facts import WindowSummary
from mosaic_grid.targets import Target
from mosaic_grid.ways import Ways


@dataclasses.dataclass
class Subject:
    """One kernel; `summaries` are those of its launches, of alike ones one, or of itself where nothing launches it.

    `joined` is the program with each launch in the loop that runs it. `target` is `None` where nobody named one,
    `strict` asks for what could not be decided, too. `ways` are those that notes speak of.
    """

    program: Program
    joined: Program
    kernel: Kernel
    launches: tuple[Launch, ...]
    summaries: tuple[LaunchSummary, ...]
    scalars: OuterScalars
    target: Target | None
    strict: bool
    ways: Ways

    def __post_init__(self) -> None:
        """Nothing is known yet."""
        self._judgements: dict[tuple[int, ...], Judgement] = {}
        self._geometries: dict[Launch, Geometry] = {}

    @property
    def cores(self) -> int:
        """How many cores share a launch: those of the target, else 2, which is the most that any device has."""
        return self.target.cores if self.target else 2

    @property
    def place(self) -> Place | None:
        """The user's line: where the kernel is launched, else the first one that is known of the kernel."""
        known = (p for summary in self.summaries for p in (summary.warn_at, summary.place, summary.launched_at) if p)
        return next(known, None) or first_place(self.kernel.body)

    def say(
        self,
        name: str,
        severity: Severity,
        message: str,
        about: str,
        *,
        at: ir.Location | None = None,
        notes: Sequence[Diagnostic] = (),
    ) -> Diagnostic:
        """A diagnostic about this kernel, at the location if that has a place in the user's file."""
        place = (place_of(at) if at else None) or self.place
        return Diagnostic(severity, message, place, name, tuple(notes), self.kernel.name, about)

    def bounds_of(self, axis: int) -> sym.Range:
        """A range that holds the number of steps of a dimension in every launch; any i32 where nothing is known."""
        bound = self.kernel.grid[axis].bound
        if bound is not None and not is_placeholder(bound):
            return sym.Range(bound, bound)
        if bound is not None or not self.launches:
            return sym.Range(-I32_MAX - 1, I32_MAX)
        ranges = [self.scalars.range_of(self.scalars.evaluate(launch.bounds[axis])) for launch in self.launches]
        return sym.Range(min(known.lo for known in ranges), max(known.hi for known in ranges))

    def geometry(self, launch: Launch) -> Geometry:
        """The windows of one of the launches over its grid."""
        if launch not in self._geometries:
            self._geometries[launch] = geometry_of(self.kernel, launch, self.scalars)
        return self._geometries[launch]

    def argument_of(self, window: int) -> int:
        """The number of the kernel's argument that is a window."""
        return len(self.kernel.grid) + self.kernel.prefetch_count + window

    def operand(self, argument: int) -> str:
        """What a person calls an operand of the kernel, by the number of its argument: as `name_of` a window."""
        number, summary = argument - len(self.kernel.grid), self.summaries[0]
        if number < self.kernel.prefetch_count:
            return f"prefetch operand {number} ('{summary.prefetch[number].name}')"
        number -= self.kernel.prefetch_count
        if number < len(summary.windows):
            return name_of(summary.windows[number])
        number -= len(summary.windows)
        return f"scratch {number} ('{summary.scratch[number].name}')"

    @cached_property
    def windows(self) -> tuple[Window, ...]:
        """The kernel's windows; to read them takes long."""
        return self.kernel.windows

    @property
    def step(self) -> Findings | None:
        """What a walk over any step finds, with nothing taken for written; None where the body can't be walked."""
        return any_step(self.kernel) if len(self.kernel.body.regions[0].blocks) == 1 else None

    def judge(self, axes: tuple[int, ...]) -> Judgement:
        """What speaks against running the steps of these dimensions on different cores."""
        if axes not in self._judgements:
            from mosaic_grid import legality  # brings isl, which only a kernel worth judging should load

            most = {axis: self.bounds_of(axis).hi for axis in self.kernel.dynamic_dimensions}
            self._judgements[axes] = legality.judge(self.kernel, axes, self.launches, most)
        return self._judgements[axes]

    def hands_on(self, axis: int) -> bool:
        """Whether something surely speaks against running the steps of this dimension, or a later one, on all cores."""
        from mosaic_grid import legality

        return legality.hands_on(self.kernel, axis, self.launches)


def subjects_of(module: ir.Operation, session: Session) -> Iterator[Subject]:
    """The kernels of a program that the session selects, in the order in which they stand in it."""
    program, scalars = Program(module), OuterScalars(module, session.contracts)
    joined = with_bodies(program, scalars.functions)
    summaries = summarize(program, session.target, session.selects, scalars, maps=False).launches
    for symbol, kernel in program.kernels.items():
        if session.selects(kernel.name):
            yield Subject(
                program,
                joined,
                kernel,
                tuple(launch for launch in program.launches if launch.kernel.symbol == symbol),
                tuple(summary for summary in summaries if summary.symbol == symbol),
                scalars,
                session.target,
                session.selection.strict,
                session.ways,
            )


def name_of(window: WindowSummary) -> str:
    """What a person calls a window: `input 0 ('x_ref')`."""
    role = {"in": "input", "out": "output"}.get(window.role, window.role)
    return f"{role} {window.number} ('{window.name}')"


def location_of_map(kernel: Kernel, window: Window) -> ir.Location | None:
    """The first operation of a window's index map that has a place."""
    function = kernel.functions.get(window.transform or "")
    if function is None:
        return None
    operations = function.regions[0].blocks[0].operations
    return next((op.operation.location for op in operations if first_place(op.operation)), None)
