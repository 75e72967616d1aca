"""What a launch becomes, decided before anything is changed."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence

from mosaic_grid.grid import I32_MAX, Dimension, Semantics
from mosaic_grid.partition.split import Split, fusable
from mosaic_grid.program import Launch
from mosaic_grid.variants.known import Entry


@dataclasses.dataclass(frozen=True)
class Steps:
    """The bounds of one dimension that a variant runs: from `low` to `bound`, which is its static one.

    Where they differ the variant is *guarded*: its steps beyond the true bound do nothing.
    """

    axis: int
    low: int
    bound: int

    @property
    def guarded(self) -> bool:
        """Whether it runs several bounds."""
        return self.low != self.bound

    def __str__(self) -> str:
        return f"{self.low}..{self.bound}" if self.guarded else str(self.bound)


@dataclasses.dataclass(frozen=True)
class Variant:
    """A kernel with static bounds in place of dynamic ones; the dimensions in `ordered` are made arbitrary.

    `known` are the entries of scalar-prefetch operands that are constants with these bounds. Where there are several
    `cores` the first guarded dimension is shared between them: then the loop of each core is static, and goes beyond
    its share of the true bound.
    """

    steps: tuple[Steps, ...]
    ordered: frozenset[int] = frozenset()
    known: tuple[Entry, ...] = ()
    cores: int = 1

    @property
    def axes(self) -> frozenset[int]:
        """The dimensions that become static."""
        return frozenset(steps.axis for steps in self.steps)

    @property
    def guarded(self) -> tuple[Steps, ...]:
        """Those whose true bound the kernel must be told, outermost first."""
        return tuple(steps for steps in self.steps if steps.guarded)

    @property
    def shared(self) -> Steps | None:
        """The guarded dimension that is shared between several cores."""
        return self.guarded[0] if self.cores > 1 else None

    def split(self, original: Sequence[Dimension]) -> Split | None:
        """How the variant shares its `grid`, if it does; each core's loop, dynamic in the split, is `longest_share`."""
        if self.shared is None:
            return None
        grid, axes = self.grid(original), (self.shared.axis,)
        return Split(grid, self.cores, axes, fusable(grid, axes), even=False)

    def longest_share(self, split: Split) -> int:
        """The most steps that a core gets of the shared dimension and those fused with it."""
        assert self.shared is not None, "nothing is shared"
        return -(-self.shared.bound // self.cores) * split.fused_steps

    def grid(self, original: Sequence[Dimension]) -> tuple[Dimension, ...]:
        """The grid of the variant of a kernel; a dimension that it shares itself is still dynamic here.

        From the first guarded dimension on all are arbitrary: a step that does nothing keeps the blocks of the step
        before it, which has to be one of the same core.
        """
        bounds: dict[int, int | None] = {steps.axis: steps.bound for steps in self.steps}
        if self.shared is not None:
            bounds[self.shared.axis] = None
        first = min((steps.axis for steps in self.guarded), default=len(original))
        return tuple(
            Dimension(
                bounds.get(axis, dimension.bound),
                Semantics.ARBITRARY if axis >= first or axis in self.ordered else dimension.semantics,
            )
            for axis, dimension in enumerate(original)
        )

    def text(self, original: Sequence[Dimension]) -> str:
        """The grid in words: `(8, ?)`, and `(9..16, 4)` for a guarded one."""
        told = {steps.axis: str(steps) for steps in self.steps}
        return f"({', '.join(told.get(axis, str(dimension)) for axis, dimension in enumerate(original))})"


@dataclasses.dataclass(frozen=True)
class Plan:
    """A launch with its variants; `complete` where it is proved that one of them always fits."""

    launch: Launch
    variants: tuple[Variant, ...]
    complete: bool


@dataclasses.dataclass(frozen=True)
class Possible:
    """The values that a bound can have: multiples of `divisor` from `low` to `high`."""

    low: int
    high: int
    divisor: int = 1

    def __contains__(self, value: int) -> bool:
        return self.low <= value <= self.high and value % max(self.divisor, 1) == 0

    def __len__(self) -> int:
        """How many they are."""
        step = max(self.divisor, 1)
        return max(0, self.high // step - -(-self.low // step) + 1)

    @property
    def highest(self) -> int:
        """The largest one."""
        step = max(self.divisor, 1)
        return self.high // step * step

    def all(self) -> range:
        """They themselves."""
        step = max(self.divisor, 1)
        return range(-(-self.low // step) * step, self.high + 1, step)


def exact(axis: int, values: Sequence[int]) -> tuple[Steps, ...]:
    """One bound a variant."""
    return tuple(Steps(axis, value, value) for value in values)


def buckets(axis: int, ends: Sequence[int], possible: Possible) -> tuple[Steps, ...]:
    """Every bound from the least possible one to the last end; a bucket of one possible bound needs no guard."""
    found: list[Steps] = []
    low = max(1, possible.low)
    for end in sorted(ends):
        if low <= end:
            only = Possible(low, end, possible.divisor)
            found.append(Steps(axis, end if len(only) == 1 and end in only else low, end))
        low = end + 1
    return tuple(found)


def combined(grid: Sequence[Dimension], choices: Sequence[Sequence[Steps]]) -> list[tuple[Steps, ...]]:
    """Every combination of one choice for each dimension that the compiler takes.

    Established with libtpu: it fails on static bounds whose product is 2**31 - 1 or more.
    """
    fixed = math.prod(max(dimension.bound, 1) for dimension in grid if dimension.bound is not None)
    return [steps for steps in itertools.product(*choices) if fixed * math.prod(step.bound for step in steps) < I32_MAX]


def covers(variants: Sequence[Variant], possible: Mapping[int, Possible]) -> bool:
    """Whether each possible combination of bounds is one of some variant."""
    if not variants:
        return False
    axes = sorted(variants[0].axes)
    counts = [len(possible[axis]) for axis in axes]
    taken = sum(
        math.prod(len(Possible(step.low, step.bound, possible[step.axis].divisor)) for step in variant.steps)
        for variant in variants
    )
    # variants are disjoint, and each holds possible bounds only
    return taken == math.prod(counts)
