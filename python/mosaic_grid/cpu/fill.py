"""What memory holds that nobody wrote."""

from __future__ import annotations

import math

from jaxlib.mlir import ir

from mosaic_grid.cpu import build
from mosaic_grid.cpu.build import Shape
from mosaic_grid.cpu.options import Options
from mosaic_grid.cpu.roots import Kind, Root
from mosaic_grid.ir_types import Value


def fresh(root: Root, options: Options) -> Value:
    """What a root holds at first: semaphores count from 0."""
    if root.kind is Kind.SEMAPHORE:
        return build.constant(0, root.shape, root.element)
    return uninitialized(root.shape, root.element, options)


def uninitialized(shape: Shape, element: ir.Type, options: Options) -> Value:
    """Contents that show when they are used: NaN, the least integer, or false; zeros if the options say so."""
    if options.uninitialized == "zero":
        return build.constant(0, shape, element)
    if not build.is_float(element):
        return build.constant(build.lowest(element), shape, element)
    nan = math.nan if has_nan(element) else 0.0
    return build.constant(nan, shape, element)


def has_nan(element: ir.Type) -> bool:
    """Whether a floating-point type has NaNs."""
    return str(element) not in ("f4E2M1FN", "f6E2M3FN", "f6E3M2FN")
