"""Programs with launches, run on the CPU by way of `lower-to-cpu`: what tests of passes compare."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxlib.mlir import ir

from mosaic_grid.cpu.arrays import Array
from mosaic_grid.cpu.convert import lower_to_cpu
from mosaic_grid.cpu.execute import Executable, compile_program
from mosaic_grid.cpu.options import Options


def compiled(program: ir.Operation, options: Options | None = None) -> Executable:
    """An unpacked program, compiled for the CPU; it stays as it is."""
    copy = program.clone().operation
    lower_to_cpu(copy, options or Options())
    assert copy.verify()
    return compile_program(copy)


def assert_same(found: Sequence[Array], expected: Sequence[Array], message: str) -> None:
    """Asserts that arrays are equal bit for bit: the sign of a zero and the bits of a NaN count too."""
    for k, (one, other) in enumerate(zip(found, expected, strict=True)):
        if (one.dtype, one.shape, one.tobytes()) != (other.dtype, other.shape, other.tobytes()):
            np.testing.assert_array_equal(one, other, err_msg=f"result {k}, {message}", strict=True)
            raise AssertionError(f"zeros or NaNs differ in result {k}, {message}")
