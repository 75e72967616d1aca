"""What Mosaic knows an index of a load or a store to be a multiple of.

The rules were asked of libtpu 0.0.50, an operation at a time: it refuses an index that isn't proved by them. It looks
at the operations only, not at the values that arguments may have, and not through loops and branches: a value that a
loop carries is no multiple of anything. What is folded away before that is None here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from jaxlib.mlir import ir

from mosaic_grid.dataflow.control import defining
from mosaic_grid.ir_types import Argument, Value

_DEEPEST = 24
_LOOPS = frozenset({"scf.for", "scf.while"})


def is_multiple(value: Value, number: int, depth: int = 0) -> bool | None:
    """Whether the compiler proves that a scalar is a multiple of `number`; None where nobody asked it of such a one."""
    if number == 1:
        return True
    known = constant(value)
    if known is not None:
        return known % number == 0
    if isinstance(value, ir.BlockArgument):
        return _argument(value)
    op, result = defining(value)
    if op.name in _LOOPS:
        return False if _is_stepped(op, result) else None
    if op.name == "scf.if":
        return _branches(op, result)
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
    """A grid index of more than one step, or what changes from iteration to iteration of a loop, is none."""
    owner, number = value.owner.owner.operation, value.arg_number
    if owner.name == "func.func":
        bounds = list(ir.DenseI64ArrayAttr(owner.attributes["iteration_bounds"]))
        return False if number < len(bounds) and bounds[number] != 1 else None
    if owner.name not in _LOOPS:
        return None
    if owner.name == "scf.for" and number == 0:
        return False if constant(owner.operands[2]) == 1 and not _is_folded(owner) else None
    return False if _is_stepped(owner, number - (owner.name == "scf.for")) else None


def _is_folded(loop: ir.Operation) -> bool:
    """Whether an `scf.for` has one iteration, or none, and the compiler sees it."""
    low, high, step = (constant(operand) for operand in list(loop.operands)[:3])
    return low is not None and high is not None and step is not None and len(range(low, high, max(step, 1))) <= 1


def _is_stepped(loop: ir.Operation, number: int) -> bool:
    """Whether a loop adds a constant to a value that it carries, in each of several iterations."""
    if loop.name == "scf.for" and _is_folded(loop):
        return False
    body = loop.regions[-1].blocks[0]
    if loop.name == "scf.while":
        # what the body is given is what the test passes on: there, and here, in the same order
        *_, passes = loop.regions[0].blocks[0].operations
        test = list(loop.regions[0].blocks[0].arguments)
        if list(passes.operation.operands)[1:] != test:
            return False
    *_, end = body.operations
    carried, given = body.arguments[number + (loop.name == "scf.for")], end.operation.operands[number]
    if isinstance(given, ir.BlockArgument) or defining(given)[0].name not in ("arith.addi", "arith.subi"):
        return False
    a, b = defining(given)[0].operands
    return a == carried and constant(b) not in (None, 0)


def _branches(op: ir.Operation, result: int) -> bool | None:
    """What a branch computes is none; values from outside would become a selection, and constants may be folded."""
    ends = [list(region.blocks[0].operations) for region in op.regions if len(region.blocks)]
    given = [end[-1].operation.operands[result] for end in ends if end]
    computed = [value for value in given if not isinstance(value, ir.BlockArgument) and _is_within(value, op)]
    return False if constant(op.operands[0]) is None and any(constant(value) is None for value in computed) else None


def _is_within(value: Value, op: ir.Operation) -> bool:
    return defining(value)[0].block in [region.blocks[0] for region in op.regions if len(region.blocks)]


def _may_be_equal(a: Value, b: Value, depth: int = 0) -> bool:
    """Whether two values may be one to the compiler: the same operations on the same values."""
    if a == b or depth >= _DEEPEST:
        return True
    if isinstance(a, ir.BlockArgument) or isinstance(b, ir.BlockArgument):
        return False
    (one, first), (other, second) = defining(a), defining(b)
    alike = (one.name, first, len(one.operands), len(one.regions)) == (other.name, second, len(other.operands), 0)
    if not alike or dict(_attributes(one)) != dict(_attributes(other)):
        return False
    pairs = [list(one.operands), list(one.operands)[::-1]]
    return any(all(_may_be_equal(x, y, depth + 1) for x, y in zip(each, other.operands, strict=True)) for each in pairs)


def _attributes(op: ir.Operation) -> list[tuple[str, str]]:
    return [(name, str(op.attributes[name])) for name in op.attributes]


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
    total, terms = 0, list[tuple[Value, int]]()
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
            terms.append((value, sign))
        if len(terms) > _DEEPEST:
            return None
    answers = [is_multiple(value, number, depth) for value, _ in terms]
    if all(answers):
        return total % number == 0 if terms else None
    added, subtracted = ([value for value, sign in terms if sign == kind] for kind in (1, -1))
    # what is subtracted from itself is gone
    gone = any(_may_be_equal(a, b) for a in added for b in subtracted)
    return None if None in answers or gone else False


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
