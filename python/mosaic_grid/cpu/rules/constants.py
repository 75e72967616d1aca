"""`arith.constant`: scalars and vectors of every element type."""

from __future__ import annotations

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.lowering import Lowering, Rule, UnsupportedError
from mosaic_grid.cpu.types import lowered
from mosaic_grid.ir_types import Value

_I32 = range(-(2**31), 2**31)


def _constant(_: Lowering, op: ir.Operation) -> Value:
    attribute, kind = op.attributes["value"], lowered(op.results[0].type)
    if isinstance(attribute, ir.IntegerAttr | ir.FloatAttr | ir.BoolAttr):
        return hlo.constant(ir.DenseElementsAttr.get_splat(kind, _scalar(attribute, kind.element_type)))
    if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
        return hlo.constant(
            ir.DenseElementsAttr.get_splat(kind, _scalar(attribute.get_splat_value(), kind.element_type))
        )
    if isinstance(attribute, ir.DenseIntElementsAttr) and isinstance(
        ir.ShapedType(attribute.type).element_type, ir.IndexType
    ):
        numbers = np.array(attribute)
        _check(int(numbers.min(initial=0)), int(numbers.max(initial=0)))
        return build.array(numbers)
    if isinstance(attribute, ir.DenseElementsAttr):
        # The bindings can't say what an element of a narrow type is, but the text is the same for a tensor.
        values = str(attribute).removesuffix(f": {attribute.type}")
        return hlo.constant(ir.Attribute.parse(f"{values}: {kind}"))
    raise UnsupportedError("a constant that isn't written out")


def _scalar(attribute: ir.Attribute, element: ir.Type) -> ir.Attribute:
    """The same number; an index becomes an i32."""
    if not isinstance(attribute, ir.IntegerAttr) or not isinstance(attribute.type, ir.IndexType):
        return attribute
    _check(attribute.value)
    return ir.IntegerAttr.get(element, attribute.value)


def _check(*numbers: int) -> None:
    for number in numbers:
        if number not in _I32:
            raise UnsupportedError(f"the index {number}, which has more than 32 bits")


RULES: dict[str, Rule] = {"arith.constant": _constant}
