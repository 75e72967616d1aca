"""Sums over the integer arrays of a program: what is known of them under contracts, and what they are when it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.context import create_context
from mosaic_grid.dataflow.outer import OuterScalars
from mosaic_grid.errors import UserError

COUNT = 6
I32 = sym.type_range(32, True)


def blocks(lengths: Any, starts: Any, n: Any) -> Any:
    """What programs count: all elements, blocks of them, pairs, a part of a sum, and sums of the first ones."""
    covered = jnp.minimum(lengths, n)
    return (
        jnp.sum(lengths),
        jnp.sum((lengths + 7) // 8),
        jnp.sum(lengths - starts) + n,
        jnp.sum(jnp.where(lengths > 2, lengths, 0)),
        jnp.sum(covered) // 4,
        jnp.sum(lengths[:5]),
        jnp.sum(lengths.reshape(2, 3), axis=1)[1],
        jnp.cumsum(lengths)[3],
        jnp.cumsum(lengths)[-1] // 4,
        jnp.sum(jnp.cumsum(lengths) - lengths),
        jnp.sum(lengths[:3]),
        jnp.sum(jnp.concatenate([lengths, lengths])),
        jnp.sum(lengths, dtype=jnp.int8),
    )


def known(*contracts: str) -> list[tuple[str, sym.Expr, sym.Range]]:
    """What is found of each result: its text, the expression, and its range under the contracts."""
    shapes = (jax.ShapeDtypeStruct((COUNT,), "int32"), jax.ShapeDtypeStruct((COUNT,), "int32"))
    traced = jax.jit(blocks).trace(*shapes, jax.ShapeDtypeStruct((), "int32"))
    text = traced.lower(lowering_platforms=("tpu",)).as_text(debug_info=True)
    with create_context():
        program = ir.Module.parse(text)
        scalars = OuterScalars(program.operation, contracts)
        main = next(op for op in program.body.operations if op.operation.name == "func.func")
        exprs = [scalars.evaluate(value) for value in main.operation.regions[0].blocks[0].operations[-1].operands]
        return [(str(expr), expr, scalars.range_of(expr)) for expr in exprs]


def actual(lengths: Sequence[int], starts: Sequence[int], n: int) -> list[int]:
    """What the results are when the program runs."""
    return [int(each) for each in jax.jit(blocks)(np.array(lengths, np.int32), np.array(starts, np.int32), np.int32(n))]


def test_sums_by_name() -> None:
    """A sum of all elements of an input is called so; what may wrap around, or isn't all of an input, is another."""
    found = known()
    assert [text for text, _, _ in found][:4] == [
        "sum(lengths)",
        # of large lengths the sum with 7 wraps around, which the exact one doesn't
        "sum of ceildiv(lengths, 8)",
        "n + sum of lengths - starts",
        "sum(where(lengths > 2, lengths, 0))",
    ]
    assert all(values == I32 for _, _, values in found[:1] + found[2:4])
    others = [text for text, _, _ in found[1:-1] if text != "sum(lengths) // 4"]
    assert len(others) == len(found) - 3
    assert not any(text.startswith("sum(lengths)") for text in others)
    few = known("0 <= lengths[*] <= 100", "0 <= starts[*] <= 100")
    assert few[1][0] == "sum(ceildiv(lengths, 8))"
    assert few[2][0] == "n + sum(lengths) - sum(starts)"
    assert [values for _, _, values in few][:2] == [sym.Range(0, 600), sym.Range(0, 78)]


def test_sums_under_contracts() -> None:
    """A contract about a sum is one about the program's own, and what it says of others follows."""
    found = {text: values for text, _, values in known("lengths[*] >= 0", "sum(lengths) <= 64")}
    assert found["sum(lengths)"] == sym.Range(0, 64)
    # 8*sum(ceildiv(lengths, 8)) <= sum(lengths) + 6*7
    assert found["sum(ceildiv(lengths, 8))"] == sym.Range(0, 13)
    assert found["cumsum(lengths)[3]"] == sym.Range(0, 64)
    assert found["sum(lengths) // 4"] == sym.Range(0, 16)
    equal = {text: values for text, _, values in known("sum(lengths) == n", "n <= 9", "lengths[*] >= 1")}
    # six of them are at least 6
    assert equal["sum(lengths)"] == sym.Range(6, 9)


CONTENTS = st.lists(st.one_of(st.integers(0, 9), st.integers(-(2**31), 2**31 - 1)), min_size=COUNT, max_size=COUNT)
FOUND = known()
PROMISED = known("0 <= lengths[*]", "sum(lengths) <= 40", "starts[*] <= lengths[*]", "sum(starts) >= n")


def value(expr: sym.Expr, lengths: Sequence[int], starts: Sequence[int], n: int) -> int | None:
    """The value of an expression of the inputs; None where it is one of other unknowns."""
    arrays = {"lengths": lengths, "starts": starts}
    point: dict[sym.Expr, int] = {}
    for leaf in sym.leaves_of(expr):
        match leaf:
            case sym.Total(body=body):
                point[leaf] = sum(sym.value_of(body, _at(body, arrays, n, at)) for at in range(COUNT))
            case sym.Param("n"):
                point[leaf] = n
            case sym.Load("lengths" | "starts" as name, (sym.Const(at),)):
                point[leaf] = arrays[name][at]
            case _:
                return None
    return sym.value_of(expr, point)


def _at(body: sym.Expr, arrays: Mapping[str, Sequence[int]], n: int, place: int) -> dict[sym.Expr, int]:
    """The unknowns of a formula of elements at a place."""
    return {leaf: arrays[leaf.name][place] if isinstance(leaf, sym.Load) else n for leaf in sym.leaves_of(body)}


@settings(max_examples=60, deadline=None)
@given(CONTENTS, CONTENTS, st.integers(-(2**31), 2**31 - 1))
def test_any_contents(lengths: list[int], starts: list[int], n: int) -> None:
    """What is found is what the program computes, where sums wrap around as well."""
    for (text, expr, values), result in zip(FOUND, actual(lengths, starts, n), strict=True):
        assert result in values, text
        assert value(expr, lengths, starts, n) in (None, result), text


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=COUNT, max_size=COUNT), st.data())
def test_contents_within_contracts(lengths: list[int], data: st.DataObject) -> None:
    """What is found under contracts is what the program computes where they are kept."""
    while sum(lengths) > 40:
        lengths[lengths.index(max(lengths))] //= 2
    starts = [data.draw(st.integers(-9, length)) for length in lengths]
    n = data.draw(st.integers(-60, sum(starts)))
    for (text, expr, values), result in zip(PROMISED, actual(lengths, starts, n), strict=True):
        assert result in values, text
        assert value(expr, lengths, starts, n) in (None, result), text


def test_contracts_that_no_sum_keeps() -> None:
    """A sum that its elements can't have is a contradiction, through other unknowns as well."""
    for contracts in (("sum(lengths) <= 5", "lengths[*] >= 1"), ("sum(lengths) == n", "n <= 5", "lengths[*] >= 1")):
        with pytest.raises(UserError) as caught:
            known(*contracts)
        assert caught.value.message.endswith("and 'lengths[*] >= 1' contradict each other")


@pytest.mark.parametrize(
    ("contract", "message"),
    [
        ("sum(n) >= 1", "contract 'sum(n) >= 1': 'n' is a scalar"),
        ("sum(length) >= 1", "contract 'sum(length) >= 1': the program has no integer argument 'length'; did you mean"),
        ("sum(lengths + n) >= 1", ""),
        ("sum(%arg0[*] - starts) >= 1", ""),
    ],
)
def test_what_can_be_summed_up(contract: str, message: str) -> None:
    """Arrays of the program by every name they have, with its scalars."""
    if not message:
        known(contract)
        return
    with pytest.raises(UserError) as caught:
        known(contract)
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("3x2", "contract 'sum(a[*] - b[*]) >= 1': b differs in shape from an array that it is summed up with"),
        ("?x3", "contract 'sum(a[*] - b[*]) >= 1': b differs in shape from an array that it is summed up with"),
        ("2x3", ""),
    ],
)
def test_arrays_that_are_summed_up_together(second: str, message: str) -> None:
    """They have one shape, of a known number of elements."""
    text = f"""
      func.func public @main(%a: tensor<2x3xi32> loc("a"), %b: tensor<{second}xi32> loc("b"),
                             %c: tensor<?xi32> loc("c")) {{ return }}"""

    def told(contract: str) -> str:
        with create_context():
            program = ir.Module.parse(text)
            try:
                OuterScalars(program.operation, (contract,))
            except UserError as error:
                return error.message
        return ""

    assert told("sum(a[*] - b[*]) >= 1") == message
    assert told("sum(a) >= 1") == ""
    assert told("sum(c) >= 1") == "contract 'sum(c) >= 1': how many elements c has isn't known"
