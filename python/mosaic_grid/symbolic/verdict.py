"""The three answers to a question, and what shows that a claim is false."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Enough:
    """A promise about one input that would be enough for a claim to hold: between these ends, None for none."""

    name: str
    lo: int | None
    hi: int | None

    def __str__(self) -> str:
        if self.lo is not None and self.lo == self.hi:
            return f"{self.name} == {self.lo}"
        if self.lo is None or self.hi is None:
            return f"{self.name} <= {self.hi}" if self.lo is None else f"{self.name} >= {self.lo}"
        return f"{self.lo} <= {self.name} <= {self.hi}"


@dataclasses.dataclass(frozen=True)
class Witness:
    """Where a claim fails: `values` of unknowns by name, `points` of the grid by role, and the `block` it is about.

    An index of the block that is only known at run time is its expression's text. `overflow` says which part of the
    program's arithmetic leaves its type there, and is empty where none does. `enough` is only given where it is asked
    for, and can be told.
    """

    values: tuple[tuple[str, int], ...] = ()
    points: tuple[tuple[str, tuple[int, ...]], ...] = ()
    block: tuple[int | str, ...] | None = None
    overflow: str = ""
    enough: Enough | None = None

    def __str__(self) -> str:
        parts = [f"{name} = {value}" for name, value in self.values]
        parts += [f"{role} step {listed(point)}" for role, point in self.points]
        if self.block is not None:
            parts.append(f"block {listed(self.block)}")
        return ", ".join(parts) or "always"


@dataclasses.dataclass(frozen=True)
class Proved:
    """It holds for every value of the unknowns."""


@dataclasses.dataclass(frozen=True)
class Refuted:
    """It fails as the witness says; one without values, where there are no unknowns."""

    witness: Witness = Witness()


@dataclasses.dataclass(frozen=True)
class Unknown:
    """Neither is known, and why; `enough` is a promise with which it would be proved, where somebody has asked."""

    reason: str
    enough: Enough | None = None


Verdict = Proved | Refuted | Unknown


def listed(numbers: tuple[int | str, ...]) -> str:
    """`(1, 2)`, and `(1)` for one."""
    return f"({', '.join(map(str, numbers))})"
