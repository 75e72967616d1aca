"""`arith` and `math`: integers wrap, division rounds towards zero and must not be by zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from oracle.code import Function, Rule, pure
from oracle.machine import OracleError
from oracle.values import Array, dtype_of, literal, shape_of

type Binary = Callable[[Array, Array], Array]


def unsigned(value: Array) -> Array:
    """The bits of an integer, read as one without a sign."""
    return value.astype(f"u{value.dtype.itemsize}", copy=False) if value.dtype.kind == "i" else value


def divide(a: Array, b: Array) -> Array:
    """`a / b` rounded towards zero."""
    wide, by = a.astype(np.int64), b.astype(np.int64)
    if not np.all(by):
        raise OracleError("an integer division by zero")
    quotient = np.abs(wide) // np.abs(by) * np.sign(wide) * np.sign(by)
    if np.any(quotient != quotient.astype(a.dtype)):
        raise OracleError("an integer division that overflows")
    return quotient.astype(a.dtype)


def remainder(a: Array, b: Array) -> Array:
    """What `divide` leaves; it has the sign of `a`."""
    return np.subtract(a, np.multiply(divide(a, b), b))


def as_unsigned(function: Binary) -> Binary:
    """The function on the bits of its operands, read without a sign."""
    return lambda a, b: function(unsigned(a), unsigned(b)).astype(a.dtype)


BINARY: dict[str, Binary] = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.divsi": divide,
    "arith.remsi": remainder,
    "arith.floordivsi": np.floor_divide,
    "arith.minsi": np.minimum,
    "arith.maxsi": np.maximum,
    "arith.minui": as_unsigned(np.minimum),
    "arith.maxui": as_unsigned(np.maximum),
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.shli": np.left_shift,
    "arith.shrsi": np.right_shift,
    "arith.shrui": as_unsigned(np.right_shift),
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
}

PREDICATES: tuple[Binary, ...] = (
    *(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal),
    *(lambda a, b: np.less(unsigned(a), unsigned(b)), lambda a, b: np.less_equal(unsigned(a), unsigned(b))),
    *(lambda a, b: np.greater(unsigned(a), unsigned(b)), lambda a, b: np.greater_equal(unsigned(a), unsigned(b))),
)
"""`arith.cmpi`'s, by number: eq, ne, then signed and unsigned lt, le, gt, ge."""

FLOAT_PREDICATES: dict[int, Binary] = {
    1: np.equal,
    2: np.greater,
    3: np.greater_equal,
    4: np.less,
    5: np.less_equal,
    13: np.not_equal,
}
"""`arith.cmpf`'s, by number: the ordered ones, and une."""

CASTS = (
    "arith.extsi",
    "arith.trunci",
    "arith.sitofp",
    "arith.fptosi",
    "arith.extf",
    "arith.truncf",
    "arith.index_cast",
)


def _compare_integers(op: ir.Operation) -> Function:
    return PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value]


def _compare_floats(op: ir.Operation) -> Function:
    number = ir.IntegerAttr(op.attributes["predicate"]).value
    if number not in FLOAT_PREDICATES:
        raise NotImplementedError(f"the oracle has no predicate {number} of arith.cmpf")
    return FLOAT_PREDICATES[number]


def constant(op: ir.Operation) -> Function:
    """A constant of any dialect that keeps it in `value`."""
    value = literal(op.attributes["value"], op.results[0].type)
    return lambda: value


def _cast(op: ir.Operation) -> Function:
    dtype = dtype_of(op.results[0].type)
    if op.name == "arith.extsi" and dtype_of(op.operands[0].type).kind == "b":
        return lambda value: np.negative(value.astype(dtype))  # the only bit is the sign
    return lambda value: value.astype(dtype)


def _extend_unsigned(op: ir.Operation) -> Function:
    dtype = dtype_of(op.results[0].type)
    return lambda value: unsigned(value).astype(dtype)


def _bitcast(op: ir.Operation) -> Function:
    dtype, shape = dtype_of(op.results[0].type), shape_of(op.results[0].type)
    return lambda value: np.ascontiguousarray(value).view(dtype).reshape(shape)


def _binary(function: Binary) -> Rule:
    return pure(lambda op: function)


def _unary(function: Any) -> Rule:
    return pure(lambda op: function)


RULES: dict[str, Rule] = {
    **{name: _binary(function) for name, function in BINARY.items()},
    **dict.fromkeys(CASTS, pure(_cast)),
    "arith.constant": pure(constant),
    "arith.cmpi": pure(_compare_integers),
    "arith.cmpf": pure(_compare_floats),
    "arith.select": pure(lambda op: np.where),
    "arith.extui": pure(_extend_unsigned),
    "arith.bitcast": pure(_bitcast),
    "arith.negf": _unary(np.negative),
    "math.exp": _unary(np.exp),
}
