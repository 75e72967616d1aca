"""Programs that check contracts themselves: within them they are what they were, else they launch nothing."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from dynamic_programs import programs
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jaxlib.mlir import ir

import mosaic_grid
from mosaic_grid import symbolic as sym
from mosaic_grid.context import create_context
from mosaic_grid.cpu.execute import compile_program as compiled
from mosaic_grid.errors import UserError
from mosaic_grid.libtpu import compile_program, libtpu_available
from mosaic_grid.passes.insert_contract_checks import InsertContractChecks
from mosaic_grid.session import Session
from mosaic_grid.symbolic.contract_syntax import parse
from mosaic_grid.targets import parse_target
from mosaic_grid.unpack import pack, unpack

SCALARS = """
module {
func.func public @main(%arg0: tensor<i32>, %arg1: tensor<i8>, %arg2: tensor<2x3xi32>, %arg3: tensor<2x3xi32>)
    -> (tensor<2xf32>, tensor<i1>, tensor<3xi16>) {
  %0 = stablehlo.constant dense<1.0> : tensor<2xf32>
  %1 = stablehlo.constant dense<true> : tensor<i1>
  %2 = stablehlo.constant dense<7> : tensor<3xi16>
  return %0, %1, %2 : tensor<2xf32>, tensor<i1>, tensor<3xi16>
}
}
"""


def checked(text: str, *contracts: str) -> str:
    """The program with checks."""
    with create_context(), ir.Location.unknown():
        module = ir.Operation.parse(text).operation
        if "tpu_custom_call" in text:
            unpack(module)
        InsertContractChecks().run(module, Session(contracts=contracts))
        assert module.verify()
        if "tpu_custom_call" in text:
            pack(module)
        return str(module.get_asm(enable_debug_info=True))


def run(text: str, *arguments: Any) -> tuple[Any, ...]:
    """The results on the CPU."""
    return mosaic_grid.run(text, *arguments)


def arguments(n: int = 0, m: int = 0, a: Any = 0, b: Any = 0) -> list[Any]:
    """The arguments of `SCALARS`."""
    arrays = [np.broadcast_to(np.asarray(each, np.int32), (2, 3)) for each in (a, b)]
    return [np.int32(n), np.int8(m), *arrays]


def refused(text: str, *given: Any) -> str:
    """The message of a run that stops."""
    with pytest.raises(UserError) as error:
        run(text, *given)
    return error.value.message


def test_kept_contracts_change_nothing() -> None:
    """The results are bit for bit those of the program without checks, and then comes a 0."""
    text, inputs = programs()["matmul"]
    checks = checked(text, "%arg0 <= 4", "%arg0 >= 0")
    for n in (0, 1, 4):
        given = [np.int32(n), *inputs]
        *found, broken = run(checks, *given)
        expected = run(text, *given)
        assert int(broken) == 0
        assert [each.tobytes() for each in found] == [each.tobytes() for each in expected]
    assert refused(checks, np.int32(5), *inputs) == "contract '%arg0 <= 4' is broken by argument 0 ('%arg0')"
    assert refused(checks, np.int32(-1), *inputs).startswith("contract '%arg0 >= 0' is broken by argument 0")


def test_results_out_of_contract() -> None:
    """They are NaN, false and the least integer, and the first contract that is broken is told by its number."""
    text = checked(SCALARS, "%arg0 >= 1", "%arg1 >= 1")
    with create_context(), ir.Location.unknown():
        executable = compiled(ir.Operation.parse(text).operation)
        floats, truth, integers, broken = executable(*arguments(n=1, m=0))
    assert np.isnan(floats).all()
    assert (integers == -(2**15)).all()
    assert (bool(truth), int(broken)) == (False, 2)
    assert [int(executable(*arguments(n, m))[3]) for n, m in ((0, 0), (0, 1), (1, 1))] == [1, 1, 0]


def test_arrays() -> None:
    """A contract about all elements is broken by any one, at the same place of two arrays; one about one by that."""
    both = checked(SCALARS, "%arg2[*] <= %arg3[*] + 1")
    assert int(run(both, *arguments(a=3, b=[[2, 2, 2], [2, 9, 2]]))[-1]) == 0
    assert "argument 2 ('%arg2') or argument 3" in refused(both, *arguments(a=3, b=[[2, 2, 2], [2, 1, 2]]))
    one = checked(SCALARS, "%arg2[1, 2] == 5")
    assert int(run(one, *arguments(a=[[0, 0, 0], [0, 0, 5]]))[-1]) == 0
    assert "'%arg2[1, 2] == 5'" in refused(one, *arguments(a=[[5, 5, 5], [5, 5, 4]]))


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(["{}", "ceildiv({}, 8)", "max(3, 2*{})", "{} - %arg0"]),
    st.lists(st.one_of(st.integers(-9, 9), st.integers(-(2**31), 2**31 - 1)), min_size=6, max_size=6),
    st.sampled_from(["<=", "==", ">"]),
    st.integers(-1, 1),
)
def test_sums_mean_what_they_say(each: str, elements: list[int], relation: str, more: int) -> None:
    """A sum is that of integers without bounds: what leaves 32 bits doesn't wrap around, in a part of it or in all."""
    n = 3
    values = {"{}": lambda a: a, "ceildiv({}, 8)": lambda a: -(-a // 8), "max(3, 2*{})": lambda a: max(3, 2 * a)}
    whole = sum(values.get(each, lambda a: a - n)(a) for a in elements)
    text = f"sum({each.format('%arg2[*]')}) {relation} {whole + more}"
    kept = {"<=": whole <= whole + more, "==": more == 0, ">": whole > whole + more}[relation]
    program = checked(SCALARS, text)
    given = arguments(n, a=np.reshape(elements, (2, 3)))
    if kept:
        assert int(run(program, *given)[-1]) == 0
    else:
        assert f"contract '{text}' is broken by" in refused(program, *given)


def test_sums_of_few_and_beside_elements() -> None:
    """A sum of few elements, and one that every element is compared with."""
    few = SCALARS.replace("2x3xi32", "3xi32")
    program = checked(few, "sum(%arg2) == 4294967294")
    most = np.array([2**31 - 1, 2**31 - 1, 0], np.int32)
    assert int(run(program, np.int32(0), np.int8(0), most, most)[-1]) == 0
    # which is -2 where it wraps around
    assert "argument 2 ('%arg2')" in refused(program, np.int32(0), np.int8(0), -most, most)
    shares = checked(SCALARS, "2 * %arg2[*] <= sum(%arg3)")
    assert int(run(shares, *arguments(a=3, b=1))[-1]) == 0
    assert "argument 2 ('%arg2') or argument 3" in refused(shares, *arguments(a=[[3, 3, 3], [3, 4, 3]], b=1))


ATOMS = st.sampled_from(["%arg0", "%arg1", "3", "-2", "2147483647"])


def combined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Sums, differences, minima, products with and divisions by constants of both signs."""
    number = st.sampled_from(["-7", "-2", "3", "8"])
    return st.one_of(
        st.builds("({} + {})".format, parts, parts),
        st.builds("({} - {})".format, parts, parts),
        st.builds("max({}, {})".format, parts, parts),
        st.builds("{} * {}".format, number, parts),
        st.builds("floordiv({}, {})".format, parts, number),
        st.builds("ceildiv({}, {})".format, parts, number),
        st.builds("mod({}, {})".format, parts, number),
    )


SIDES = st.recursive(ATOMS, combined, max_leaves=4)
VALUES = list(itertools.product([-(2**31), -9, 0, 3, 2**31 - 1], [-128, 0, 7]))


@settings(max_examples=15, deadline=None)
@given(SIDES, st.sampled_from(["<=", "<", "==", "!="]), SIDES)
def test_contracts_mean_what_they_say(left: str, relation: str, right: str) -> None:
    """What the program computes of a contract is what it says in integers without bounds."""
    text = f"{left} {relation} {right}"
    ranges = {"%arg0": sym.type_range(32, True), "%arg1": sym.type_range(8, True)}
    condition = parse(text, ranges)
    unknowns = {leaf.name: leaf for leaf in sym.leaves_of(condition) if isinstance(leaf, sym.Param)}
    if not unknowns:
        return
    holds = {}
    for n, m in VALUES:
        given: dict[sym.Expr, int] = {
            unknowns[name]: value for name, value in (("%arg0", n), ("%arg1", m)) if name in unknowns
        }
        holds[n, m] = sym.value_of(condition, given)
    # of a contract that no arguments keep there is no program
    assume(any(holds.values()))
    program = checked(SCALARS, text)
    for (n, m), kept in holds.items():
        if kept:
            assert int(run(program, *arguments(n, m))[-1]) == 0
        else:
            assert text in refused(program, *arguments(n, m))


def test_a_contract_of_large_numbers() -> None:
    """A contract that 64 bits don't hold is an error that says why."""
    contract = "4294967296 * (4294967296 * %arg0) <= 4"
    with pytest.raises(UserError) as error:
        checked(SCALARS, "%arg0 <= 4", contract)
    assert error.value.message == f"contract '{contract}' can't be checked: it may take more than 64 bits"


def test_arrays_of_different_shapes() -> None:
    """A contract about all elements of two arrays takes a place that both have."""
    text = SCALARS.replace("%arg3: tensor<2x3xi32>", "%arg3: tensor<3x2xi32>")
    with pytest.raises(UserError, match="can't be checked: %arg2 and %arg3 differ in shape"):
        checked(text, "%arg2[*] <= %arg3[*]")


def test_checks_are_inserted_once() -> None:
    """A program that has them already is refused: its results would be counted twice."""
    text = checked(SCALARS, "%arg0 <= 4")
    with pytest.raises(UserError, match="@main checks contracts already"):
        checked(text, "%arg0 <= 4")


def test_without_contracts() -> None:
    """Nothing is promised, so nothing is checked."""
    with create_context(), ir.Location.unknown():
        assert checked(SCALARS) == ir.Operation.parse(SCALARS).get_asm(enable_debug_info=True)


@pytest.mark.libtpu
@pytest.mark.skipif(not libtpu_available(), reason="there is no libtpu")
def test_the_compiler_takes_it() -> None:
    """The program with checks, in integers of 64 bits and of all elements, compiles for TPUs as the one without."""
    text, _ = programs()["matmul"]
    program = checked(text, "0 <= %arg0 <= 4", "mod(%arg0 * 3, 2) == 0")
    for target in ("v5e", "v5p"):
        for source in (text, program):
            (report,) = compile_program(source.encode(), [parse_target(target)])
            assert not any(launch.failed for launch in report.launches)
