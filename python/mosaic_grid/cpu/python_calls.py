"""Calls of Python from a program that runs on the CPU.

JAX compiles such calls as custom calls that name a function by its place in a list; the list goes with the program to
the compiler. So do these: they are for programs that JAX compiles, and not for those that are written out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxlib.mlir import ir

from mosaic_grid.cpu import build
from mosaic_grid.ir_types import Value

TARGET = "xla_ffi_python_cpu_callback"


def call(values: Sequence[Value], number: int) -> Value:
    """Calls the function at a place of the list with these values; it returns one of the first one's type."""
    unsigned = ir.IntegerType.get_unsigned(64)
    layouts = [np.arange(len(build.shape_of(value)) - 1, -1, -1) for value in values]
    attributes = {
        "call_target_name": ir.StringAttr.get(TARGET),
        "has_side_effect": ir.BoolAttr.get(True),
        "api_version": ir.IntegerAttr.get(build.i32_type(), 4),
        "backend_config": ir.DictAttr.get({"index": ir.IntegerAttr.get(unsigned, number)}),
        "operand_layouts": ir.ArrayAttr.get(
            [ir.DenseIntElementsAttr.get(layout, type=ir.IndexType.get()) for layout in layouts]
        ),
        "result_layouts": ir.ArrayAttr.get([ir.DenseIntElementsAttr.get(layouts[0], type=ir.IndexType.get())]),
    }
    types = [values[0].type]
    called = ir.Operation.create("stablehlo.custom_call", results=types, operands=list(values), attributes=attributes)
    return called.results[0]
