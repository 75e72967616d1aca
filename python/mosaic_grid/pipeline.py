"""A pipeline of our passes and MLIR's own, from its text to its run over a program."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from jaxlib.mlir import ir

from mosaic_grid.diagnostics import Severity
from mosaic_grid.errors import UserError
from mosaic_grid.instrumentation import Instrument
from mosaic_grid.native_passes import check_native, diagnostics_of, run_native
from mosaic_grid.pass_options import parse_options, pass_to_text
from mosaic_grid.passbase import Pass
from mosaic_grid.pipeline_syntax import Item, parse_items, place_in
from mosaic_grid.reproducer import InternalError, Reproducer, flags_of, summary, write_reproducer
from mosaic_grid.session import Session


@dataclasses.dataclass(frozen=True)
class NativePass:
    """One of MLIR's passes, or a pipeline of them on an anchor operation, as text that MLIR parses."""

    text: str
    passes: tuple[str, ...]


Step = Pass | NativePass


@dataclasses.dataclass(frozen=True)
class Pipeline:
    """Passes in the order in which they run; `str` gives the text that parses to an equal pipeline."""

    steps: tuple[Step, ...] = ()

    def __str__(self) -> str:
        """The long form: the short one would take a last `builtin.module(...)` for itself."""
        return f"builtin.module({','.join(_text(step) for step in self.steps)})"


def parse_pipeline(text: str, passes: Mapping[str, type[Pass]]) -> Pipeline:
    """The pipeline that `text` describes, in the short form `a,b{option=value}` or as `builtin.module(a,b)`.

    `passes` are ours, by name; every other name is MLIR's. Native passes may be nested in anchors, where they mean what
    MLIR means: `func.func(cse)` reaches the functions of the outer module, `builtin.module(cse)` among other passes
    the kernels. A context with the program's dialects must be current. Raises `UserError` with a place in the text.
    """
    items = parse_items(text)
    if len(items) == 1 and items[0].name == "builtin.module" and items[0].inner is not None:
        items = items[0].inner
    return Pipeline(tuple(_step(item, text, passes) for item in items))


def run_pipeline(
    pipeline: Pipeline,
    program: ir.Operation,
    session: Session,
    instruments: Sequence[Instrument] = (),
    *,
    verify: bool = True,
    reproducers: Path = Path(),
) -> None:
    """Runs the passes on `program`, a `builtin.module`, in place; stops after a pass that diagnoses an error.

    Instruments nest: the last one's `before` is called last and its `after` first. Without instruments neighbouring
    native passes share one pass manager. Native warnings and remarks go to the session.

    Raises `UserError` from a pass, or with MLIR's diagnostics when a native pass refuses the program. Whatever else
    escapes a pass, a refusal of the verifier after one of ours included, is an `InternalError`: the program as it was
    before that pass, and the rest of the pipeline, are then in a file in the directory `reproducers`.
    """
    done = 0
    for group in _groups(pipeline.steps, merge=not instruments):
        rest = Pipeline(pipeline.steps[done:])
        said = len(session.diagnostics)
        _run_group(group, program, session, instruments, _Failure(rest, session, verify, reproducers))
        if any(diagnostic.severity is Severity.ERROR for diagnostic in session.diagnostics[said:]):
            return
        done += len(group)


@dataclasses.dataclass(frozen=True)
class _Failure:
    """What it takes to write a reproducer if the next step fails."""

    rest: Pipeline
    session: Session
    verify: bool
    directory: Path

    def error(self, name: str, before: ir.Operation, cause: Exception) -> InternalError:
        """The internal error of this step, its reproducer written if at all possible."""
        text = str(before.get_asm(enable_debug_info=True))
        flags = flags_of(self.session.target, self.session.kernels, self.session.contracts)
        reproducer = Reproducer(text, str(self.rest), flags, self.verify)
        try:
            path = write_reproducer(reproducer, f"the pass '{name}' failed: {summary(cause)}", self.directory)
        except OSError as problem:
            return InternalError(name, None, cause, f"{problem.strerror}: {self.directory}")
        return InternalError(name, path, cause)


def _step(item: Item, text: str, passes: Mapping[str, type[Pass]]) -> Step:
    if item.name in passes and item.inner is None:
        start = item.options_start or item.start
        return parse_options(passes[item.name], item.options, lambda offset: place_in(text, start + offset))
    for part in itertools.islice(item.walk(), 1, None):
        if part.name in passes:
            message = f"pass '{part.name}' works on a whole program: it cannot stand inside '{item.name}(...)'"
            raise UserError(message, place_in(text, part.start), ["take it out of the parentheses"])
    if item.name in passes:
        raise UserError(f"'{item.name}' is a pass: its options stand in braces", place_in(text, item.start))
    check_native(item, tuple(passes), lambda offset: place_in(text, offset))
    return NativePass(str(item), tuple(part.name for part in item.walk() if part.inner is None))


def _text(step: Step) -> str:
    return step.text if isinstance(step, NativePass) else pass_to_text(step)


def _name(step: Step) -> str:
    """A pass by its name, a native pipeline on an anchor by its text."""
    match step:
        case NativePass(text, (name,)) if text.startswith(name):
            return name
        case NativePass(text):
            return text
    return step.name


def _names(step: Step) -> Collection[str]:
    return step.passes if isinstance(step, NativePass) else (step.name,)


def _groups(steps: Sequence[Step], *, merge: bool) -> Iterator[tuple[Step, ...]]:
    """Neighbouring native passes together if they are to be merged, every other step by itself."""
    for native, run in itertools.groupby(steps, lambda step: isinstance(step, NativePass)):
        if native and merge:
            yield tuple(run)
        else:
            yield from ((step,) for step in run)


def _run_group(
    group: tuple[Step, ...],
    program: ir.Operation,
    session: Session,
    instruments: Sequence[Instrument],
    failure: _Failure,
) -> None:
    step = group[0]
    name = ",".join(_name(each) for each in group)
    # A clone costs less than verifying does. A check leaves the program alone, so it is its own snapshot.
    changes = isinstance(step, NativePass) or step.kind != "check"
    before = program.operation.clone(ip=False) if changes else program
    for instrument in instruments:
        instrument.before(name, _names(step), program)
    try:
        if isinstance(step, NativePass):
            run_native(",".join(_text(each) for each in group), program, failure.verify, session.emit)
        else:
            step.run(program, session)
            if failure.verify:
                _verify(name, before, program)
    except UserError:
        raise
    except Exception as cause:
        raise failure.error(name, before, cause) from cause
    for instrument in reversed(instruments):
        instrument.after(name, _names(step), program)


class InvalidProgramError(Exception):
    """What a pass of ours has made does not pass MLIR's verifier."""


def _verify(name: str, before: ir.Operation, program: ir.Operation) -> None:
    """Raises `InvalidProgramError` if the pass broke the program, `UserError` if it was not valid before either."""
    refusal = _refusal(program)
    if refusal is None:
        return
    if before is not program and (earlier := _refusal(before)) is not None:
        raise UserError(f"the program is not valid before '{name}': {earlier}")
    raise InvalidProgramError(f"the verifier refuses what the pass has made: {refusal}")


def _refusal(program: ir.Operation) -> str | None:
    try:
        program.verify()
    except ir.MLIRError as error:
        return "; ".join(line for each in diagnostics_of(error) for line in each.lines()) or str(error)
    return None
