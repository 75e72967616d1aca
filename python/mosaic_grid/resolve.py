"""Making a kernel's dynamic bounds static where the outer program shows that they are constants."""

from __future__ import annotations

import dataclasses
import math

from jaxlib.mlir import ir

from mosaic_grid import symbolic
from mosaic_grid.dataflow.outer import OuterScalars
from mosaic_grid.grid import I32_MAX, Dimension
from mosaic_grid.kernel_edit import iteration_bounds, set_grid
from mosaic_grid.launch_edit import BOUNDS, Kept, pinned_operands, replace_kernel, substitute_launch
from mosaic_grid.program import Kernel, Launch, Program, block_of, symbol_of
from mosaic_grid.unpack import unique_symbol


@dataclasses.dataclass(frozen=True)
class Resolution:
    """What is known of one launch's dynamic bounds, by dimension."""

    launch: Launch
    constants: tuple[tuple[int, int], ...]
    others: tuple[tuple[int, symbolic.Expr], ...]


def plan(launch: Launch, scalars: OuterScalars) -> Resolution:
    """Evaluates the bounds of a launch, and says which become static.

    A constant below zero runs no step, as zero does; it stays as it is.
    """
    pinned = pinned_operands(launch)
    bounds = {axis: scalars.evaluate(operand) for axis, operand in launch.bounds.items()}
    ranges = {axis: scalars.range_of(bound) for axis, bound in bounds.items()}
    known = {axis: values.lo for axis, values in ranges.items() if values.lo == values.hi}
    candidates = {
        axis: value
        for number, (axis, value) in enumerate((axis, known.get(axis)) for axis in bounds)
        if value is not None and value >= 0 and number not in pinned
    }
    constants = _that_compile(launch.kernel, candidates)
    others = tuple((axis, bound) for axis, bound in bounds.items() if axis not in constants)
    return Resolution(launch, tuple(constants.items()), others)


def _that_compile(kernel: Kernel, constants: dict[int, int]) -> dict[int, int]:
    """Those constants that libtpu takes as static bounds.

    Established with libtpu: it fails on a static bound of 0 beside a dynamic one, and on static bounds whose product is
    2**31 - 1 or more.
    """
    chosen = dict(constants)
    if any(dimension.bound is None and axis not in chosen for axis, dimension in enumerate(kernel.grid)):
        chosen = {axis: value for axis, value in chosen.items() if value}
    static = math.prod(max(dimension.bound, 1) for dimension in kernel.grid if dimension.bound is not None)
    for axis, value in sorted(chosen.items(), key=lambda item: -item[1]):
        if static * math.prod(max(value, 1) for value in chosen.values()) < I32_MAX:
            break
        del chosen[axis]
    return chosen


def apply(program: Program, resolutions: tuple[Resolution, ...]) -> None:
    """Gives each launch a kernel with its constant bounds static, and drops their operands.

    Launches that agree on a kernel and its constants share the result; a kernel no launch names any more goes.
    """
    block = program.module.regions[0].blocks[0]
    taken = {name for op in block_of(program.module) if (name := symbol_of(op.operation))}
    symbols: dict[tuple[str, tuple[tuple[int, int], ...]], str] = {}
    for resolution in resolutions:
        kernel = resolution.launch.kernel
        key = (kernel.symbol, resolution.constants)
        if resolution.constants and key not in symbols:
            symbols[key] = unique_symbol(kernel.symbol, taken)
            taken.add(symbols[key])
            clone = kernel.module.clone(ip=ir.InsertionPoint(block)).operation
            clone.attributes["sym_name"] = ir.StringAttr.get(symbols[key])
            make_static(clone, dict(resolution.constants))
        _relaunch(resolution, symbols.get(key, kernel.symbol))
    remove_unused(program, {resolution.launch.kernel.symbol for resolution in resolutions if resolution.constants})


def make_static(module: ir.Operation, constants: dict[int, int]) -> None:
    """Writes constant bounds into a kernel, in place, also where it asks for them with `tpu.iteration_bound`."""
    kernel = Kernel(module)
    grid = [
        Dimension(constants.get(axis, dimension.bound), dimension.semantics)
        for axis, dimension in enumerate(kernel.grid)
    ]
    set_grid(kernel.body, grid)
    for op, axis in iteration_bounds(module):
        if axis not in constants:
            continue
        kind = op.results[0].type
        value = ir.IntegerAttr.get(kind, constants[axis])
        constant = ir.Operation.create(
            "arith.constant", results=[kind], attributes={"value": value}, loc=op.location, ip=ir.InsertionPoint(op)
        )
        op.results[0].replace_all_uses_with(constant.result)
        op.erase()


def describe(axis: int, bound: symbolic.Expr) -> str:
    """One bound in words: `dimension 0: min(5, ceildiv(n, 128)) in [0, 5]`, its divisor where it has one, and
    which of its parts may wrap around, where it is not what it reads as. The range holds all the same.
    """
    known = symbolic.range_of(bound)
    divisor = symbolic.divisor_of(bound)
    multiple = f", a multiple of {divisor}" if divisor > 1 else ""
    wraps = [str(part.inner) for part in symbolic.wraps_in(bound) if not part.cast]
    unless = f", unless {' or '.join(wraps)} wraps" if wraps else ""
    return f"dimension {axis}: {bound} in [{known.lo}, {known.hi}]{multiple}{unless}"


def remove_unused(program: Program, candidates: set[str]) -> None:
    """Removes those of the kernels that no launch names any more."""
    launched = {launch.kernel.symbol for launch in Program(program.module).launches}
    for symbol in sorted(candidates - launched):
        program.kernels[symbol].module.erase()


def _relaunch(resolution: Resolution, symbol: str) -> None:
    op = resolution.launch.op
    if resolution.constants:
        constants = {axis for axis, _ in resolution.constants}
        dropped = {i for i, axis in enumerate(resolution.launch.kernel.dynamic_dimensions) if axis in constants}
        kept = [Kept(i) for i in range(len(op.operands)) if i not in dropped]
        op = replace_kernel(resolution.launch, symbol, kept)
        substitute_launch(resolution.launch, op)
    if resolution.others:
        words = [ir.StringAttr.get(describe(axis, bound)) for axis, bound in resolution.others]
        op.attributes[BOUNDS] = ir.ArrayAttr.get(words)
    elif BOUNDS in op.attributes:
        del op.attributes[BOUNDS]
