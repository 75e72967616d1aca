"""From a program with launches to one without: each launch becomes a call of a function that does its work."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func
from jaxlib.mlir.passmanager import PassManager

from mosaic_grid.cpu.alarms import Alarms
from mosaic_grid.cpu.launch import LaunchBody
from mosaic_grid.cpu.lowering import Lowering, Unsupported
from mosaic_grid.cpu.operands import ALIASES, placed
from mosaic_grid.cpu.options import Options
from mosaic_grid.cpu.outer import replace_buffers
from mosaic_grid.cpu.outer_records import Callee, OuterRecords
from mosaic_grid.cpu.prints import Prints
from mosaic_grid.cpu.programs import apart
from mosaic_grid.cpu.records import Record, Recorder
from mosaic_grid.cpu.recursion import refuse_recursion
from mosaic_grid.cpu.rules import RULES
from mosaic_grid.diagnostics import place_of
from mosaic_grid.errors import UserError
from mosaic_grid.program import Kernel, Launch, Program, block_of, is_kernel, symbol_of
from mosaic_grid.unpack import unique_symbol

_TOLD = 50


class UnsupportedKernelError(UserError):
    """A kernel that can't be lowered; the notes list every operation that is in the way."""

    def __init__(self, kernel: Kernel, found: Sequence[Unsupported]) -> None:
        lines = [f"{place_of(each.location) or 'unknown location'}: {_clause(each)}" for each in found]
        listed = list(dict.fromkeys(lines))
        more = [f"and {len(listed) - _TOLD} more"] if len(listed) > _TOLD else []
        count = f"{len(listed)} operation{'s' if len(listed) > 1 else ''}"
        super().__init__(
            f"the kernel '{kernel.name}' can't be lowered for the CPU: {count} in it can't",
            place_of(kernel.body.location),
            [*listed[:_TOLD], *more],
        )
        self.unsupported = tuple(found)


def lower_to_cpu(
    program: ir.Operation,
    options: Options,
    selected: Sequence[Launch] | None = None,
    prints: Prints | None = None,
    alarms: Alarms | None = None,
) -> int:
    """Lowers the launches of an unpacked program, all of them unless some are selected, in place; returns their number.

    What they print is dropped unless there is somebody who takes it, and so is that they wait for what can't come.
    Kernels that no launch names any more are gone afterwards. Raises `UnsupportedKernelError` or `ProgramError`, and
    then the program is as it was.
    """
    _refuse_unfit(program)
    launches = list(Program(program).launches if selected is None else selected)
    _lower(program, options, launches, None, prints, alarms)
    return len(launches)


def lower_recorded(program: ir.Operation, options: Options, *, everything: bool) -> Recording:
    """Lowers all launches as `lower_to_cpu` does, so that `@main` also returns what they do wrong.

    That is waits that are never met, or `everything` that can be found. Raises what `lower_to_cpu` does.
    """
    _refuse_unfit(program)
    if everything and options.dma == "late":
        message = "where kernels are checked, copies land at once; what is used before its wait is found all the same"
        raise UserError(message, notes=["leave out --dma=late"])
    recorder = Recorder(itertools.count(), everything=everything)
    records, lost = _lower(program, options, list(Program(program).launches), recorder)
    return Recording(tuple(records), tuple(lost), takes_codes=everything and bool(records))


@dataclasses.dataclass(frozen=True)
class Recording:
    """What the results of `@main` are behind its own, the record of each launch, and what it doesn't return: `lost`
    are the locations of launches whose records can't be handed on.

    With `takes_codes`, the last argument of `@main` says what unwritten memory holds; see `poison.py`.
    """

    records: tuple[Record, ...]
    lost: tuple[ir.Location, ...]
    takes_codes: bool


def _refuse_unfit(program: ir.Operation) -> None:
    if is_kernel(program):
        raise UserError("a bare kernel can't be run: what its windows are windows of is said by a launch",
                        place_of(program.location), ["give the whole lowered program"])  # fmt: skip
    refuse_recursion(program)


def _lower(
    program: ir.Operation,
    options: Options,
    launches: Sequence[Launch],
    recorder: Recorder | None,
    prints: Prints | None = None,
    alarms: Alarms | None = None,
) -> tuple[list[Record], list[ir.Location]]:
    view = Program(program)
    outer = OuterRecords(program)
    taken = {symbol for op in block_of(program) if (symbol := symbol_of(op.operation))}
    made: dict[tuple[str, ...], _Made] = {}
    by_launch: dict[ir.Operation, _Made] = {}
    try:
        for number, launch in enumerate(launches):
            # where blocks are checked, each launch is told of by itself
            key = (*_key(launch), str(number) if recorder is not None and recorder.everything else "")
            if key not in made:
                symbol = unique_symbol(f"{launch.kernel.symbol}.cpu", taken)
                taken.add(symbol)
                low = Lowering(RULES, options)
                low.prints = prints
                made[key] = _function(program, launch, symbol, low, recorder, alarms)
            by_launch[launch.op] = made[key]
    except BaseException:
        for each in made.values():
            each.function.erase()
        raise
    replace_buffers(program, options)
    by_symbol = {each.callee.symbol: each.record for each in made.values() if each.record is not None}
    callees = {op: each.callee for op, each in by_launch.items()}
    records = [by_symbol[symbol] for symbol in outer.thread(callees)]
    used = {launch.kernel.symbol for launch in Program(program).launches}
    for symbol, kernel in view.kernels.items():
        if symbol not in used:
            kernel.module.erase()
    return records, outer.lost


@dataclasses.dataclass(frozen=True)
class _Made:
    """The function of a launch, and its record, if it keeps one."""

    function: ir.Operation
    callee: Callee
    record: Record | None


def _function(
    program: ir.Operation,
    launch: Launch,
    symbol: str,
    low: Lowering,
    recorder: Recorder | None,
    alarms: Alarms | None,
) -> _Made:
    """The function of a launch, at the end of the program. Leaves nothing behind where it can't be made."""
    kernel = launch.kernel
    at_end = ir.InsertionPoint(program.regions[0].blocks[0])
    copy = kernel.module.clone(ip=at_end).operation
    programs = [Kernel(copy)]
    made: ir.Operation | None = None
    try:
        _simplify(copy)
        programs = apart(copy)
        operands = [value.type for value in launch.op.operands]
        more = recorder.argument_types() if recorder is not None else []
        with kernel.body.location:
            attributes = {
                "sym_name": ir.StringAttr.get(symbol),
                "sym_visibility": ir.StringAttr.get("private"),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get([], [])),
            }
            made = ir.Operation.create("func.func", attributes=attributes, regions=1, ip=at_end)
            block = made.regions[0].blocks.append(*operands, *more)
            arguments = list(block.arguments)
            with ir.InsertionPoint(block):
                further = arguments[len(operands) :]
                record = recorder.start(low, launch, programs[0], further) if recorder is not None else None
                watched = _WAITS.start(low, launch, programs[0], []) if alarms is not None else None
                results = LaunchBody(launch, programs[0], low, tuple(programs[1:])).build(arguments[: len(operands)])
                if alarms is not None and watched is not None:
                    alarms.add(low, watched)
                if record is not None:
                    results.append(low.memory.state[record.faults.root])
                func.ReturnOp(results)
            kind = ir.FunctionType.get([*operands, *more], [result.type for result in results])
            made.attributes["function_type"] = ir.TypeAttr.get(kind)
        if low.unsupported:
            raise UnsupportedKernelError(kernel, low.unsupported)
    except BaseException as error:
        if made:
            made.erase()
        if isinstance(error, Exception) and low.unsupported:  # whatever else went wrong may follow from that
            raise UnsupportedKernelError(kernel, low.unsupported) from None
        raise
    finally:
        for each in programs:
            each.module.erase()
    return _Made(made, Callee(symbol, results[-1].type if record is not None else None, bool(more)), record)


_WAITS = Recorder(itertools.count(), everything=False)


def _simplify(kernel: ir.Operation) -> None:
    """Folds constants and shares what is computed twice: what XLA needn't see it needn't compile."""
    PassManager.parse("builtin.module(func.func(canonicalize,cse))").run(kernel)


def _key(launch: Launch) -> tuple[str, ...]:
    """Launches with the same key can share a function."""
    aliases = str(launch.op.attributes[ALIASES]) if ALIASES in launch.op.attributes else ""
    types = [str(value.type) for value in (*launch.op.operands, *launch.op.results)]
    places = " ".join(str(sorted(each)) for each in placed(launch))
    return (launch.kernel.symbol, aliases, places, *types)


def _clause(found: Unsupported) -> str:
    return f"{found.op}: {found.reason}" if found.reason else f"{found.op} has no rule"
