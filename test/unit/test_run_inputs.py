"""What a program is run on: its arguments by name, which of them are bounds, and what isn't given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jaxlib.mlir import ir
from run_programs import DYNAMIC, opened, program

from mosaic_grid.context import create_context, unknown_location
from mosaic_grid.errors import UserError
from mosaic_grid.runner.arguments import Argument, arguments_of
from mosaic_grid.runner.inputs import Given, choose

PLAIN = "return %i0, %i1 : i32, i32"
NAMED = """
func.func @main(%a: tensor<i32> loc("n"), %b: tensor<2xi64> loc("sizes"), %c: tensor<1xui8> loc("a=b"),
                %d: tensor<2x2xf32> loc("x['w']"), %e: tensor<i32> loc("arg0")) -> tensor<i32> {
  return %a : tensor<i32>
}
"""


@pytest.fixture
def context() -> Iterator[ir.Context]:
    """A current context."""
    with create_context() as made, unknown_location():
        yield made


def named(context: ir.Context) -> tuple[Argument, ...]:
    """Arguments with names."""
    return arguments_of(opened(NAMED, context))


def test_names_and_types(context: ir.Context) -> None:
    """Arguments have the names that their locations give them."""
    found = named(context)
    assert [(each.key, str(each.spec), each.is_count) for each in found] == [
        ("n", "i32[]", True),
        ("sizes", "i64[2]", False),
        ("a=b", "ui8[1]", True),
        ("x['w']", "f32[2,2]", False),
        ("arg0", "i32[]", True),
    ]
    assert [each.label for each in arguments_of(opened(program([1], "return %i0, %i0 : i32, i32"), context))] == [
        "argument 0"
    ]


@pytest.mark.parametrize(
    ("flag", "number", "value"),
    [
        ("n=5", 0, 5),
        ("sizes=7", 1, 7),
        ("1=7", 1, 7),
        ("arg1=7", 1, 7),
        ("a=b=3", 2, 3),
        ("x['w']=2", 3, 2),
        ("arg0=9", 4, 9),
        ("0=9", 0, 9),
    ],
)
def test_argument_that_a_flag_means(flag: str, number: int, value: int, context: ir.Context) -> None:
    """A name is taken before a number, also one with an equals sign in it."""
    chosen = choose(named(context), Given(inputs=(flag,)))
    assert (chosen.arrays[number] == value).all()
    untouched = choose(named(context), Given())
    others = [k for k in range(5) if k != number]
    assert all(chosen.arrays[k].tobytes() == untouched.arrays[k].tobytes() for k in others)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Given(inputs=("m=5",)), "--input: the program has no argument 'm'"),
        (Given(inputs=("size=5",)), "--input: the program has no argument 'size'; did you mean 'sizes'?"),
        (Given(inputs=("5=5",)), "--input: the program has no argument '5'"),
        (Given(inputs=("n",)), "--input takes NAME=VALUE, got 'n'"),
        (Given(inputs=("q=",)), "--input takes NAME=VALUE, got 'q='"),
        (Given(inputs=("n=5", "0=6")), "argument 0 (n) is given twice, by --input"),
        (Given(inputs=("n=5",), bounds=("n=6",)), "argument 0 (n) is given twice, by --input and by --bounds"),
        (Given(bounds=("n=x",)), "--bounds takes N,... or NAME=N,..., got 'n=x'"),
        (Given(bounds=("sizes=2",)), "--bounds: argument 1 (sizes) is i64[2], not one integer"),
        (Given(bounds=("m=2",)), "--bounds: the program has no argument 'm'"),
        (Given(bounds=("2",)), "--bounds gives more numbers than the program has bounds that are arguments: 0"),
        (Given(bounds=("n=2147483648",)),
         "argument 0 (n) is i32[]: it takes integers from -2147483648 to 2147483647, and got 2147483648"),
    ],
)  # fmt: skip
def test_bad_flags(given: Given, message: str, context: ir.Context) -> None:
    """Each is one message, with the arguments that there are."""
    with pytest.raises(UserError) as caught:
        choose(named(context), given)
    assert caught.value.message == message


def test_arguments_are_listed_for_a_wrong_name(context: ir.Context) -> None:
    """Of a wrong input all arguments are told, of a wrong bound those that are one integer."""
    with pytest.raises(
        UserError, match=r"its arguments are n i32\[\], sizes i64\[2\], a=b ui8\[1\], x\['w'\] f32\[2,2\]"
    ):
        choose(named(context), Given(inputs=("m=5",)))
    with pytest.raises(UserError, match="the arguments that are one integer: n, a=b, arg0"):
        choose(named(context), Given(bounds=("m=5",)))


def test_bound_has_to_be_given(context: ir.Context) -> None:
    """An integer that a bound depends on is never made up; by order, by name and as an input it can be given."""
    arguments = arguments_of(opened(program([DYNAMIC, 2, DYNAMIC], PLAIN), context))
    assert [each.bounds for each in arguments] == [("dimension 0 of 'k'",), ("dimension 2 of 'k'",), ()]
    with pytest.raises(UserError) as caught:
        choose(arguments, Given())
    assert str(caught.value).splitlines() == [
        "error: a bound of a grid is an argument, and it isn't given",
        "note: argument 0 is the bound of dimension 0 of 'k'",
        "note: argument 1 is the bound of dimension 2 of 'k'",
        "note: give --bounds arg0=N,arg1=N",
    ]
    for given in (
        Given(bounds=("3,4",)),
        Given(bounds=("3", "4")),
        Given(bounds=("arg1=4,3",)),
        Given(inputs=("0=3",), bounds=("1=4",)),
    ):
        assert [int(each) for each in choose(arguments, given).arrays[:2]] == [3, 4]
    with pytest.raises(UserError, match="more numbers than the program has bounds that are arguments: 2"):
        choose(arguments, Given(bounds=("1,2,3",)))


def test_archive_names_arguments(context: ir.Context, tmp_path: Path) -> None:
    """The arrays of an archive go to the arguments that they are named like, and have to fit them."""
    path = tmp_path / "a.npz"
    weights = np.arange(4, dtype=np.float32).reshape(2, 2)
    contents: Any = {"x['w']": weights, "arg1": np.array([1, 2])}
    np.savez(path, **contents)
    chosen = choose(named(context), Given(archives=(str(path),)))
    assert (chosen.arrays[3] == weights).all()
    assert list(chosen.arrays[1]) == [1, 2]
    np.savez(path, m=np.zeros(1))
    with pytest.raises(UserError, match=r"a\.npz: error: --inputs: the program has no argument 'm'"):
        choose(named(context), Given(archives=(str(path),)))
    np.savez(path, n=np.zeros(3))
    with pytest.raises(UserError, match=r"argument 0 \(n\) is i32\[\]; it got float64 of shape \[3\]"):
        choose(named(context), Given(archives=(str(path),)))
    np.save(tmp_path / "a.npy", np.zeros(3))
    with pytest.raises(UserError, match=r"a\.npy: error: this is one array; --inputs takes an archive"):
        choose(named(context), Given(archives=(str(tmp_path / "a.npy"),)))


def test_an_input_goes_before_an_archive(context: ir.Context, tmp_path: Path) -> None:
    """What is given by itself is taken, the rest is the archive's; a bound in both is a mistake that is told."""
    path = str(tmp_path / "a.npz")
    contents: Any = {"n": np.int32(3), "sizes": np.array([1, 2])}
    np.savez(path, **contents)
    chosen = choose(named(context), Given(inputs=("n=5",), archives=(path,)))
    assert int(chosen.arrays[0]) == 5
    assert list(chosen.arrays[1]) == [1, 2]
    with pytest.raises(UserError, match=r"argument 0 \(n\) is given twice, by --inputs and by --bounds"):
        choose(named(context), Given(bounds=("n=5",), archives=(path,)))
    with pytest.raises(UserError, match=r"argument 0 \(n\) is given twice, by --inputs"):
        choose(named(context), Given(archives=(path, path)))


BOUNDS = {
    "an element of an array": (
        "%0 = stablehlo.slice %s [1:2] : (tensor<4xi32>) -> tensor<1xi32>\n"
        "%b = stablehlo.reshape %0 : (tensor<1xi32>) -> tensor<i32>",
        [1],
    ),
    "a sum": ("%b = stablehlo.add %n, %m : tensor<i32>", [0, 2]),
    "a constant": ("%b = stablehlo.constant dense<2> : tensor<i32>", []),
    "a call": ("%b = call @later(%n, %m) : (tensor<i32>, tensor<i32>) -> tensor<i32>", [2]),
    "a branch": (
        '%b = "stablehlo.if"(%p) ({\n "stablehlo.return"(%n) : (tensor<i32>) -> () \n}, {\n'
        '%1 = stablehlo.add %m, %m : tensor<i32>\n "stablehlo.return"(%1) : (tensor<i32>) -> () \n})'
        " : (tensor<i1>) -> tensor<i32>",
        [0, 2],
    ),
    "a variable that a loop leaves alone": (
        "%0:2 = stablehlo.while(%v = %n, %w = %m) : tensor<i32>, tensor<i32>\n"
        "cond {\n %1 = stablehlo.compare LT, %w, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        " stablehlo.return %1 : tensor<i1>\n} do {\n"
        " %1 = stablehlo.add %w, %w : tensor<i32>\n stablehlo.return %v, %1 : tensor<i32>, tensor<i32>\n}\n"
        "%b = stablehlo.add %0#0, %0#0 : tensor<i32>",
        [0],
    ),
    "a variable of a loop": (
        "%0:2 = stablehlo.while(%v = %n, %w = %n) : tensor<i32>, tensor<i32>\n"
        "cond {\n %1 = stablehlo.compare LT, %w, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        " stablehlo.return %1 : tensor<i1>\n} do {\n"
        " %1 = stablehlo.add %v, %v : tensor<i32>\n stablehlo.return %1, %w : tensor<i32>, tensor<i32>\n}\n"
        "%b = stablehlo.add %0#0, %0#0 : tensor<i32>",
        [0, 2],
    ),
    "a reduction": (
        "%0 = stablehlo.constant dense<0> : tensor<i32>\n"
        "%b = stablehlo.reduce(%s init: %0) applies stablehlo.add across dimensions = [0]"
        " : (tensor<4xi32>, tensor<i32>) -> tensor<i32>",
        [1],
    ),
}


@pytest.mark.parametrize("how", BOUNDS)
def test_what_a_bound_depends_on(how: str, context: ir.Context) -> None:
    """The arguments that a bound is computed from are found through calls, branches and loops, and no others."""
    lines, expected = BOUNDS[how]
    text = program([DYNAMIC, 2], PLAIN).replace("@main", "private @launch")
    text += f"""
func.func private @later(%a: tensor<i32>, %b: tensor<i32>) -> tensor<i32> {{
  return %b : tensor<i32>
}}
func.func @main(%n: tensor<i32>, %s: tensor<4xi32>, %m: tensor<i32>, %p: tensor<i1>, %x: tensor<32x256xf32>)
    -> tensor<32x256xf32> {{
  {lines}
  %r = call @launch(%b, %x) : (tensor<i32>, tensor<32x256xf32>) -> tensor<32x256xf32>
  return %r : tensor<32x256xf32>
}}
"""
    found = [each.number for each in arguments_of(opened(text, context)) if each.bounds]
    assert [number for number in found if number != 3] == expected


def test_random_array_that_a_bound_depends_on_is_told(context: ir.Context) -> None:
    """An array can be made up, but not in silence."""
    lines, _ = BOUNDS["an element of an array"]
    text = program([DYNAMIC, 2], PLAIN).replace("@main(%n0: tensor<i32>,", "@main(%s: tensor<4xi32>,")
    text = text.replace("%r = stablehlo", f"{lines}\n  %r = stablehlo").replace("(%n0, %x)", "(%b, %x)")
    chosen = choose(arguments_of(opened(text, context)), Given())
    assert chosen.notes == ("argument 0 is random, and the bound of dimension 0 of 'k' may depend on it",)
    assert choose(arguments_of(opened(text, context)), Given(inputs=("0=2",))).notes == ()
    with pytest.raises(UserError) as caught:
        choose(arguments_of(opened(text, context)), Given(bounds=("5",)))
    hint = "the bound of dimension 0 of 'k' comes from argument 0, i32[4]: give --input arg0=..."
    assert caught.value.notes[-1] == hint
