"""Makes the static parallel dimensions of a program's kernels dynamic, as if its author had not known their bounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TypeAlias

from jaxlib.mlir import ir

from mosaic_grid.cpu import build
from mosaic_grid.dataflow.control import functions_of
from mosaic_grid.grid import DYNAMIC, Semantics
from mosaic_grid.ir_types import Value
from mosaic_grid.launch_edit import Kept, replace_kernel
from mosaic_grid.program import Launch, Program
from mosaic_grid.runner.inline import inline_call

BoundFor: TypeAlias = Callable[[ir.Operation, int], Value]
"""Makes the operand for a bound, before a launch."""


@dataclasses.dataclass
class Arguments:
    """New arguments of `@main`, the last ones, one for each bound; `most` is what the bounds were."""

    main: ir.Operation
    most: list[int]

    def __call__(self, launch: ir.Operation, bound: int) -> Value:
        """Adds one."""
        self.most.append(bound)
        kind = build.tensor((), build.i32_type())
        argument: Value = self.main.regions[0].blocks[0].add_argument(kind, ir.Location.unknown())
        before = ir.FunctionType(ir.TypeAttr(self.main.attributes["function_type"]).value)
        after = ir.FunctionType.get([*before.inputs, kind], before.results)
        self.main.attributes["function_type"] = ir.TypeAttr.get(after)
        if "arg_attrs" in self.main.attributes:
            known = list(ir.ArrayAttr(self.main.attributes["arg_attrs"]))
            self.main.attributes["arg_attrs"] = ir.ArrayAttr.get([*known, ir.DictAttr.get({})])
        return argument


def constant_bound(bound: int) -> BoundFor:
    """A bound, whatever it was, that is a constant which only looks dynamic."""

    def make(launch: ir.Operation, before: int) -> Value:
        with launch.location, ir.InsertionPoint(launch):
            return build.convert(build.reshape(build.constant(min(bound, before), (1,), _i64()), ()), build.i32_type())

    return make


def with_dynamic_bounds(program: ir.Operation) -> list[int]:
    """Makes every parallel dimension of two steps or more dynamic; returns what the bounds were.

    `@main` takes them, as its last arguments. All that it calls is inlined.
    """
    functions = functions_of(program)
    _inline(program)
    arguments = Arguments(functions["main"].op, [])
    _make_dynamic(program, arguments)
    return arguments.most


def with_constant_bounds(program: ir.Operation, bound: int) -> None:
    """The same where no bound is more than a number that the outer program knows."""
    _inline(program)
    _make_dynamic(program, constant_bound(bound))


def _make_dynamic(program: ir.Operation, bound_for: BoundFor) -> None:
    view = Program(program)
    launches = {
        symbol: [launch for launch in view.launches if launch.kernel.symbol == symbol] for symbol in view.kernels
    }
    for symbol, kernel in view.kernels.items():
        grid = kernel.grid
        axes = [
            axis
            for axis, d in enumerate(grid)
            if d.semantics is Semantics.PARALLEL and d.bound is not None and d.bound > 1
        ]
        for launch in launches[symbol]:
            _relaunch(launch, axes, bound_for)
        bounds = [DYNAMIC if d.bound is None or axis in axes else d.bound for axis, d in enumerate(grid)]
        kernel.body.attributes["iteration_bounds"] = ir.DenseI64ArrayAttr.get(bounds)
    program.verify()


def _relaunch(launch: Launch, axes: Sequence[int], bound_for: BoundFor) -> None:
    """The launch with operands for the bounds of `axes`, which are static so far."""
    kernel, dynamic = launch.kernel, launch.kernel.dynamic_dimensions
    operands: list[Kept | Value] = []
    for axis, dimension in enumerate(kernel.grid):
        if axis in axes:
            assert dimension.bound is not None
            operands.append(bound_for(launch.op, dimension.bound))
        elif axis in dynamic:
            operands.append(Kept(dynamic.index(axis)))
    rest = range(len(dynamic), len(launch.op.operands))
    new = replace_kernel(launch, kernel.symbol, [*operands, *map(Kept, rest)])
    for old, result in zip(launch.op.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    launch.op.erase()


def _inline(program: ir.Operation) -> None:
    """Puts what `@main` calls, in whatever region, into it; the other functions go."""
    functions = functions_of(program)
    main = functions["main"].op
    while calls := _calls(main):
        assert inline_call(calls[0], program) is not None
    for name, function in functions.items():
        if name != "main":
            function.op.erase()


def _calls(function: ir.Operation) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "func.call":
            found.append(op)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return found


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)
