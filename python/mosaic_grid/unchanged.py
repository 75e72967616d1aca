"""What a rewrite says where it has found nothing to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxlib.mlir import ir

from mosaic_grid.diagnostics import Diagnostic, Severity, place_of

_NAMES_TOLD = 3


def nothing_done(name: str, reasons: Mapping[str, str], program: ir.Operation, diagnostic: str) -> Diagnostic:
    """One remark of the pass `name` for the whole program, from a reason for each kernel: of many kernels there may be
    nothing to say of any.
    """
    kernels: dict[str, list[str]] = {}
    for kernel, reason in reasons.items():
        kernels.setdefault(reason, []).append(f"'{kernel}'")
    groups = [f"{reason} ({_several(names)})" for reason, names in kernels.items()]
    told = "; ".join(groups) or "there is no kernel to work on"
    return Diagnostic(Severity.REMARK, f"{name} changed nothing: {told}", place_of(program.location), diagnostic)


def _several(names: Sequence[str]) -> str:
    more = len(names) - _NAMES_TOLD
    return ", ".join(names[:_NAMES_TOLD]) + (f" and {more} more" if more > 0 else "")
