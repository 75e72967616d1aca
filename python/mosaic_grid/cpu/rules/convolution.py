"""`tpu.conv`, which is `lax.conv_general_dilated` with an accumulator."""

from __future__ import annotations

import re

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.lowering import Lowering, Rule
from mosaic_grid.cpu.rules.attributes import integer, integers, splat_of
from mosaic_grid.cpu.rules.matmul import common_type, is_rounded
from mosaic_grid.ir_types import Value


def _conv(low: Lowering, op: ir.Operation) -> Value:
    """Numbers are multiplied and added up as `tpu.matmul` does."""
    lhs, rhs, accumulator = op.operands
    start = low.value(accumulator)
    element = build.element_of(start)
    left, right = common_type(low.value(lhs), low.value(rhs), element, rounded=is_rounded(low, op))
    wide = ir.F32Type.get() if build.is_float(element) else element
    padding = np.asarray(integers(op, "padding"), np.int64).reshape(-1, 2)
    result = hlo.convolution(
        build.tensor(build.shape_of(start), wide),
        left,
        right,
        _dimension_numbers(str(op.attributes["dimension_numbers"])),
        feature_group_count=integer(op, "feature_group_count"),
        batch_group_count=integer(op, "batch_group_count"),
        window_strides=integers(op, "window_strides"),
        padding=ir.DenseIntElementsAttr.get(padding),
        lhs_dilation=integers(op, "lhs_dilation"),
        rhs_dilation=integers(op, "rhs_dilation"),
        window_reversal=op.attributes["window_reversal"],
    )
    if splat_of(accumulator) != 0:
        result = hlo.add(build.convert(start, wide), result)
    return build.convert(result, element)


def _dimension_numbers(text: str) -> ir.Attribute:
    """Reads `#tpu.conv_dimension_numbers<...>`: of the input, the kernel and the result two numbers and a list each.

    They are batch and feature, input and output feature, batch and feature; the lists are the spatial dimensions.
    """
    found = re.findall(r"(\d+),\s*(\d+),\s*\[([^\]]*)\]", text)
    (batch, feature, spatial), (in_feature, out_feature, window), (out_batch, channel, out_spatial) = found
    return hlo.ConvDimensionNumbers.get(
        *(int(batch), int(feature), _listed(spatial)),
        *(int(in_feature), int(out_feature), _listed(window)),
        *(int(out_batch), int(channel), _listed(out_spatial)),
    )


def _listed(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


RULES: dict[str, Rule] = {"tpu.conv": _conv}
