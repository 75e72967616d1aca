"""The text of a contract as a truth value: the constraints of `jax.export.symbolic_shape`, chains, and array elements.

    "n >= 1"    "mod(n, 8) == 0"    "n <= 4*m"    "0 <= lengths[*] < 1024"    "floordiv(n + 7, 8) <= min(m, 16)"
    "sum(lengths) <= 4096"    "sum(ceildiv(lengths[*], 128)) <= n"

Sums, integer factors, `floordiv`, `mod`, `ceildiv`, `min`, `max`, and Python's `//` and `%`, so that what this package
prints can be read back; `sum` adds up all elements. Numbers are integers without a limit: nothing in a contract wraps
around.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import NoReturn, cast

from mosaic_grid.symbolic.arith import add, constant, load, mul, neg, parameter, sub
from mosaic_grid.symbolic.choice import comparison, conjunction, maximum, minimum
from mosaic_grid.symbolic.division import ceildiv, floordiv, mod
from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.facts import leaves_of
from mosaic_grid.symbolic.nodes import Const, Load, Param, Relation
from mosaic_grid.symbolic.ranges import Range, type_range
from mosaic_grid.symbolic.totals import total

_NAME = r"%?[A-Za-z_][\w.]*"
_TOKEN = re.compile(rf"\s*(?:(\d+)|({_NAME})|(//|>=|<=|==|!=|[-+*%^()\[\],<>]))")
_RELATIONS = ("<=", ">=", "==", "!=", "<", ">")
_DIVISIONS: dict[str, Callable[[Expr, Expr], Expr]] = {"floordiv": floordiv, "mod": mod, "ceildiv": ceildiv}
_EXTREMA: dict[str, Callable[..., Expr]] = {"min": minimum, "max": maximum}
_INFIX = {"//": "floordiv", "%": "mod"}
_SUM = "sum"
_FUNCTIONS = (*_DIVISIONS, *_EXTREMA, _SUM)
_ALLOWED = f"an integer, a name, array[*], {', '.join(_FUNCTIONS)} or a parenthesis"
ANY_SIZE = 1 << 32
"""How many elements an array is taken to have in a dimension where that isn't known."""
_I32 = type_range(32, True)
# a person writes less, and a parser that recurses must end
_LONGEST, _DEEPEST = 1000, 40


class ContractError(ValueError):
    """A contract that can't be read: `message` says why, at `column` of `text`, counted from 1."""

    def __init__(self, text: str, column: int, message: str) -> None:
        super().__init__(text, column, message)
        self.text, self.column, self.message = text, column, message

    def __str__(self) -> str:
        return f"contract '{self.text}', column {self.column}: {self.message}"


@dataclasses.dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    column: int


def is_name(text: str) -> bool:
    """Whether a contract can speak of an unknown of this name."""
    return re.fullmatch(_NAME, text) is not None and text not in _FUNCTIONS


def parse(
    text: str, ranges: Mapping[str, Range] | None = None, shapes: Mapping[str, tuple[int, ...]] | None = None
) -> Expr:
    """The truth value that the contract says is 1; raises `ContractError`.

    An unknown is in its range in `ranges`, by default that of an i32. `array[*]` is a `Load` without an index, which
    stands for any element; `array[2, 0]` is that element. In a sum the name of an array, one of `shapes`, stands for
    any element too; every name does where the shapes aren't known. A sum is a `Total`, over as many elements as there
    can be where its shape isn't known.
    """
    return _Parser(text, ranges or {}, shapes).contract()


class _Parser:
    def __init__(self, text: str, ranges: Mapping[str, Range], shapes: Mapping[str, tuple[int, ...]] | None) -> None:
        self.text = text
        self.ranges = ranges
        self.shapes = shapes
        self.depth = 0
        self.in_total = False
        if len(text) > _LONGEST:
            self.fail(_LONGEST + 1, f"a contract has at most {_LONGEST} characters")
        self.tokens = self.split()
        self.at = 0

    def fail(self, column: int, message: str) -> NoReturn:
        raise ContractError(self.text, column, message)

    def split(self) -> list[_Token]:
        tokens: list[_Token] = []
        end = len(self.text.rstrip())
        position = 0
        while position < end:
            found = _TOKEN.match(self.text, position)
            if found is None:
                start = position + len(self.text[position:]) - len(self.text[position:].lstrip())
                hint = "; write == for equality" if self.text[start] == "=" else ""
                self.fail(start + 1, f"unexpected {self.text[start]!r}{hint}")
            kind = ("number", "name", "sign")[(found.lastindex or 1) - 1]
            tokens.append(_Token(kind, found[found.lastindex or 1], found.start(found.lastindex or 1) + 1))
            position = found.end()
        return [*tokens, _Token("end", "the end", end + 1)]

    @property
    def next(self) -> _Token:
        return self.tokens[self.at]

    def take(self) -> _Token:
        token = self.next
        self.at += token.kind != "end"
        return token

    def accept(self, *signs: str) -> _Token | None:
        return self.take() if self.next.kind == "sign" and self.next.text in signs else None

    def expect(self, sign: str, why: str) -> None:
        if self.accept(sign) is None:
            self.unexpected(f"{sign!r} {why}")

    def unexpected(self, wanted: str) -> NoReturn:
        found = self.next.text if self.next.kind == "end" else repr(self.next.text)
        self.fail(self.next.column, f"expected {wanted}, not {found}")

    def contract(self) -> Expr:
        """A chain of comparisons: each of neighbouring sides."""
        left = self.sum()
        held: list[Expr] = []
        while (relation := self.accept(*_RELATIONS)) is not None:
            right = self.sum()
            held.append(comparison(cast("Relation", relation.text), left, right))
            left = right
        if self.next.kind != "end" or not held:
            self.unexpected(f"{'an operator or' if held else ''} one of {' '.join(_RELATIONS)}".strip())
        return conjunction(*held)

    def sum(self) -> Expr:
        self.depth += 1
        if self.depth > _DEEPEST:
            self.fail(self.next.column, f"parentheses are nested deeper than {_DEEPEST}")
        total = self.term()
        while (sign := self.accept("+", "-")) is not None:
            term = self.term()
            total = add(total, term) if sign.text == "+" else sub(total, term)
        self.depth -= 1
        return total

    def term(self) -> Expr:
        product = self.factor()
        while (sign := self.accept("*", "//", "%", "^")) is not None:
            column = self.next.column
            factor = self.factor()
            if sign.text == "^":
                self.fail(sign.column, "a power is not linear: only sums of integers times unknowns can be decided")
            if sign.text == "*":
                product = self.product(product, factor, sign.column)
            else:
                product = self.division(_INFIX[sign.text], product, factor, column)
        return product

    def product(self, a: Expr, b: Expr, column: int) -> Expr:
        if not isinstance(a, Const) and not isinstance(b, Const):
            why = f"the product of {a} and {b} is not linear: one factor has to be an integer"
            self.fail(column, f"{why}; give the product a name of its own")
        return mul(a, b)

    def division(self, name: str, a: Expr, b: Expr, column: int) -> Expr:
        if not isinstance(b, Const):
            self.fail(column, f"{name} by {b}, which is not an integer: only integer divisors can be decided")
        if b.value == 0:
            self.fail(column, f"{name} by 0")
        return _DIVISIONS[name](a, b)

    def factor(self) -> Expr:
        signs = 0
        while (sign := self.accept("-", "+")) is not None:
            signs += sign.text == "-"
        atom = self.atom()
        return neg(atom) if signs % 2 else atom

    def atom(self) -> Expr:
        token = self.next
        if token.kind == "number":
            return constant(int(self.take().text))
        if token.kind == "name":
            return self.named(self.take())
        if self.accept("(") is None:
            self.unexpected(_ALLOWED)
        inner = self.sum()
        self.expect(")", "or an operator")
        return inner

    def named(self, name: _Token) -> Expr:
        if self.accept("(") is not None:
            return self.call(name)
        values = self.ranges.get(name.text, _I32)
        if self.accept("[") is not None:
            return load(name.text, self.index(), values)
        if name.text in _FUNCTIONS:
            self.unexpected(f"'(' after {name.text}")
        if self.in_total and (self.shapes is None or name.text in self.shapes):
            return load(name.text, (), values)
        return parameter(name.text, values)

    def index(self) -> tuple[Expr, ...]:
        """None for `[*]`, which is any element."""
        if self.accept("*") is not None:
            self.expect("]", "after *, which stands for every element of an array of any rank")
            return ()
        places: list[Expr] = []
        while not places or self.accept(","):
            if self.next.kind != "number":
                self.unexpected("* or the integers of an element's index")
            places.append(constant(int(self.take().text)))
        self.expect("]", "or ','")
        return tuple(places)

    def call(self, name: _Token) -> Expr:
        if name.text not in _FUNCTIONS:
            self.fail(name.column, f"unknown function {name.text!r}: there are {', '.join(_FUNCTIONS)}")
        if name.text == _SUM:
            return self.total(name)
        args = [self.sum()]
        column = self.next.column
        while self.accept(","):
            column = self.next.column
            args.append(self.sum())
        self.expect(")", "or ','")
        if name.text in _EXTREMA:
            return _EXTREMA[name.text](*args)
        if len(args) != 2:
            self.fail(name.column, f"{name.text} takes 2 arguments, not {len(args)}")
        return self.division(name.text, args[0], args[1], column)

    def total(self, name: _Token) -> Expr:
        """The sum of a formula of elements, over all places; `sum(array)` is that of the elements themselves."""
        if self.in_total:
            self.fail(name.column, "a sum in a sum: give the inner one a name of its own")
        self.in_total = True
        body = self.sum()
        self.in_total = False
        self.expect(")", "or an operator")
        if isinstance(body, Param):
            body = load(body.name, (), body.values)
        arrays = [leaf.name for leaf in leaves_of(body) if isinstance(leaf, Load) and not leaf.index]
        if not arrays:
            self.fail(name.column, f"there is nothing to sum up in {body}: write sum(array), or sum(... array[*] ...)")
        return total(body, (self.shapes or {}).get(arrays[0], (ANY_SIZE,)))
