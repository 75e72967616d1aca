"""What to do about cores that idle, asked of the passes themselves: what they refuse isn't advised."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from mosaic_grid import resolve
from mosaic_grid.backend_config import ConfigError
from mosaic_grid.dataflow.outer import OuterScalars
from mosaic_grid.errors import UserError
from mosaic_grid.grid import Semantics
from mosaic_grid.objections import Judgement
from mosaic_grid.partition.plan import Nothing, runs_to_share
from mosaic_grid.partition.planner import Planner
from mosaic_grid.program import Kernel, Launch, Program
from mosaic_grid.summary.cores import axes_text
from mosaic_grid.summary.facts import Cores

Axes = tuple[int, ...]

_RESOLVES = "resolve-grid makes {} static, which is enough"
_LAUNCHED = ", in a program that launches it"


class Advisor:
    """Advises on kernels one by one; a kernel is analysed once, and only if it has dimensions to share."""

    def __init__(self, program: Program, scalars: OuterScalars, cores: int) -> None:
        """`cores` is how many one device has."""
        self._scalars = scalars
        self._planner = Planner(program, scalars, cores, "auto")
        self._told: dict[tuple[str, tuple[tuple[int, int], ...] | None], tuple[str, str]] = {}

    def advise(self, cores: Cores, kernel: Kernel, launch: Launch | None) -> Cores:
        """What the cores do, with what to do about it; `launch` is `None` for a kernel that nothing launches."""
        if not cores.waits:
            return cores
        constants = resolve.plan(launch, self._scalars).constants if launch else None
        key = (kernel.symbol, constants)
        if key not in self._told:
            try:
                tell = self._refit if cores.used is None else self._share
                self._told[key] = tell(kernel, dict(constants or ()), launch)
            except UserError as error:
                # a launch that can be described may still be none that can be rewritten
                self._told[key] = f"partition-cores can't work on it: {error.message}", ""
            except ConfigError as error:
                self._told[key] = f"partition-cores can't work on it: {error}", ""
        advice, otherwise = self._told[key]
        return dataclasses.replace(cores, advice=advice, otherwise=otherwise)

    def _share(self, kernel: Kernel, constants: dict[int, int], launch: Launch | None) -> tuple[str, str]:
        """Of a kernel with dynamic parallel dimensions and no static one: how all cores come to run it."""
        runs = runs_to_share(kernel.grid, self._planner.cores, "auto")
        if isinstance(runs, Nothing):
            return f"partition-cores leaves it alone: {runs.reason}", ""
        dynamic = [axes[0] for axes in runs if len(axes) == 1]
        enough = [axis for axis in dynamic if constants.get(axis, 0) >= 2]
        if enough and not any(_certain(self._judge(kernel, (axis,))) for axis in enough):
            return _RESOLVES.format(_named(enough, dynamic)), ""
        sound = self._sound(kernel, runs, launch)
        if not sound:
            judgement = self._judge(kernel, runs[0])
            unchecked = "" if _certain(judgement) else "with a static bound the compiler shares it unchecked"
            return f"partition-cores can't share {_named(dynamic, dynamic)}: {_reason(judgement)}", unchecked
        single = [axes[0] for axes in sound if len(axes) == 1]
        named = _named(single or list(sound[0]), dynamic)
        trusted = any(self._judge(kernel, axes).assumptions for axes in sound)
        how = ", on its author's word" if trusted else " between the cores"
        return (
            f"partition-cores shares {named}{how}{'' if launch else _LAUNCHED}",
            f"or make {_bounds(single, dynamic)} static",
        )

    def _refit(self, kernel: Kernel, constants: dict[int, int], launch: Launch | None) -> tuple[str, str]:
        """Of a kernel whose `core_parallel` bound isn't the number of cores: how it comes to compile."""
        cores, grid = self._planner.cores, kernel.grid
        every = [axis for axis, dimension in enumerate(grid) if dimension.semantics is Semantics.CORE_PARALLEL]
        looped = [axis for axis in every if _has_too_few_steps(grid[axis].bound, cores)]
        if len(every) == 1 and constants.get(every[0]) == cores:
            return _RESOLVES.format("it"), ""
        if len(looped) == 1:
            named, judgement = _named(looped, every), self._judge(kernel, (looped[0],))
            if judgement.objections:
                return f"partition-cores can't make {named} an ordinary loop: {_reason(judgement)}", ""
            return f"partition-cores makes {named} an ordinary loop", ""
        if len(every) > 1:
            return "make all but one of them parallel", ""
        judgement = self._judge(kernel, (every[0],))
        if not self._sound(kernel, [(every[0],)], launch):
            return f"partition-cores can't share it: {_reason(judgement)}", ""
        outcome = "makes it static" if grid[every[0]].bound is None else "makes it fit"
        trust = ", on its author's word" if judgement.assumptions else ""
        return f"partition-cores {outcome}{trust}{'' if launch else _LAUNCHED}", ""

    def _sound(self, kernel: Kernel, runs: Sequence[Axes], launch: Launch | None) -> list[Axes]:
        """The dimensions that the pass would share, or could if something launched the kernel."""
        if launch:
            return [option.split.axes for option in self._planner.plan(launch).options]
        return [axes for axes in runs if not self._judge(kernel, axes).objections]

    def _judge(self, kernel: Kernel, axes: Axes) -> Judgement:
        return self._planner.judge(kernel, axes)


def _has_too_few_steps(bound: int | None, cores: int) -> bool:
    """Whether `partition-cores` makes an ordinary loop of a `core_parallel` dimension that doesn't fit."""
    return bound != 1 if cores == 1 else bound is not None and bound < cores


def _certain(judgement: Judgement) -> bool:
    """Whether sharing would change results, by whomever it is done."""
    return any(objection.certain for objection in judgement.objections)


def _reason(judgement: Judgement) -> str:
    return next((o.reason for o in judgement.objections), "it has more steps than 32 bits count")


def _named(axes: Sequence[int], of: Sequence[int]) -> str:
    """The dimensions in the middle of a sentence that has named all of `of`."""
    if list(axes) != list(of):
        return axes_text(axes)
    return "it" if len(axes) == 1 else "them"


def _bounds(axes: Sequence[int], of: Sequence[int]) -> str:
    """Their bounds, in the same sentence."""
    if list(axes) != list(of):
        return "its bound" if len(axes) == 1 else "one of their bounds"
    return "the bound" if len(axes) == 1 else "a bound"
