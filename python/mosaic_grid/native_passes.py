"""MLIR's own passes: which the installed jaxlib registers, checking and running them, and their diagnostics as ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import cast

from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager

from mosaic_grid.diagnostics import Diagnostic, Severity, place_of
from mosaic_grid.errors import Place, UserError
from mosaic_grid.pass_options import nearest
from mosaic_grid.pipeline_syntax import Item

NATIVE_PASSES = (
    "bubble-down-memory-space-casts",
    "canonicalize",
    "composite-fixed-point-pass",
    "control-flow-sink",
    "cse",
    "generate-runtime-verification",
    "inline",
    "loop-invariant-code-motion",
    "loop-invariant-subset-hoisting",
    "mem2reg",
    "mosaic-serde",
    "print-ir",
    "print-op-stats",
    "remove-dead-values",
    "sccp",
    "snapshot-op-locations",
    "sroa",
    "strip-debuginfo",
    "symbol-dce",
    "symbol-privatize",
    "topological-sort",
    "trivial-dce",
    "view-op-graph",
)
"""What jaxlib is known to register. MLIR has no call that lists them: the table serves suggestions and `--list-passes`,
and a pass that a newer jaxlib registers is accepted without standing here."""

_ANCHORS = ("any", "builtin.module", "func.func")
_SEVERITIES = {
    ir.DiagnosticSeverity.ERROR: Severity.ERROR,
    ir.DiagnosticSeverity.WARNING: Severity.WARNING,
    ir.DiagnosticSeverity.REMARK: Severity.REMARK,
    ir.DiagnosticSeverity.NOTE: Severity.NOTE,
}
# MLIR attaches the failing operation in generic form, with everything inside it: a kernel of megabytes now and then.
_CURRENT_OPERATION = "see current operation:"
_SHORT = 200


class NativePassError(UserError):
    """A native pass, or MLIR's verifier after it, refuses the program; `diagnostics` are MLIR's, located."""

    def __init__(self, passes: str, diagnostics: Sequence[Diagnostic]) -> None:
        """`passes` is the text of what ran; there is at least one diagnostic, and the first is the message."""
        first, *others = diagnostics
        notes = [line for note in (*first.notes, *others) for line in note.lines()]
        super().__init__(first.message, first.place, [f"in the native pass {passes}", *map(_without_note, notes)])
        self.diagnostics = tuple(diagnostics)


def diagnostics_of(error: ir.MLIRError) -> tuple[Diagnostic, ...]:
    """The diagnostics that MLIR attached to an exception, without the dumps of whole operations."""
    return tuple(_diagnostic(info) for info in error.error_diagnostics)


def is_native(name: str) -> bool:
    """Whether MLIR knows a pass of this name. A context must be current."""
    return _refusal(name) is None


def check_native(item: Item, suggestions: Sequence[str], locate: Callable[[int], Place]) -> None:
    """Raises `UserError` unless MLIR accepts this pass with its options, or this anchor and every pass inside it.

    `suggestions` are the names of our passes, offered besides the native ones for a name that nobody knows; `locate`
    gives the place of an offset in the pipeline string. A context with the dialects of the program must be current.
    """
    for part in item.walk():
        if part.inner is None:
            _check_pass(part, suggestions, locate)
        else:
            _check_anchor(part, locate)
    refusal = _refusal(str(item))
    if refusal is not None:
        raise UserError(f"MLIR refuses '{item}'", locate(item.start), _lines(refusal))


def run_native(text: str, program: ir.Operation, verify: bool, emit: Callable[[Diagnostic], None]) -> None:
    """Runs native passes, separated by commas, on the program in one pass manager.

    Warnings and remarks go to `emit`. Raises `NativePassError` with MLIR's diagnostics; a failure that MLIR doesn't
    explain stays an `MLIRError`.
    """

    def handle(diagnostic: ir.Diagnostic) -> bool:
        emit(_diagnostic(ir.DiagnosticInfo(diagnostic)))
        return True

    manager = PassManager.parse(f"builtin.module({text})")
    manager.enable_verifier(verify)
    handler = cast(ir.DiagnosticHandler, program.context.attach_diagnostic_handler(handle))
    try:
        manager.run(program)
    except ir.MLIRError as error:
        diagnostics = diagnostics_of(error)
        if not diagnostics:
            raise
        raise NativePassError(f"'{text}'", diagnostics) from error
    finally:
        handler.detach()


def _check_pass(item: Item, suggestions: Sequence[str], locate: Callable[[int], Place]) -> None:
    if not is_native(item.name):
        hint = nearest(item.name, [*suggestions, *NATIVE_PASSES])
        notes = [] if hint else ["--list-passes lists every pass"]
        raise UserError(f"unknown pass '{item.name}'{hint}", locate(item.start), notes)
    refusal = _refusal(str(item))
    if refusal is None:
        return
    unknown = re.search(r"no such option (\S+)", refusal)
    if not unknown:
        message = f"native pass '{item.name}' does not accept the options '{item.options}'"
        raise UserError(message, locate(item.options_start), _known_options(item.name))
    column = item.options_start + max(item.options.find(unknown[1]), 0)
    options = re.findall(r"[{\s]([\w-]+)=", str(PassManager.parse(f"builtin.module({item.name})")))
    message = f"native pass '{item.name}' has no option '{unknown[1]}'{nearest(unknown[1], options)}"
    raise UserError(message, locate(column), _known_options(item.name))


def _known_options(name: str) -> list[str]:
    printed = str(PassManager.parse(f"builtin.module({name})"))
    _, brace, options = printed.removesuffix("})").partition("{")
    return [f"with its defaults it reads {name}{{{' '.join(options.split())}}}" if brace else "it has no options"]


def _check_anchor(item: Item, locate: Callable[[int], Place]) -> None:
    context = ir.Context.current
    assert context  # `current` raises where there is none
    if item.name == "any" or context.is_registered_operation(item.name):
        return
    if is_native(item.name):
        raise UserError(f"'{item.name}' is a pass: its options stand in braces", locate(item.start))
    message = f"unknown operation '{item.name}'{nearest(item.name, _ANCHORS)}"
    raise UserError(message, locate(item.start), ["name(passes) runs the passes on every operation of that name"])


def _refusal(text: str) -> str | None:
    """Why MLIR cannot parse this pipeline, `None` where it can."""
    try:
        PassManager.parse(f"builtin.module({text})")
    except ValueError as refusal:
        return str(refusal)
    return None


def _lines(refusal: str) -> list[str]:
    return [line for line in refusal.splitlines() if line.strip(" ^")]


def _diagnostic(info: ir.DiagnosticInfo) -> Diagnostic:
    notes = (_diagnostic(note) for note in info.notes)
    message = " ".join(info.message.split()) if _is_short(info.message) else info.message.strip()
    kept = tuple(note for note in notes if _is_short(note.message) or _CURRENT_OPERATION not in note.message)
    # What comes out of an exception is of the base class, which says nothing: the attribute knows its kind.
    location = ir.Location.from_attr(info.location.attr)
    return Diagnostic(_SEVERITIES[info.severity], message, place_of(location), notes=kept)


def _is_short(message: str) -> bool:
    return len(message) <= _SHORT and "\n" not in message.strip()


def _without_note(line: str) -> str:
    """`UserError` puts the word before each of its notes itself."""
    return line.removeprefix("note: ")
