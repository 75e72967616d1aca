"""What an analysis has to say against a rewrite, and what the rewrite would take on trust."""

from __future__ import annotations

import dataclasses

from jaxlib.mlir import ir


@dataclasses.dataclass(frozen=True)
class Objection:
    """Why not: a clause in lower case, at the operation at fault.

    A `certain` one would change results wherever the split dimension has two steps; the others could not be excluded.
    `name` is the diagnostic's in the catalogue. `steps` are two that show it, where the reason names them. `advice` is
    how to write the kernel so that nothing stands in the way, empty where that isn't known.
    """

    reason: str
    location: ir.Location
    certain: bool
    name: str
    steps: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    advice: str = ""


@dataclasses.dataclass(frozen=True)
class Assumption:
    """What is taken from the word "parallel" instead of being proved, as a clause.

    `why` it isn't proved is a clause, too, empty where there is no more to say.
    """

    claim: str
    location: ir.Location
    name: str
    why: str = ""


@dataclasses.dataclass(frozen=True)
class Judgement:
    """All that speaks against a rewrite, and all it takes on trust."""

    objections: tuple[Objection, ...] = ()
    assumptions: tuple[Assumption, ...] = ()

    @property
    def advice(self) -> tuple[str, ...]:
        """What all objections advise, each once."""
        return tuple(dict.fromkeys(each.advice for each in self.objections if each.advice))
