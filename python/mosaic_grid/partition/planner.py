"""The plans of a program's launches, all made before anything is changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from jaxlib.mlir import ir

from mosaic_grid import symbolic
from mosaic_grid.branches import branch_of
from mosaic_grid.dataflow.outer import OuterScalars
from mosaic_grid.diagnostics import Diagnostic, Severity, first_place, note, place_of
from mosaic_grid.grid import Semantics
from mosaic_grid.ir_types import Value
from mosaic_grid.objections import Assumption, Judgement
from mosaic_grid.partition.cost import linearizing_pays
from mosaic_grid.partition.fitness import unfit_kernel, unfit_launch
from mosaic_grid.partition.plan import BoundFacts, Nothing, Option, Strategy, make_option, runs_to_share
from mosaic_grid.program import Kernel, Launch, Program


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a launch becomes: it picks one of the options; none are left where it stays as it is."""

    launch: Launch
    options: tuple[Option, ...]


@dataclasses.dataclass
class Planner:
    """Plans launches one by one, and collects what there is to say; a kernel is judged once."""

    program: Program
    scalars: OuterScalars
    cores: int
    strategy: Strategy
    remarks: list[Diagnostic] = dataclasses.field(default_factory=list[Diagnostic])
    left: dict[str, str] = dataclasses.field(default_factory=dict[str, str])
    """Why kernels, by name, have nothing to share."""

    def __post_init__(self) -> None:
        """Groups the launches by kernel."""
        self._spoken_of: set[str] = set()
        self._judgements: dict[tuple[str, tuple[int, ...]], Judgement] = {}
        self._launches: dict[str, list[Launch]] = {}
        self._shared = {
            (branch.choice, launch.kernel.name)
            for launch in self.program.launches
            if launch.kernel.grid and launch.kernel.grid[0].semantics is Semantics.CORE_PARALLEL
            if (branch := branch_of(launch.op))
        }
        for launch in self.program.launches:
            self._launches.setdefault(launch.kernel.symbol, []).append(launch)

    def plan(self, launch: Launch) -> Plan:
        """The splits that keep the meaning of this launch and are worth having."""
        kernel = launch.kernel
        runs = runs_to_share(kernel.grid, self.cores, self.strategy)
        if not kernel.on_tensor_core:
            runs = Nothing("it runs on the SparseCores")
        elif self.is_fallback(launch):
            runs = Nothing("it is the fallback of a shared kernel")
        if isinstance(runs, Nothing):
            self.left[kernel.name] = runs.reason
            return Plan(launch, ())
        facts = {axis: self._facts(bound) for axis, bound in launch.bounds.items()}
        sound = [axes for axes in runs if not self.judge(kernel, axes).objections]
        options = [make_option(kernel.grid, axes, self.cores, facts) for axes in sound]
        # a static split that isn't proved has more steps than 32 bits count; there is nothing to compare at run time
        countable = [option for option in options if option.split.dynamic_axes or not option.guarded]
        plan = Plan(launch, tuple(self._worth_having(kernel, countable, facts)))
        if kernel.symbol not in self._spoken_of:
            self._spoken_of.add(kernel.symbol)
            self._speak_of(kernel, runs, plan)
        return plan

    def is_fallback(self, launch: Launch) -> bool:
        """Whether the launch only steps in for a shared one beside it: sharing it too would make dead code."""
        branch = branch_of(launch.op)
        return branch is not None and branch.number == 0 and (branch.choice, launch.kernel.name) in self._shared

    def refuses(self, kernel: Kernel, axes: tuple[int, ...]) -> bool:
        """Whether something speaks against changing where the steps of these dimensions run; the remark says what."""
        judgement = self.judge(kernel, axes)
        self.remarks += _refusal(kernel, axes, judgement)
        return bool(judgement.objections)

    def _speak_of(self, kernel: Kernel, runs: Sequence[tuple[int, ...]], plan: Plan) -> None:
        """Why dimensions aren't shared, and what is taken on trust where they are."""
        shared = [option.split.axes for option in plan.options]
        for axes in runs:
            if len(axes) == 1 or not shared:
                others = () if shared else self._others(kernel, runs)
                self.remarks += _refusal(kernel, axes, self.judge(kernel, axes), shared, others)
        trusted: dict[tuple[str, ...], list[tuple[int, ...]]] = {}
        for axes in shared:
            trusted.setdefault(tuple(a.claim for a in self.judge(kernel, axes).assumptions), []).append(axes)
        for along in trusted.values():
            self.remarks += trust_in(kernel, along, self.judge(kernel, along[0]).assumptions)

    def _others(self, kernel: Kernel, runs: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """Dimensions that nobody called parallel, and whose steps are proved independent."""
        asked = {axis for axes in runs for axis in axes}
        several = [axis for axis, dimension in enumerate(kernel.grid) if dimension.bound not in (0, 1)]
        return tuple(axis for axis in several if axis not in asked and not self.judge(kernel, (axis,)).objections)

    def _facts(self, bound: Value) -> BoundFacts:
        value = self.scalars.evaluate(bound)
        known = self.scalars.range_of(value)
        return BoundFacts(known.lo, known.hi, symbolic.divisor_of(value))

    def judge(self, kernel: Kernel, axes: tuple[int, ...]) -> Judgement:
        """What speaks against running the steps of these dimensions on different cores."""
        key = (kernel.symbol, axes)
        if key not in self._judgements:
            from mosaic_grid import legality  # brings isl, which only a kernel worth sharing should load
            from mosaic_grid.legality.launches import most_steps

            launches = self._launches.get(kernel.symbol, [])
            unfit = unfit_launch(launches) or unfit_kernel(kernel)
            self._judgements[key] = (
                Judgement((unfit,))
                if unfit
                else legality.judge(kernel, axes, launches, most_steps(launches, self.scalars))
            )
        return self._judgements[key]

    def _worth_having(
        self, kernel: Kernel, options: list[Option], facts: Mapping[int, BoundFacts]
    ) -> tuple[Option, ...]:
        """Under `auto`, drops the option that counts several dimensions together where its divisions don't pay."""
        if self.strategy != "auto":
            return tuple(options)
        single = [option for option in options if len(option.split.axes) == 1]
        joint = [option for option in options if len(option.split.axes) > 1]
        paying = [option for option in joint if not single or linearizing_pays(kernel, option.split, facts)]
        return (*single, *paying)


def _refusal(
    kernel: Kernel,
    axes: tuple[int, ...],
    judgement: Judgement,
    instead: Sequence[tuple[int, ...]] = (),
    others: tuple[int, ...] = (),
) -> list[Diagnostic]:
    message = f"the kernel '{kernel.name}' can't be shared between cores along {_named(axes)}"
    reasons = [(objection.reason, objection.location) for objection in judgement.objections]
    outcome = f"it is shared along {_named(instead[0])}" if instead else "the kernel is left as it was"
    advice = [*judgement.advice]
    if others:
        told = f"{_named(others)} can be shared instead: the steps are proved independent, so call "
        advice.append(told + f"{'them' if len(others) > 1 else 'it'} parallel, or run infer-parallel first")
    notes = [note(text) for text in (outcome, *advice)]
    return [_remark(kernel, message, reasons, "not-partitioned", notes)] if reasons else []


def trust_in(kernel: Kernel, along: Sequence[tuple[int, ...]], assumptions: Sequence[Assumption]) -> list[Diagnostic]:
    """What is to be said of a kernel that is shared along these dimensions if the assumptions hold; of none nothing."""
    dimensions = " or ".join(_named(axes) for axes in along)
    message = f"the kernel '{kernel.name}' is shared along {dimensions} on its author's word"
    claims = [(assumption.claim, assumption.location) for assumption in assumptions]
    return [_remark(kernel, message, claims, "parallel-on-trust", [])] if claims else []


def _named(axes: tuple[int, ...]) -> str:
    return f"dimension{'s' if len(axes) > 1 else ''} {' and '.join(map(str, axes))}"


def _remark(
    kernel: Kernel, message: str, reasons: Sequence[tuple[str, ir.Location]], name: str, advice: Sequence[Diagnostic]
) -> Diagnostic:
    """The first reason stands in the message and says where, the kernel does if it doesn't; the others are notes."""
    (first, location), *others = reasons
    notes = [note(f"and {reason}", place_of(at)) for reason, at in others]
    place = place_of(location) or first_place(kernel.body)
    return Diagnostic(Severity.REMARK, f"{message}: {first}", place, name, (*notes, *advice), kernel.name)
