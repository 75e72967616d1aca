"""A multiplication and an addition with one rounding, which StableHLO doesn't have.

The product of two f32 is exact in f64. Their sum with a third is not, so it is rounded to an odd last bit: that keeps,
in a bit beyond those of the result, on which side of a tie the sum lies, and the rounding to the narrow type that
follows is the right one (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums", 2008).
"""

from __future__ import annotations

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.bits import width_of
from mosaic_grid.cpu.lowering import UnsupportedError
from mosaic_grid.cpu.wide import is_narrow
from mosaic_grid.ir_types import Value


def exact_fma(left: Value, right: Value, addend: Value) -> Value:
    """`left * right + addend`, floats of one type of at most 32 bits, rounded once."""
    element = build.element_of(left)
    if width_of(element) > 32:
        raise UnsupportedError("of floats of more than 32 bits")
    double, single = ir.F64Type.get(), ir.F32Type.get()
    a, b, c = (build.convert(value, double) for value in (left, right, addend))
    product = hlo.multiply(a, b)
    whole = hlo.add(product, c)
    second = hlo.subtract(whole, product)
    missing = hlo.add(hlo.subtract(product, hlo.subtract(whole, second)), hlo.subtract(c, second))
    odd = _to_odd(whole, missing)
    result = build.convert(odd, single)
    if not is_narrow(element):
        return result
    return build.convert(_to_odd(result, hlo.subtract(odd, build.convert(result, double))), element)


def _to_odd(rounded: Value, missing: Value) -> Value:
    """The neighbour of `rounded` with an odd last bit towards `missing`, the sign of what rounding took away.

    Where nothing is missing, or it isn't known because the sum isn't finite, the number itself.
    """
    element, shape = build.element_of(rounded), build.shape_of(rounded)
    integer = ir.IntegerType.get_signless(width_of(element))
    zero, one = (build.constant(number, shape, integer) for number in (0, 1))
    bits = build.bitcast(rounded, integer)
    up, down = (build.compare(missing, build.zeros_like(missing), direction) for direction in ("GT", "LT"))
    is_even = build.compare(hlo.and_(bits, one), zero, "EQ")
    away = build.compare(build.compare(bits, zero, "LT"), down, "EQ")
    neighbour = build.select(away, hlo.add(bits, one), hlo.subtract(bits, one))
    change = hlo.and_(hlo.or_(up, down), is_even)
    return build.bitcast(build.select(change, neighbour, bits), element)
