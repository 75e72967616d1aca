"""What a run of the tool shares between its passes: the target, which kernels to work on, and what has been said."""

from __future__ import annotations

import dataclasses
import fnmatch

from mosaic_grid.diagnostics import Diagnostic, Severity
from mosaic_grid.selection import Selection
from mosaic_grid.targets import Target
from mosaic_grid.ways import BY_FLAGS, Ways


@dataclasses.dataclass
class Session:
    """One run over one program.

    `kernels` are glob patterns of kernel names; none means every kernel. `contracts` are promises about the arguments
    of the program, as texts. `ways` are those that notes speak of. Diagnostics that `selection` leaves in are collected
    in the order in which they were emitted; printing them is the caller's business.
    """

    target: Target | None = None
    kernels: tuple[str, ...] = ()
    contracts: tuple[str, ...] = ()
    diagnostics: list[Diagnostic] = dataclasses.field(default_factory=list[Diagnostic])
    selection: Selection = dataclasses.field(default_factory=Selection)
    ways: Ways = BY_FLAGS

    def emit(self, diagnostic: Diagnostic) -> None:
        """Records one diagnostic, if it is to be reported."""
        selected = self.selection.apply(diagnostic)
        if selected is not None:
            self.diagnostics.append(selected)

    def selects(self, kernel: str) -> bool:
        """Whether passes may look at the kernel of this name."""
        return not self.kernels or any(fnmatch.fnmatchcase(kernel, pattern) for pattern in self.kernels)

    @property
    def failed(self) -> bool:
        """Whether an error has been diagnosed: the command line then exits with 1."""
        return any(d.severity is Severity.ERROR for d in self.diagnostics)
