"""The sanitizer: runs a program whose kernels are watched, and says what they do wrong.

Reading what nobody wrote is an error only if it matters: kernels load whole tiles and mask them. The program is run
again with other contents of the memory in question, and the results are compared bit for bit, any NaN being as good as
another. Zero is what they are compared with; NaN, a positive and a negative number are tried instead (`poison.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from mosaic_grid.cpu.arrays import Array
from mosaic_grid.cpu.faults import What
from mosaic_grid.cpu.poison import Fill
from mosaic_grid.cpu.records import Record
from mosaic_grid.cpu.roots import Root
from mosaic_grid.diagnostics import Diagnostic, Severity, place_of
from mosaic_grid.runner.differences import Tolerance, difference
from mosaic_grid.runner.findings import diagnostics_of
from mosaic_grid.runner.recorded import Recorded

_UNWRITTEN = (What.UNWRITTEN, What.OUTPUT)


@dataclasses.dataclass(frozen=True)
class Checked:
    """What the program returned, and what its kernels did wrong, errors first."""

    results: list[Array]
    diagnostics: list[Diagnostic]

    @property
    def failed(self) -> bool:
        """Whether there is an error among them."""
        return any(each.severity is Severity.ERROR for each in self.diagnostics)


def check(program: Recorded, arrays: Sequence[Array]) -> Checked:
    """Runs a program that records everything, as often as it takes."""
    observed = program.observe(arrays)
    suspects = [(record, fault.site.root) for record, fault in observed.faults if fault.site.what in _UNWRITTEN]
    dependence = _Dependence(program, arrays, frozenset().union(*(_codes(*suspect) for suspect in suspects)))
    told = diagnostics_of(observed.faults, lambda record, root: dependence.on(_codes(record, root)))
    unseen = "what is launched here isn't checked: no record of it can be handed on"
    lost = [Diagnostic(Severity.WARNING, unseen, place_of(each), "not-checked") for each in program.recording.lost]
    return Checked(observed.results, [*told, *lost])


def facts(diagnostic: Diagnostic) -> dict[str, Any]:
    """A diagnostic for scripts; the place is `None` where the program doesn't say it."""
    place = diagnostic.place
    return {
        "name": diagnostic.name,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "notes": [each.message for each in diagnostic.notes],
    }


def _codes(record: Record, root: Root) -> frozenset[int]:
    """The numbers of the codes that what is unwritten in a root may come from."""
    watch = record.watch
    if watch is None:
        return frozenset()
    origins = watch.masks.origins(root)
    return frozenset(watch.poison.roots[each] for each in origins if each in watch.poison.roots)


class _Dependence:
    """Which codes the results of a program depend on, on these arrays; `all` are those that may be asked for."""

    def __init__(self, program: Recorded, arrays: Sequence[Array], all: frozenset[int]) -> None:
        self._program = program
        self._arrays = arrays
        self._all = all
        self._known: dict[frozenset[int], bool] = {}

    def on(self, codes: frozenset[int]) -> bool:
        """Whether some result differs with what these codes choose."""
        if codes != self._all and not self.on(self._all):
            return False
        if codes not in self._known:
            fills = (Fill.NAN, Fill.HIGH, Fill.LOW) if codes else ()
            self._known[codes] = any(self._differs(codes, fill) for fill in fills)
        return self._known[codes]

    def _differs(self, codes: Iterable[int], fill: Fill) -> bool:
        others = self._program.observe(self._arrays, dict.fromkeys(codes, fill), Fill.ZERO).results
        exact = Tolerance()
        return any(difference(a, b, exact).count for a, b in zip(self._zeros, others, strict=True))

    @cached_property
    def _zeros(self) -> list[Array]:
        return self._program.observe(self._arrays, default=Fill.ZERO).results
