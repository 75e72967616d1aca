"""A claim about a launch that is refuted: whenever the kernel runs, or with certain inputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.geometry import Geometry
from mosaic_grid.diagnostics import Severity
from mosaic_grid.legality.sharing import listed
from mosaic_grid.symbolic.problem import Grid
from mosaic_grid.ways import Ways


@dataclasses.dataclass(frozen=True)
class Finding:
    """What fails: whenever the kernel runs if `always`, else with the witness's values."""

    witness: sym.Witness
    always: bool

    @property
    def severity(self) -> Severity:
        """An error is what happens in any case."""
        return Severity.ERROR if self.always else Severity.WARNING

    @property
    def where(self) -> str:
        """`with n = 9 `, before what happens then; where arithmetic has to overflow for it, that too."""
        values = " and ".join(f"{name} = {value}" for name, value in self.witness.values)
        overflow = self.witness.overflow
        if not values or self.always:
            return f"as {overflow}, " if overflow else ""
        return f"with {values}, where {overflow}, " if overflow else f"with {values} "

    def otherwise(self, ways: Ways) -> str:
        """What there is to do besides a change of the kernel; empty where nothing is."""
        if self.always:
            return ""
        enough = self.witness.enough
        how = f"as with {ways.promise(str(enough))}" if enough else f"with {ways.promising}"
        return f"promise what the inputs can be, {how}"

    @property
    def block(self) -> str:
        """The block that it is about."""
        return listed(self.witness.block or ())

    @property
    def shown(self) -> str:
        """What the witness shows, without parentheses."""
        return ", ".join(map(str, self.witness.block or ()))


EFFORT = 6_000
"""How many of isl's operations a part of a question may take: there are many kernels, and most questions are easy."""


def ask(
    geometry: Geometry, question: Callable[[Grid], sym.Verdict], strict: bool = True, inputs: bool = True
) -> Finding | sym.Unknown | None:
    """What fails, whatever the inputs are or else with some; None where nothing does.

    Without `strict` nothing may fail where the answer is `Unknown`, and without `inputs` what fails with some of them
    isn't looked for: that takes less time.
    """
    verdict = question(dataclasses.replace(geometry.whatever_the_inputs, proofs=strict))
    always = isinstance(verdict, sym.Refuted)
    if isinstance(verdict, sym.Unknown) and inputs and geometry.has_inputs:
        verdict = question(dataclasses.replace(geometry.grid, proofs=strict, explains=True))
    match verdict:
        case sym.Refuted(witness):
            return Finding(witness, always)
        case sym.Unknown(reason) if strict:
            return sym.Unknown(reason, _enough(geometry, question))
        case sym.Unknown():
            return verdict
    return None


def _enough(geometry: Geometry, question: Callable[[Grid], sym.Verdict]) -> sym.Enough | None:
    """What would be enough to promise of an array of which nobody has promised anything."""
    if geometry.readable <= geometry.grid.arrays:
        return None
    verdict = question(dataclasses.replace(geometry.grid, arrays=geometry.readable, explains=True))
    return verdict.witness.enough if isinstance(verdict, sym.Refuted) else None
