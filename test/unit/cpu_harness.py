"""Runs operations of a kernel through the rules of the CPU lowering, without a grid: what the tests of rules share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from jaxlib.mlir import ir

from mosaic_grid.context import create_context, unknown_location
from mosaic_grid.cpu.arrays import Array
from mosaic_grid.cpu.execute import Executable, compile_program
from mosaic_grid.cpu.lowering import Lowered, Lowering, Rule, Unsupported
from mosaic_grid.cpu.options import Options
from mosaic_grid.cpu.roots import Kind, Root
from mosaic_grid.cpu.rules import RULES
from mosaic_grid.cpu.types import lowered
from mosaic_grid.cpu.views import View

Start: TypeAlias = Callable[[Lowering, ir.Operation, Sequence[Lowered]], None]

context = functools.cache(create_context)


def run(text: str, *arrays: Any, rules: Mapping[str, Rule] = RULES, options: Options | None = None) -> list[Array]:
    """Runs the one `func.func` of `text` on the CPU; every operation in it must have a rule.

    An argument of memref type is memory with these contents. Returns the function's results, of a memref its contents,
    and then what each memref argument holds at the end.
    """
    return executable(text, rules, options)(*(np.asarray(array) for array in arrays))


def executable(text: str, rules: Mapping[str, Rule] = RULES, options: Options | None = None) -> Executable:
    """The function of `text`, compiled; see `run`."""
    with context(), unknown_location():
        module, unsupported = lower(text, rules, options)
        assert not unsupported, [f"{each.op}: {each.reason}" for each in unsupported]
        return compile_program(module.operation)


def refusals(text: str, rules: Mapping[str, Rule] = RULES, options: Options | None = None) -> list[str]:
    """What the lowering says of each operation that it can't translate: its name and why."""
    with context(), unknown_location():
        return [f"{each.op}: {each.reason}" for each in lower(text, rules, options)[1]]


def lower(
    text: str, rules: Mapping[str, Rule], options: Options | None, start: Start | None = None
) -> tuple[ir.Module, list[Unsupported]]:
    """A module whose `@main` is the function of `text` in StableHLO; the context must be current.

    `start` may prepare the lowering. The record of faults, if there is one, is the last result.
    """
    source = ir.Module.parse(text)
    (function,) = source.body.operations
    body = function.operation.regions[0].blocks[0]
    module = ir.Module.create()
    low = Lowering(rules, options or Options())
    with ir.InsertionPoint(module.body):
        main = ir.Operation.create("func.func", regions=1, attributes={"sym_name": ir.StringAttr.get("main")})
    types = [lowered(argument.type) for argument in body.arguments]
    entry = main.regions[0].blocks.append(*types, arg_locs=[ir.Location.unknown()] * len(types))
    with ir.InsertionPoint(entry):
        roots: list[Root] = []
        arguments: list[Lowered] = []
        for number, (argument, value) in enumerate(zip(body.arguments, entry.arguments, strict=True)):
            if isinstance(argument.type, ir.MemRefType):
                kind = lowered(argument.type)
                root = Root(f"memref {number}", tuple(kind.shape), kind.element_type, Kind.SCRATCH)
                low.memory.state[root] = value
                roots.append(root)
                arguments.append(View(root))
            else:
                arguments.append(value)
        if start is not None:
            start(low, function.operation, arguments)
        returned = [low.memory.read(each) if isinstance(each, View) else each for each in low.block(body, arguments)]
        records = [low.faults.root] if low.faults is not None else []
        results = [*returned, *(low.memory.whole(root) for root in (*roots, *records))]
        ir.Operation.create("func.return", operands=results)
    signature = ir.FunctionType.get(types, [result.type for result in results])
    main.attributes["function_type"] = ir.TypeAttr.get(signature)
    assert module.operation.verify()
    return module, low.unsupported


def operation(op: str, operands: Sequence[str], results: Sequence[str], count: int, attributes: str = "") -> Executable:
    """An operation on vectors of `count` elements, by the element types of its operands and results."""
    names = [f"%{chr(ord('a') + i)}" for i in range(len(operands))]
    types = [f"vector<{count}x{kind}>" for kind in operands]
    signature = ", ".join(f"{name}: {kind}" for name, kind in zip(names, types, strict=True))
    outcome = ", ".join(f"vector<{count}x{kind}>" for kind in results)
    values = ", ".join(f"%{i}" for i in range(len(results)))
    properties = f"<{{{attributes}}}>" if attributes else ""
    return executable(
        f"func.func @f({signature}) -> ({outcome}) {{"
        f'{values} = "{op}"({", ".join(names)}) {properties} : ({", ".join(types)}) -> ({outcome})'
        f"return {values} : {outcome} }}"
    )


def apply(op: str, operands: Sequence[str], result: str, *arrays: Array, attributes: str = "") -> Array:
    """What an operation with one result makes of vectors."""
    (found,) = operation(op, operands, [result], len(arrays[0]), attributes)(*arrays)
    return found
