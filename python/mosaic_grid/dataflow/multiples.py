"""What Mosaic knows an index of a load or a store to be a multiple of.

The rules were asked of libtpu 0.0.50, an operation at a time: it refuses an index that isn't proved by them. It looks
at the operations only, not at the values that arguments may have, and not through loops and branches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from jaxlib.mlir import ir

from mosaic_grid.dataflow.control import defining
from mosaic_grid.ir_types import Argument, Value

_DEEPEST = 24


def is_multiple(value: Value, number: int, depth: int = 0) -> bool | None:
    """Whether the compiler proves that a scalar is a multiple of `number`; None where nobody asked it of such a one."""
    if number == 1:
        return True
    known = constant(value)
    if known is not None:
        return known % number == 0
    if isinstance(value, ir.BlockArgument):
        return _argument(value)
    op, _ = defining(value)
    rule = _RULES.get(op.name)
    return rule(op, number, depth + 1) if rule and depth < _DEEPEST else None


def constant(value: Value) -> int | None:
    """The value of a scalar that is written as a constant, or as a cast of one."""
    while not isinstance(value, ir.BlockArgument):
        op, _ = defining(value)
        if op.name == "arith.constant":
            attribute = op.attributes["value"]
            return int(attribute.value) if isinstance(attribute, ir.IntegerAttr) else None
        if op.name != "arith.index_cast":
            return None
        value = op.operands[0]
    return None


def _argument(value: Argument) -> bool | None:
    """A grid index of more than one step, or the index of a loop of several iterations that are one apart, is none."""
    owner = value.owner.owner.operation
    if owner.name == "func.func":
        bounds = list(ir.DenseI64ArrayAttr(owner.attributes["iteration_bounds"]))
        return False if value.arg_number < len(bounds) and bounds[value.arg_number] != 1 else None
    if owner.name != "scf.for" or value.arg_number != 0 or constant(owner.operands[2]) != 1:
        return None
    low, high = constant(owner.operands[0]), constant(owner.operands[1])
    return None if low is not None and high is not None and high - low <= 1 else False


def _all(values: Iterable[Value], number: int, depth: int) -> bool | None:
    """Whether all of them are; one that isn't settles it only where nothing else is in doubt."""
    answers = [is_multiple(value, number, depth) for value in values]
    return None if None in answers else all(answers)


def _assumed(op: ir.Operation, number: int, depth: int) -> bool | None:
    if ir.IntegerAttr(op.attributes["multiple"]).value % number == 0:
        return True
    return is_multiple(op.operands[0], number, depth)


def _cast(op: ir.Operation, number: int, depth: int) -> bool | None:
    return is_multiple(op.operands[0], number, depth)


def _product(op: ir.Operation, number: int, depth: int) -> bool | None:
    a, b = op.operands
    for factor, other in ((a, b), (b, a)):
        known = constant(factor)
        if known is not None:
            # c * x is a multiple of m if x is one of m / gcd(c, m)
            return is_multiple(other, number // math.gcd(known, number), depth)
    answers = [is_multiple(factor, number, depth) for factor in (a, b)]
    return True if True in answers else None if None in answers else False


def _sum(op: ir.Operation, number: int, depth: int) -> bool | None:
    total, terms, subtracts = 0, list[Value](), False
    waiting = [(value, 1) for value in op.operands]
    if op.name == "arith.subi":
        waiting[1] = (waiting[1][0], -1)
    while waiting:
        value, sign = waiting.pop()
        known = constant(value)
        if known is not None:
            total += sign * known
        elif not isinstance(value, ir.BlockArgument) and defining(value)[0].name in ("arith.addi", "arith.subi"):
            inner, _ = defining(value)
            minus = -1 if inner.name == "arith.subi" else 1
            waiting += [(inner.operands[0], sign), (inner.operands[1], minus * sign)]
        else:
            terms.append(value)
            subtracts |= sign < 0
        if len(terms) > _DEEPEST:
            return None
    answers = [is_multiple(value, number, depth) for value in terms]
    if all(answers):
        return total % number == 0 if terms else None
    # what is subtracted may be a term again, and go
    return None if None in answers or (subtracts and len(terms) > 1) else False


def _quotient(op: ir.Operation, number: int, depth: int) -> bool | None:
    divisor = constant(op.operands[1])
    # x / d is a multiple of m if x is one of d * m
    return is_multiple(op.operands[0], number * divisor, depth) if divisor and divisor > 0 else None


def _either(op: ir.Operation, number: int, depth: int) -> bool | None:
    return _all(list(op.operands)[-2:], number, depth)


def _not_followed(op: ir.Operation, number: int, depth: int) -> bool | None:
    """Operations of which nothing is known, whatever their operands; those that change nothing are folded away."""
    a, b = op.operands
    return None if a == b or (op.name != "arith.maxsi" and {constant(a), constant(b)} & {0, -1}) else False


def _read(op: ir.Operation, number: int, depth: int) -> bool | None:
    return False


_RULES: dict[str, Callable[[ir.Operation, int, int], bool | None]] = {
    "arith.addi": _sum,
    "arith.andi": _not_followed,
    "arith.divsi": _quotient,
    "arith.extsi": _cast,
    "arith.index_cast": _cast,
    "arith.maxsi": _not_followed,
    "arith.minsi": _either,
    "arith.muli": _product,
    "arith.ori": _not_followed,
    "arith.remsi": _either,
    "arith.select": _either,
    "arith.shli": _not_followed,
    "arith.shrsi": _not_followed,
    "arith.subi": _sum,
    "arith.xori": _not_followed,
    "memref.load": _read,
    "tpu.assume_multiple": _assumed,
}
