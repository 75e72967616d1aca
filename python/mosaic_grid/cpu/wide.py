"""Arithmetic on narrow floats: computed in f32 and rounded once, after each operation.

So do the TPUs that have no arithmetic of their own for a type (libtpu unpacks bf16 to f32 around each operation of a
v5p), and so does XLA:CPU. For the sum, difference, product, quotient and square root of types of at most 11 bits of
precision it is also what a machine that computes in the type itself would give: f32 has more than twice their bits, so
that the second rounding never sees a tie that the first one made.

Subnormal numbers of f32 and bf16 count as zero in arithmetic and comparisons, and results that would be subnormal are
zero: XLA:CPU runs with that mode of the processor, and TPUs know no other. Where only bits move they stay.
"""

from __future__ import annotations

from collections.abc import Callable

from jaxlib.mlir import ir

from mosaic_grid.cpu import build
from mosaic_grid.ir_types import Value


def widened(compute: Callable[..., Value], *values: Value) -> Value:
    """`compute` of `values`, floats of one type, in f32 where the type is narrower, and rounded to that type again.

    XLA:CPU keeps both conversions, also if `xla_allow_excess_precision` would let it drop them.
    """
    element = build.element_of(values[0])
    if not is_narrow(element):
        return compute(*values)
    return build.convert(compute(*(widen(value) for value in values)), element)


def widen(value: Value) -> Value:
    """The same numbers in f32, where the type is a narrower float."""
    return build.convert(value, ir.F32Type.get()) if is_narrow(build.element_of(value)) else value


def is_narrow(element: ir.Type) -> bool:
    """Whether the type is a float of fewer than 32 bits."""
    return isinstance(element, ir.FloatType) and element.width < 32
