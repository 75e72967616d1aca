"""Looking at every launch: those in loops get a plan or a remark with the reason why not."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from mosaic_grid.batching.body import NAME
from mosaic_grid.batching.loop import Loop, recognize, widened
from mosaic_grid.batching.plan import Plan, make_plan
from mosaic_grid.branches import Branch, branch_of
from mosaic_grid.dataflow.control import Function, functions_of
from mosaic_grid.dataflow.loop_bodies import loop_around
from mosaic_grid.dataflow.outer import OuterScalars
from mosaic_grid.diagnostics import Diagnostic, Severity, first_place, note, place_of
from mosaic_grid.objections import Objection
from mosaic_grid.program import Launch, Program


@dataclasses.dataclass
class Planner:
    """Plans for the loops of a program, remarks on those that stay, and why other kernels are left alone."""

    program: Program
    contracts: Sequence[str] = ()
    remarks: list[Diagnostic] = dataclasses.field(default_factory=list[Diagnostic])
    left: dict[str, str] = dataclasses.field(default_factory=dict[str, str])

    def plans(self, launches: Sequence[Launch]) -> list[Plan]:
        """The plans for those of the launches that are alone in a loop over a batch. Nothing is changed."""
        found: list[Plan] = []
        looped = [launch for launch in launches if loop_around(launch.op) is not None and not self._steps_in(launch)]
        for launch in launches:
            reason = "its loop is for more steps than can be counted" if self._steps_in(launch) else "it is in no loop"
            self.left.setdefault(launch.kernel.name, reason)
        if not looped:
            return found
        functions = functions_of(self.program.module)
        scalars = OuterScalars(self.program.module, self.contracts)
        for launch in looped:
            plan, stays = _plan(launch, functions, scalars)
            if isinstance(plan, Objection):
                self.remarks.append(_refusal(launch, plan))
                continue
            found.append(plan)
            if stays is not None:
                self.remarks.append(_refusal(launch, stays, outer=True))
        return found

    def _steps_in(self, launch: Launch) -> bool:
        """Whether the loop around a launch only steps in for the one launch beside it, which an earlier run made."""
        loop = loop_around(launch.op)
        branch = branch_of(loop) if loop is not None else None
        if branch is None or branch.number:
            return False
        beside = (each for each in self.program.launches if branch_of(each.op) == Branch(branch.choice, 1))
        return any(each.kernel.name == launch.kernel.name for each in beside)


def _plan(
    launch: Launch, functions: Mapping[str, Function], scalars: OuterScalars
) -> tuple[Plan | Objection, Objection | None]:
    """The plan for as many loops around a launch as there is one for, and why the loop around those stays, if any."""
    loop = recognize(launch, functions)
    if isinstance(loop, Objection):
        return loop, None
    loops = [loop]
    while isinstance(stays := widened(loops[-1], functions), Loop):
        loops.append(stays)
    plan: Plan | Objection = make_plan(loops.pop(), scalars)
    while isinstance(plan, Objection) and loops:
        stays = plan
        plan = make_plan(loops.pop(), scalars)
    return plan, stays


def _refusal(launch: Launch, objection: Objection, *, outer: bool = False) -> Diagnostic:
    """Why a loop stays: the one around the launch, or an outer one around what becomes one launch."""
    kept = "become one, but stay in the loop around it" if outer else "can't be made one"
    message = f"the launches of '{launch.kernel.name}' in a loop {kept}: {objection.reason}"
    place = place_of(objection.location) or place_of(launch.op.location) or first_place(launch.kernel.body)
    advice = note(f"the {'outer ' if outer else ''}loop is left as it was")
    return Diagnostic(Severity.REMARK, message, place, NAME, (advice,), launch.kernel.name)
