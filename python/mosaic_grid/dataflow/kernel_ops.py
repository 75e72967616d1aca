"""The scalar operations of index maps, as rules from expressions to an expression.

An `i1` is unsigned (true is 1), every other integer is signed, and an `index` has 32 bits, as on the TPU's scalar unit.
Where the result is poison or undefined (a divisor of 0, a shift by more than the width) there is no rule: `None`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.tensors import IntType
from mosaic_grid.symbolic.nodes import Compare

Args = Sequence[sym.Expr]
Rule = Callable[[ir.Operation, IntType, Args], sym.Expr | None]

# a mask of more runs of ones than this makes an expression that says nothing
_MOST_RUNS = 3

# arith.cmpi's predicates in the order of their numbers: relation, and whether it is about unsigned values
_PREDICATES: tuple[tuple[sym.Relation, bool], ...] = (
    ("==", False),
    ("!=", False),
    ("<", False),
    ("<=", False),
    (">", False),
    (">=", False),
    ("<", True),
    ("<=", True),
    (">", True),
    (">=", True),
)


def scalar_type(kind: ir.Type) -> IntType | None:
    """The type of an integer scalar, `None` for every other type."""
    if isinstance(kind, ir.IntegerType):
        width = kind.width
        return _integer(width, width > 1 and not kind.is_unsigned)
    return _integer(32, True) if isinstance(kind, ir.IndexType) else None


_integer = functools.lru_cache(maxsize=64)(IntType)


def rule_of(op: ir.Operation) -> Rule | None:
    """The rule of an operation, if it has one."""
    return _RULES.get(op.name)


def _fitted(kind: IntType, exact: sym.Expr) -> sym.Expr | None:
    """An exact result as the machine holds it: modulo 2**bits."""
    return None if kind.is_bool else sym.wrap(exact, kind.bits, kind.signed)


def _constant(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr | None:
    return constant_in(op)


def constant_in(op: ir.Operation) -> sym.Expr | None:
    """The number that an `arith.constant` gives, if it is an integer scalar."""
    value = op.attributes["value"]
    return sym.constant(int(value.value)) if isinstance(value, ir.IntegerAttr | ir.BoolAttr) else None


def _add(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr | None:
    if kind.is_bool:
        # modulo 2
        return sym.comparison("!=", *args)
    return _fitted(kind, sym.add(*args))


def _subtract(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr | None:
    if kind.is_bool:
        # modulo 2
        return sym.comparison("!=", *args)
    match args:
        case [Compare(">", x, sym.Const(0)), Compare("<", y, sym.Const(0))] if x == y:
            # (x > 0) - (x < 0) = sign(x), as JAX writes it
            return sym.sign(x)
    return _fitted(kind, sym.sub(*args))


def _multiply(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr | None:
    return sym.conjunction(*args) if kind.is_bool else _fitted(kind, sym.mul(*args))


def _divide(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr | None:
    return sym.truncdiv(*args) if _is_defined_division(kind, *args) else None


def _divide_down(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr | None:
    return sym.floordiv(*args) if _is_defined_division(kind, *args) else None


def _divide_up(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr | None:
    return sym.ceildiv(*args) if _is_defined_division(kind, *args) else None


def _remainder(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr | None:
    return sym.truncrem(*args) if _is_defined_division(kind, *args) else None


def _divide_unsigned(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr | None:
    a, b = (_unsigned(kind, arg) for arg in args)
    return None if 0 in sym.range_of(b) else _fitted(kind, sym.floordiv(a, b))


def _remainder_unsigned(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr | None:
    a, b = (_unsigned(kind, arg) for arg in args)
    return None if 0 in sym.range_of(b) else _fitted(kind, sym.mod(a, b))


def _unsigned(kind: IntType, a: sym.Expr) -> sym.Expr:
    """The bits of `a` read as an unsigned integer."""
    return sym.wrap(a, kind.bits, False, cast=True)


def _is_defined_division(kind: IntType, a: sym.Expr, b: sym.Expr) -> bool:
    """Whether the divisor is never 0 and the quotient always fits its type."""
    divisors = sym.range_of(b)
    overflows = kind.range.lo in sym.range_of(a) and -1 in divisors
    return 0 not in divisors and not overflows and not kind.is_bool


def _minimum(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr | None:
    return None if kind.is_bool else sym.minimum(*args)


def _maximum(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr | None:
    return None if kind.is_bool else sym.maximum(*args)


def _select(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr:
    return sym.select(*args)


def _compare(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr | None:
    relation, unsigned = _PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value]
    operand = scalar_type(op.operands[0].type)
    if operand is None:
        return None
    if unsigned:
        return sym.comparison(relation, *(_unsigned(operand, arg) for arg in args))
    # in a signed order of truth values true is -1
    return None if operand.is_bool and relation not in ("==", "!=") else sym.comparison(relation, *args)


def _and(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr | None:
    return sym.conjunction(*args) if kind.is_bool else _common_bits(*args)


def _or(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr | None:
    if kind.is_bool:
        return sym.disjunction(*args)
    common = _common_bits(*args)
    # a | b = a + b - (a & b)
    return None if common is None else sym.sub(sym.add(*args), common)


def _xor(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr | None:
    if kind.is_bool:
        return sym.comparison("!=", *args)
    common = _common_bits(*args)
    # a ^ b = a + b - 2*(a & b)
    return None if common is None else sym.sub(sym.add(*args), sym.mul(sym.constant(2), common))


def _common_bits(a: sym.Expr, b: sym.Expr) -> sym.Expr | None:
    """`a & b` where one is a constant whose bits form few runs; true of negative numbers in two's complement too."""
    mask = sym.constant_of(b)
    if mask is None:
        a, b, mask = b, a, sym.constant_of(a)
    if mask is None:
        return None
    if mask < 0:
        # a & b = a - (a & ~b)
        rest = _common_bits(a, sym.constant(~mask))
        return None if rest is None else sym.sub(a, rest)
    total = sym.constant(0)
    for _ in range(_MOST_RUNS):
        if mask == 0:
            return total
        low = mask & -mask
        high = (mask + low) & -(mask + low)
        # the bits of a from low = 2**l to below high = 2**h: low * (a // low % (high / low))
        run = sym.mod(sym.floordiv(a, sym.constant(low)), sym.constant(high // low))
        total, mask = sym.add(total, sym.mul(sym.constant(low), run)), mask & ~(high - 1)
    return None if mask else total


def _shift_left(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr | None:
    factor = _power(kind, args[1])
    # a << k = a * 2**k
    return None if factor is None else _fitted(kind, sym.mul(args[0], factor))


def _shift_right(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr | None:
    factor = _power(kind, args[1])
    # a >> k = a // 2**k, rounded down for negative a too
    return None if factor is None else sym.floordiv(args[0], factor)


def _shift_right_logical(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr | None:
    factor = _power(kind, args[1])
    return None if factor is None else _fitted(kind, sym.floordiv(_unsigned(kind, args[0]), factor))


def _power(kind: IntType, amount: sym.Expr) -> sym.Expr | None:
    """`2**amount` for a constant amount below the width."""
    k = sym.constant_of(amount)
    return None if kind.is_bool or k is None or not 0 <= k < kind.bits else sym.constant(1 << k)


def _cast(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr:
    # to i1: the lowest bit
    return sym.mod(args[0], sym.constant(2)) if kind.is_bool else sym.wrap(args[0], kind.bits, kind.signed, cast=True)


def _cast_index(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr | None:
    signed = _extend_signed(op, kind, args)
    return None if signed is None else _cast(op, kind, [signed])


def _extend_signed(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr | None:
    operand = scalar_type(op.operands[0].type)
    # the sign of a true i1 is its only bit: -1
    return None if operand is None else sym.neg(args[0]) if operand.is_bool else args[0]


def _extend_unsigned(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr | None:
    operand = scalar_type(op.operands[0].type)
    return None if operand is None else sym.wrap(args[0], operand.bits, False, cast=True)


def _same(op: ir.Operation, kind: IntType, args: Args) -> sym.Expr:
    return args[0]


_RULES: dict[str, Rule] = {
    "arith.addi": _add,
    "arith.andi": _and,
    "arith.ceildivsi": _divide_up,
    "arith.cmpi": _compare,
    "arith.constant": _constant,
    "arith.divsi": _divide,
    "arith.divui": _divide_unsigned,
    "arith.extsi": _extend_signed,
    "arith.extui": _extend_unsigned,
    "arith.floordivsi": _divide_down,
    "arith.index_cast": _cast_index,
    "arith.maxsi": _maximum,
    "arith.minsi": _minimum,
    "arith.muli": _multiply,
    "arith.ori": _or,
    "arith.remsi": _remainder,
    "arith.remui": _remainder_unsigned,
    "arith.select": _select,
    "arith.shli": _shift_left,
    "arith.shrsi": _shift_right,
    "arith.shrui": _shift_right_logical,
    "arith.subi": _subtract,
    "arith.trunci": _cast,
    "arith.xori": _xor,
    "tpu.assume_multiple": _same,
}
