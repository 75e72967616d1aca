"""Programs that use memory directly, without a kernel: what the tests of views, copies and late copies share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from cpu_harness import context
from jaxlib.mlir import ir

from mosaic_grid.context import unknown_location
from mosaic_grid.cpu.arrays import Array
from mosaic_grid.cpu.build import Index, i32_type, tensor
from mosaic_grid.cpu.execute import Executable, compile_program
from mosaic_grid.cpu.memory import Memory
from mosaic_grid.cpu.roots import Kind, Root
from mosaic_grid.ir_types import Value

Body: TypeAlias = Callable[[Memory, Sequence[Root], Sequence[Index]], Sequence[Value]]


def scalars(*numbers: int) -> list[Array]:
    """Numbers as a program takes its indices."""
    return [np.array(number, np.int32) for number in numbers]


def program(roots: Sequence[tuple[Sequence[int], str]], indices: int, body: Body) -> Executable:
    """A program of one array for each root (its shape and element type) and of i32 scalars.

    `body` gets the memory, the roots and the scalars. The program returns what `body` does, and then what each root
    holds at the end. All roots are taken to be rewritten.
    """
    with context(), unknown_location():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            main = ir.Operation.create("func.func", regions=1, attributes={"sym_name": ir.StringAttr.get("main")})
        kinds = [tensor(shape, ir.Type.parse(element)) for shape, element in roots]
        types = [*kinds, *[tensor((), i32_type())] * indices]
        entry = main.regions[0].blocks.append(*types, arg_locs=[ir.Location.unknown()] * len(types))
        memory = Memory()
        with ir.InsertionPoint(entry):
            made = [
                Root(f"root {n}", tuple(kind.shape), kind.element_type, Kind.SCRATCH) for n, kind in enumerate(kinds)
            ]
            for root, value in zip(made, entry.arguments, strict=False):
                memory.state[root] = value
            memory.rewritten = set(made)
            returned = body(memory, made, list(entry.arguments)[len(made) :])
            results = [*returned, *map(memory.whole, made)]
            ir.Operation.create("func.return", operands=results)
        signature = ir.FunctionType.get(types, [result.type for result in results])
        main.attributes["function_type"] = ir.TypeAttr.get(signature)
        assert module.operation.verify()
        return compile_program(module.operation)
