"""What happens to a lowered program: the passes that the options ask for, over its kernels and its outer functions."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from jaxlib.mlir import ir

from mosaic_grid.context import register_tpu, unknown_location
from mosaic_grid.dataflow.loop_bodies import replace_contents
from mosaic_grid.errors import UserError
from mosaic_grid.jax_hook import options
from mosaic_grid.jax_hook.chips import chip_of
from mosaic_grid.jax_hook.core_parallel import refuse_dynamic
from mosaic_grid.jax_hook.launches import ON_CPU
from mosaic_grid.jax_hook.passes import Outcome, run_passes
from mosaic_grid.jax_hook.rounding import EXACT
from mosaic_grid.jax_hook.told import MosaicGridWarning, tell
from mosaic_grid.program import Program, ProgramError, custom_calls
from mosaic_grid.reproducer import InternalError
from mosaic_grid.targets import Target, parse_target
from mosaic_grid.unpack import pack, unpack

_NOTHING = Outcome([], changed=False)


def transform(module: ir.Module, axis_context: Any, callbacks: list[Any] | None) -> None:
    """Runs the passes on a program, in place; one without kernels stays as it is.

    `callbacks` are the Python functions that the program calls by their number. Functions that print what kernels on
    the CPU print are added; without a list they print nothing.

    Raises `UserError` for a kernel that can't be lowered for the CPU, and where a pipeline of the user's reports an
    error. What fails in `check` and `on`, by our fault or for a program that can't be read, is a warning, and leaves
    the program as JAX lowered it.
    """
    program = module.operation
    launches = custom_calls(program)
    if not launches:
        return
    on_cpu = any(ON_CPU in call.attributes for call in launches)
    mode = options.mode()
    with _any_dialect(program.context), unknown_location():
        target = parse_target(options.cpu.value) if on_cpu else chip_of(axis_context)
        try:
            work, outcome = _worked(program, mode, target)
        except ProgramError as error:
            if on_cpu or mode not in options.CHOICES:
                raise
            _leave(error)
            return
        if on_cpu:
            _lower_to_cpu(work, callbacks)
        else:
            refuse_dynamic(work)
        if options.report.value:
            from mosaic_grid.jax_hook.reports import write_report

            write_report(options.report.value, program, work, target, outcome.said)
        tell(outcome.said)
        if on_cpu or outcome.changed:
            pack(work)
            replace_contents(program, work)  # JAX holds on to the module that it made


@contextlib.contextmanager
def _any_dialect(context: ir.Context) -> Iterator[None]:
    """Lets operations of unknown dialects pass: kernels in their portable form are made of them.

    The kernels' own dialect is known afterwards: JAX 0.10 brings it in when it lowers a kernel, but not for an export.
    """
    register_tpu(context)
    allowed = context.allow_unregistered_dialects
    context.allow_unregistered_dialects = True
    try:
        with context:
            yield
    finally:
        context.allow_unregistered_dialects = allowed


def _worked(program: ir.Operation, mode: str, target: Target | None) -> tuple[ir.Operation, Outcome]:
    """An unpacked copy of the program after the passes, or without them where one failed and nobody asked for it."""
    work = _unpacked(program)
    if mode == options.OFF:
        return work, _NOTHING
    try:
        return work, run_passes(work, mode, target)
    except (InternalError, UserError) as error:
        if mode not in options.CHOICES:
            raise
        _leave(error)
        return _unpacked(program), _NOTHING


def _unpacked(program: ir.Operation) -> ir.Operation:
    work = program.clone(ip=False).operation
    unpack(work)
    return work


def _leave(error: Exception) -> None:
    warnings.warn(f"mosaic-grid leaves a program as it is: {error}", MosaicGridWarning, stacklevel=2)


def _lower_to_cpu(work: ir.Operation, callbacks: list[Any] | None) -> None:
    from mosaic_grid.cpu.alarms import Alarms
    from mosaic_grid.cpu.convert import lower_to_cpu
    from mosaic_grid.cpu.options import Options
    from mosaic_grid.cpu.prints import Prints
    from mosaic_grid.runner.recorded import refuse_stuck

    launches = [each for each in Program(work).launches if ON_CPU in each.op.attributes]
    prints, alarms = (None, None) if callbacks is None else (Prints(callbacks), Alarms(callbacks, refuse_stuck))
    lower_to_cpu(work, Options(), launches, prints, alarms)
    work.attributes[EXACT] = ir.UnitAttr.get()
