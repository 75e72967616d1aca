"""The three answers to a question, and what shows that a claim is false."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Witness:
    """Where a claim fails: `values` of unknowns by name, `points` of the grid by role, and the `block` it is about.

    An index of the block that is only known at run time is its expression's text.
    """

    values: tuple[tuple[str, int], ...] = ()
    points: tuple[tuple[str, tuple[int, ...]], ...] = ()
    block: tuple[int | str, ...] | None = None

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
    """Neither is known, and why."""

    reason: str


Verdict = Proved | Refuted | Unknown


def listed(numbers: tuple[int | str, ...]) -> str:
    """`(1, 2)`, and `(1)` for one."""
    return f"({', '.join(map(str, numbers))})"
