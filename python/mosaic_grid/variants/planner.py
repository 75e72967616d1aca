"""Which bounds of a program's launches get variants: the plans, all made before anything is changed."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence

from mosaic_grid import symbolic
from mosaic_grid.dataflow.outer import OuterScalars
from mosaic_grid.diagnostics import Diagnostic, Severity, first_place, note
from mosaic_grid.grid import Semantics
from mosaic_grid.partition.fitness import unfit_kernel, unfit_launch
from mosaic_grid.partition.planner import Planner as Sharing
from mosaic_grid.partition.planner import trust_in
from mosaic_grid.program import Kernel, Launch, Program
from mosaic_grid.variants.known import Entry, known_entries
from mosaic_grid.variants.plan import Plan, Possible, Steps, Variant, buckets, combined, covers, exact
from mosaic_grid.variants.wishes import Ladder, Wish

LONGEST_LADDER = 2**16
"""A bound above says nothing of the bounds that occur, and a ladder up to it would be of them."""

MOST_POINTS = 2**12
"""How many combinations of named values are looked at: many give the same bound, few are variants."""


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What the options of the pass ask for; `cores` is how many the compiler shares a static dimension between.

    `shares` is whether guarded variants are made for so many cores: no other chip takes them.
    """

    wishes: tuple[Wish, ...]
    ladder: Ladder | None
    budget: int
    round_up: bool
    cores: int
    shares: bool


@dataclasses.dataclass
class Planner:
    """Plans launches one by one, and collects what there is to say, once of each kernel."""

    program: Program
    scalars: OuterScalars
    wanted: Wanted
    remarks: list[Diagnostic] = dataclasses.field(default_factory=list[Diagnostic])
    left: dict[str, str] = dataclasses.field(default_factory=dict[str, str])
    """Why kernels, by name, have no variants."""

    def __post_init__(self) -> None:
        """Nothing is planned yet."""
        self._sharing = Sharing(self.program, self.scalars, self.wanted.cores, "split")
        self._met: set[Wish] = set()
        self._ordered: dict[tuple[str, int], bool] = {}
        self._told: set[tuple[str, str]] = set()

    def plans(self, launches: Sequence[Launch]) -> list[Plan]:
        """The plans of these launches; of a launch that stays as it is there is none."""
        found: list[Plan] = []
        for launch in launches:
            plan = self._plan(launch)
            if isinstance(plan, Plan):
                found.append(plan)
            else:
                self.left[launch.kernel.name] = plan
        for wish in self.wanted.wishes:
            if wish.key and wish not in self._met:
                message = f"specialize-grid has values for '{wish}', but no kernel has such a dynamic bound"
                notes = tuple(map(note, self._known(launches)))
                self.remarks.append(Diagnostic(Severity.REMARK, message, None, "no-such-bound", notes))
        return found

    def _known(self, launches: Iterable[Launch]) -> list[str]:
        bounds = [
            f"'{launch.kernel.name}' has dimension {axis}: {self.scalars.evaluate(bound)}"
            for launch in launches
            for axis, bound in launch.bounds.items()
        ]
        return list(dict.fromkeys(bounds)) or ["no bound is dynamic"]

    def _plan(self, launch: Launch) -> Plan | str:
        """The plan of one launch, or why there is none."""
        kernel = launch.kernel
        choices = {axis: values for axis in launch.bounds if (values := self._values(launch, axis))}
        if reason := self._unfit(launch):
            return reason
        if not choices:
            return self.left.get(kernel.name, "no value of its bounds is asked for")
        possible = {axis: self._possible(launch, axis) for axis in launch.bounds}
        steps = self._without_idle_cores(kernel, self._steps(choices, possible))
        combinations = combined(kernel.grid, list(steps.values()))
        asked = len(combinations)
        # of a ladder the upper rungs are where the work is; what was asked for goes in the order in which it was
        kept = combinations[: self.wanted.budget] if self.wanted.wishes else combinations[-self.wanted.budget :]
        if asked > len(kept):
            gets = f"{len(kept)} of {asked} variants"
            self._say(kernel, f"the kernel '{kernel.name}' gets {gets}: more exceed the budget")
        if not kept:
            return "none of the values that are asked for can occur"
        kept.sort(key=lambda each: [step.bound for step in each])
        variants = tuple(self._variant(launch, each) for each in kept)
        if reason := self._loses_cores(kernel, variants):
            return reason
        return Plan(launch, variants, covers(variants, possible))

    def _unfit(self, launch: Launch) -> str | None:
        """Why the launch can't be replaced, whatever its values."""
        kernel = launch.kernel
        if not launch.bounds:
            return "its grid is static"
        if self._sharing.is_fallback(launch):
            return "it is the fallback of a shared kernel"
        unfit = unfit_launch([launch])
        if unfit is None and self.wanted.round_up:
            if not kernel.on_tensor_core:
                return "it runs on the SparseCores, whose steps aren't guarded"
            unfit = unfit_kernel(kernel)
        return unfit.reason if unfit else None

    def _values(self, launch: Launch, axis: int) -> tuple[int, ...]:
        """The values of a bound that are asked for, in order; none where it stays dynamic."""
        kernel = launch.kernel
        named = [wish for wish in self.wanted.wishes if wish.concerns(kernel.name)]
        given = {wish: self._given(launch, axis, wish, named) for wish in named}
        self._met.update(wish for wish, values in given.items() if values is not None)
        if kernel.grid[axis].semantics in (Semantics.CORE_PARALLEL, Semantics.SUBCORE_PARALLEL):
            semantics = kernel.grid[axis].semantics.value
            self.left[kernel.name] = f"dimension {axis} is {semantics}: it counts cores, not steps"
            return ()
        values = [value for each in given.values() if each is not None for value in each]
        if values:
            return tuple(dict.fromkeys(values))
        if self.wanted.wishes and self.wanted.ladder is None:
            return ()
        return self._rungs(launch, axis)

    def _given(self, launch: Launch, axis: int, wish: Wish, others: Sequence[Wish]) -> list[int] | None:
        """What a wish says of a bound; `None` where it is about another.

        A name is that of an unknown in the bound: its values, with those of other names, are put into the expression.
        """
        if not wish.key or wish.dimension is not None:
            return list(wish.values) if wish.dimension in (None, axis) else None
        bound = self.scalars.evaluate(launch.bounds[axis])
        leaves = symbolic.leaves_of(bound)
        if wish.key not in map(_name, leaves):
            return None
        values = [next((each.values for each in others if each.key == _name(leaf)), ()) for leaf in leaves]
        points = itertools.islice(itertools.product(*values), MOST_POINTS)
        return [symbolic.value_of(bound, dict(zip(leaves, point, strict=True))) for point in points]

    def _rungs(self, launch: Launch, axis: int) -> tuple[int, ...]:
        """The values of a ladder, or all of a range that is small."""
        ladder, budget = self.wanted.ladder, self.wanted.budget
        possible = self._possible(launch, axis)
        positive = dataclasses.replace(possible, low=max(possible.low, 1))
        if (ladder is None or ladder.automatic) and len(positive) <= budget:
            return tuple(positive.all())
        known = f"the bound of dimension {axis} is {self.scalars.evaluate(launch.bounds[axis])}"
        if ladder is None:
            values = f"in [{possible.low}, {possible.high}]"
            reason = f"{values}: more values than the budget of {budget}; a contract may say less"
            self.left[launch.kernel.name] = f"{known}, {reason}"
            return ()
        if possible.high > LONGEST_LADDER:
            reason = f"and at most {possible.high} for all that is known: a contract may say more"
            self.left[launch.kernel.name] = f"{known}, {reason}"
            return ()
        rungs = ladder.rungs(positive.low, possible.high)
        return tuple(dict.fromkeys([*rungs, possible.high])) if self.wanted.round_up else tuple(rungs)

    def _steps(
        self, choices: Mapping[int, Sequence[int]], possible: Mapping[int, Possible]
    ) -> dict[int, tuple[Steps, ...]]:
        """What the variants run of each dimension."""
        found: dict[int, tuple[Steps, ...]] = {}
        for axis, values in choices.items():
            if self.wanted.round_up:
                highest = possible[axis].highest
                ends = sorted({min(value, highest) for value in values if value >= 1 and highest >= 1})
                found[axis] = buckets(axis, ends[-self.wanted.budget :], possible[axis])
            else:
                found[axis] = exact(axis, [value for value in values if value >= 1 and value in possible[axis]])
        return found

    def _without_idle_cores(
        self, kernel: Kernel, steps: Mapping[int, tuple[Steps, ...]]
    ) -> dict[int, tuple[Steps, ...]]:
        """The steps less the bounds that leave a core without one, where guarded variants share a dimension."""
        axis = min((axis for axis, each in steps.items() if any(step.guarded for step in each)), default=None)
        if axis is None or not self._is_shared(kernel, axis, steps):
            return dict(steps)
        cores = self.wanted.cores
        enough = (
            Steps(axis, max(step.low, cores), step.bound) if step.guarded and step.bound >= cores else step
            for step in steps[axis]
        )
        return {**steps, axis: tuple(enough)}

    def _is_shared(self, kernel: Kernel, axis: int, axes: Collection[int]) -> bool:
        """Whether variants that make `axes` static, the first guarded one of which is `axis`, share it between cores.

        They do where its steps are independent, no dimension outside it is shared by the compiler, and none by the
        kernel's author.
        """
        by_compiler = any(
            dimension.is_parallel and dimension.bound != 1 and (dimension.bound is not None or outer in axes)
            for outer, dimension in enumerate(kernel.grid[:axis])
        )
        by_author = any(dimension.semantics is Semantics.CORE_PARALLEL for dimension in kernel.grid)
        several = self.wanted.shares and self.wanted.cores > 1 and kernel.on_tensor_core
        if not several or by_compiler or by_author or not kernel.grid[axis].is_parallel:
            return False
        return not self._is_ordered(kernel, axis)

    def _variant(self, launch: Launch, steps: tuple[Steps, ...]) -> Variant:
        kernel = launch.kernel
        variant = Variant(steps, self._in_order(kernel, steps), self._entries(launch, steps))
        first = next(iter(variant.guarded), None)
        shared = first and first.low >= self.wanted.cores and self._is_shared(kernel, first.axis, variant.axes)
        return dataclasses.replace(variant, cores=self.wanted.cores) if shared else variant

    def _possible(self, launch: Launch, axis: int) -> Possible:
        bound = self.scalars.evaluate(launch.bounds[axis])
        known = symbolic.range_of(bound)
        return Possible(known.lo, known.hi, symbolic.divisor_of(bound))

    def _entries(self, launch: Launch, steps: Iterable[Steps]) -> tuple[Entry, ...]:
        bounds = {step.axis: step.bound for step in steps if not step.guarded}
        return known_entries(launch, bounds, self.scalars)

    def _in_order(self, kernel: Kernel, steps: Iterable[Steps]) -> frozenset[int]:
        """The dimensions that have to be made arbitrary: the compiler would share them, and that isn't sound.

        It shares no dynamic dimension, so that a false `parallel` has gone unnoticed.
        """
        if self.wanted.cores == 1 or not kernel.on_tensor_core:
            return frozenset()
        parallel = [step.axis for step in steps if kernel.grid[step.axis].is_parallel and step.bound > 1]
        return frozenset(axis for axis in parallel if self._is_ordered(kernel, axis))

    def _is_ordered(self, kernel: Kernel, axis: int) -> bool:
        key = (kernel.symbol, axis)
        if key not in self._ordered:
            judgement = self._sharing.judge(kernel, (axis,))
            self._ordered[key] = bool(judgement.objections)
            if judgement.objections:
                message = f"the static variants of '{kernel.name}' aren't shared between cores along dimension {axis}"
                self._say(kernel, f"{message}: {judgement.objections[0].reason}", "not-partitioned")
            else:
                self.remarks += trust_in(kernel, [(axis,)], judgement.assumptions)
        return self._ordered[key]

    def _loses_cores(self, kernel: Kernel, variants: Sequence[Variant]) -> str | None:
        """Whether a guard takes from the compiler what it shares by itself."""
        if self.wanted.cores == 1 or not any(variant.guarded for variant in variants):
            return None
        shared = [axis for axis, d in enumerate(kernel.grid) if d.is_parallel and d.bound is not None and d.bound > 1]
        for variant in variants:
            grid = variant.grid(kernel.grid)
            if shared and variant.shared is None and not any(grid[axis].is_parallel for axis in shared):
                return f"a guard would keep the compiler from sharing dimension {shared[0]} between the cores"
        return None

    def _say(self, kernel: Kernel, message: str, name: str = "not-specialized") -> None:
        if (kernel.symbol, message) not in self._told:
            self._told.add((kernel.symbol, message))
            place = first_place(kernel.body)
            notes = (note("budget=N allows for more"),) if name == "not-specialized" else ()
            self.remarks.append(Diagnostic(Severity.REMARK, message, place, name, notes, kernel.name))


def _name(leaf: symbolic.Expr) -> str:
    """How a person names an unknown: MLIR's own names lose their sign."""
    return str(leaf).removeprefix("%")
