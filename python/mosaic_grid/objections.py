"""What an analysis has to say against a rewrite, and what the rewrite would take on trust."""

from __future__ import annotations

import dataclasses

from jaxlib.mlir import ir


@dataclasses.dataclass(frozen=True)
class Objection:
    """Why not: a clause in lower case, at the operation at fault.

    A `certain` one would change results wherever the split dimension has two steps; the others could not be excluded.
    `name` is the diagnostic's in the catalogue. `steps` are two that show it, where the reason names them.
    """

    reason: str
    location: ir.Location
    certain: bool
    name: str
    steps: tuple[tuple[int, ...], tuple[int, ...]] | None = None


@dataclasses.dataclass(frozen=True)
class Assumption:
    """What is taken from the word "parallel" instead of being proved, as a clause."""

    claim: str
    location: ir.Location
    name: str


@dataclasses.dataclass(frozen=True)
class Judgement:
    """All that speaks against a rewrite, and all it takes on trust."""

    objections: tuple[Objection, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
