"""Every operation against brute force: at every point the facts hold and simplification keeps the value."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mosaic_grid import symbolic as sym
from mosaic_grid.symbolic.arith import linear_parts
from mosaic_grid.symbolic.evaluate import wrapped
from mosaic_grid.symbolic.nodes import Wrap
from mosaic_grid.symbolic.quotients import truncated_quotient, truncated_remainder

PARAMS = (
    sym.parameter("a", sym.Range(-5, 4)),
    sym.parameter("b", sym.Range(0, 6)),
    sym.parameter("c", sym.Range(-8, 8), divisor=4),
)
POINTS = [
    dict(zip(PARAMS, values, strict=True)) for values in itertools.product(range(-5, 5), range(7), (-8, -4, 0, 4, 8))
]
Values = tuple[int, ...]
# an expression together with its value at every point, computed without any rule
Sample = tuple[sym.Expr, Values]

UNARY: dict[str, tuple[Callable[[sym.Expr], sym.Expr], Callable[[int], int]]] = {
    "neg": (sym.neg, lambda x: -x),
    "abs": (sym.absolute, abs),
    "sign": (sym.sign, lambda x: (x > 0) - (x < 0)),
    "wrap i4": (lambda x: sym.wrap(x, 4, True), lambda x: wrapped(x, 4, True)),
    "wrap ui3": (lambda x: sym.wrap(x, 3, False), lambda x: wrapped(x, 3, False)),
    "cast i3": (lambda x: sym.wrap(x, 3, True, cast=True), lambda x: wrapped(x, 3, True)),
}
BINARY: dict[str, tuple[Callable[[sym.Expr, sym.Expr], sym.Expr], Callable[[int, int], int]]] = {
    "add": (sym.add, lambda x, y: x + y),
    "sub": (sym.sub, lambda x, y: x - y),
    "mul": (sym.mul, lambda x, y: x * y),
    "min": (sym.minimum, min),
    "max": (sym.maximum, max),
    "==": (lambda x, y: sym.comparison("==", x, y), lambda x, y: int(x == y)),
    "!=": (lambda x, y: sym.comparison("!=", x, y), lambda x, y: int(x != y)),
    "<": (lambda x, y: sym.comparison("<", x, y), lambda x, y: int(x < y)),
    "<=": (lambda x, y: sym.comparison("<=", x, y), lambda x, y: int(x <= y)),
    ">": (lambda x, y: sym.comparison(">", x, y), lambda x, y: int(x > y)),
    ">=": (lambda x, y: sym.comparison(">=", x, y), lambda x, y: int(x >= y)),
}
DIVISIONS: dict[str, tuple[Callable[[sym.Expr, sym.Expr], sym.Expr], Callable[[int, int], int]]] = {
    "floordiv": (sym.floordiv, lambda x, y: x // y),
    "ceildiv": (sym.ceildiv, lambda x, y: -(-x // y)),
    "mod": (sym.mod, lambda x, y: x % y),
    "truncdiv": (sym.truncdiv, truncated_quotient),
    "truncrem": (sym.truncrem, truncated_remainder),
}


def truth(sample: Sample) -> Sample:
    """A truth value made of any sample."""
    expr, values = sample
    return sym.comparison("!=", expr, sym.constant(0)), tuple(int(v != 0) for v in values)


def combine(children: st.SearchStrategy[Sample]) -> st.SearchStrategy[Sample]:
    """All operations over the given samples."""

    def unary(name: str, x: Sample) -> Sample:
        build, meaning = UNARY[name]
        return build(x[0]), tuple(map(meaning, x[1]))

    def binary(name: str, x: Sample, y: Sample) -> Sample:
        build, meaning = BINARY[name]
        return build(x[0], y[0]), tuple(map(meaning, x[1], y[1]))

    @st.composite
    def division(draw: st.DrawFn) -> Sample:
        (x, xs), (y, ys) = draw(children), draw(children)
        assume(0 not in sym.range_of(y))
        build, meaning = DIVISIONS[draw(st.sampled_from(sorted(DIVISIONS)))]
        return build(x, y), tuple(map(meaning, xs, ys))

    def logic(every: bool, x: Sample, y: Sample) -> Sample:
        (p, ps), (q, qs) = truth(x), truth(y)
        build = sym.conjunction if every else sym.disjunction
        return build(p, q), tuple(map(min if every else max, ps, qs))

    def negation(x: Sample) -> Sample:
        p, ps = truth(x)
        return sym.negation(p), tuple(1 - v for v in ps)

    def select(x: Sample, y: Sample, z: Sample) -> Sample:
        p, ps = truth(x)
        return sym.select(p, y[0], z[0]), tuple(t if v else f for v, t, f in zip(ps, y[1], z[1], strict=True))

    return st.one_of(
        st.builds(unary, st.sampled_from(sorted(UNARY)), children),
        st.builds(binary, st.sampled_from(sorted(BINARY)), children, children),
        division(),
        st.builds(logic, st.booleans(), children, children),
        st.builds(negation, children),
        st.builds(select, children, children, children),
    )


def jax_floor_divide(x: Sample, k: int) -> Sample:
    """`x // k` in 6 bits as `jnp.floor_divide` spells it."""
    a, b, zero = x[0], sym.constant(k), sym.constant(0)
    q = sym.truncdiv(a, b)
    differ = sym.comparison("!=", sym.sign(a), sym.sign(b))
    inexact = sym.comparison("!=", sym.truncrem(a, b), zero)
    less = sym.wrap(sym.sub(q, sym.constant(1)), 6, True)
    values = []
    for v in x[1]:
        quotient = truncated_quotient(v, k)
        adjust = v - k * quotient != 0 and (v < 0) != (k < 0)
        values.append(wrapped(quotient - 1, 6, True) if adjust else quotient)
    return sym.select(sym.conjunction(differ, inexact), less, q), tuple(values)


def jax_remainder(x: Sample, k: int) -> Sample:
    """`x % k` as `jnp.remainder` spells it."""
    a, b, zero = x[0], sym.constant(k), sym.constant(0)
    r = sym.truncrem(a, b)
    differ = sym.comparison("!=", sym.comparison("<", r, zero), sym.comparison("<", b, zero))
    condition = sym.conjunction(differ, sym.comparison("!=", r, zero))
    return sym.select(condition, sym.add(r, b), r), tuple(v % k for v in x[1])


LEAVES: st.SearchStrategy[Sample] = st.one_of(
    st.sampled_from([(p, tuple(point[p] for point in POINTS)) for p in PARAMS]),
    st.integers(-9, 9).map(lambda v: (sym.constant(v), (v,) * len(POINTS))),
)
SAMPLES = st.recursive(LEAVES, combine, max_leaves=10)


def check(sample: Sample) -> None:
    """The facts of the expression against its values, and its own evaluation."""
    expr, values = sample
    assert tuple(sym.value_of(expr, point) for point in POINTS) == values, expr
    assert min(values) in sym.range_of(expr), expr
    assert max(values) in sym.range_of(expr), expr
    divisor = sym.divisor_of(expr)
    assert all(v % divisor == 0 if divisor else v == 0 for v in values), expr
    constant = sym.constant_of(expr)
    assert constant is None or set(values) == {constant}


@settings(max_examples=400, deadline=None)
@given(SAMPLES)
def test_facts_and_value_of_every_operation(sample: Sample) -> None:
    """Range, divisor, constant and value agree with brute force."""
    check(sample)


@settings(max_examples=300, deadline=None)
@given(SAMPLES, st.sampled_from([-7, -4, -2, -1, 1, 2, 3, 4, 8]))
def test_jax_division_chains(sample: Sample, k: int) -> None:
    """Recognising the chain of `//` and `%` never changes its value, overflow included."""
    check(jax_floor_divide(sample, k))
    check(jax_remainder(sample, k))


@settings(max_examples=300, deadline=None)
@given(SAMPLES)
def test_the_text_is_python_with_the_same_value(sample: Sample) -> None:
    """The printed form, read by Python, has the expression's value wherever nothing in it wraps."""
    expr, values = sample
    assume(not sym.wraps_in(expr))
    names: dict[str, object] = {
        "div": truncated_quotient,
        "rem": truncated_remainder,
        "ceildiv": lambda x, y: -(-x // y),
        "where": lambda c, x, y: x if c else y,
    }
    code = compile(str(expr), "expr", "eval")
    printed = tuple(int(eval(code, {**names, **{str(k): v for k, v in point.items()}})) for point in POINTS)
    assert printed == values, str(expr)


@settings(max_examples=200, deadline=None)
@given(SAMPLES, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), st.integers(-12, 12))
def test_verdicts_are_true(sample: Sample, relation: sym.Relation, k: int) -> None:
    """`Proved` holds at every point and `Refuted` at none; its witness names the unknowns."""
    expr, values = sample
    holds = [BINARY[relation][1](v, k) for v in values]
    match sym.compare(expr, relation, k):
        case sym.Proved():
            assert all(holds)
        case sym.Refuted(witness):
            assert not any(holds)
            point = {p: dict(witness.values).get(str(p), 0) for p in PARAMS}
            assert not BINARY[relation][1](sym.value_of(expr, point), k)
        case sym.Unknown(reason):
            assert str(expr) in reason


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(SAMPLES, st.integers(-(10**30), 10**30)), min_size=1, max_size=3),
    st.integers(-(10**30), 10**30),
    st.integers(1, 8),
    st.booleans(),
)
def test_coefficients_are_reduced_to_the_bits_they_are_taken_modulo(
    terms: list[tuple[Sample, int]], offset: int, bits: int, signed: bool
) -> None:
    """A wrapped sum of any coefficients has the value it had, and none is left that is longer than the type."""
    total = sym.add(sym.constant(offset), *(sym.mul(sym.constant(k), expr) for (expr, _), k in terms))
    sums = [
        offset + sum(k * v for (_, k), v in zip(terms, row, strict=True))
        for row in zip(*(s[1] for s, _ in terms), strict=True)
    ]
    held = sym.wrap(total, bits, signed)
    check((held, tuple(wrapped(v, bits, signed) for v in sums)))
    if isinstance(held, Wrap):
        parts, constant = linear_parts(held.inner)
        half = 2 ** (bits - 1)
        assert all(-half <= k < half for k in (constant, *(c for _, c in parts)))
