"""`mosaic_grid.run` from Python: what it takes, what it remembers, and what it is inside of JAX's transformations."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxlib.mlir import ir
from pallas_programs import COLUMNS, PROGRAMS, ROWS, one, text_of
from run_programs import DOUBLE

import mosaic_grid
from mosaic_grid.context import create_context, unknown_location
from mosaic_grid.errors import UserError
from mosaic_grid.runner import api

X = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
SHAPES: Any = (jax.ShapeDtypeStruct((), jnp.int32), jax.ShapeDtypeStruct(X.shape, jnp.float32))


def lowered(function: Any, *arguments: Any) -> Any:
    """A function of a bound and a matrix, lowered for TPU."""
    return jax.jit(function).trace(*(arguments or SHAPES)).lower(lowering_platforms=("tpu",))


@pytest.fixture(scope="module")
def doubling() -> Any:
    """A program that doubles a matrix."""
    return lowered(one)


@pytest.fixture
def forgotten() -> Iterator[None]:
    """No program is remembered from other tests."""
    api._remembered.clear()
    yield
    api._remembered.clear()


def test_every_form_of_a_program(doubling: Any, tmp_path: Path) -> None:
    """What JAX lowered or exported, text, bytes, a file by either kind of path, and a module are the same program."""
    text = doubling.as_text()
    path = tmp_path / "program.mlir"
    path.write_text(text)
    exported = jax.export.export(jax.jit(one), platforms=["tpu"])(*SHAPES)
    module = doubling.compiler_ir()
    forms = [doubling, exported, text, text.encode(), str(path), path, module, module.operation,
             bytes(exported.mlir_module_serialized)]  # fmt: skip
    for form in forms:
        (result,) = mosaic_grid.run(form, 4, X)
        assert isinstance(result, np.ndarray)
        np.testing.assert_array_equal(result, 2 * X)


def test_unpacked_program() -> None:
    """A file of an unpacked program runs too, and a dynamic bound counts."""
    x = np.ones((1024, 256), np.float32)
    (result,) = mosaic_grid.run(DOUBLE, 3, x, uninitialized="zero")
    np.testing.assert_array_equal(result[:24], 2 * x[:24])
    assert not result[24:].any()
    (result,) = mosaic_grid.run(DOUBLE, 0, x)
    assert np.isnan(result).all()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_programs_of_pallas_run(program: Any) -> None:
    """Launches in loops, branches and calls, with aliases and tables, give finite numbers of the right shape."""
    (result,) = mosaic_grid.run(text_of(program), 4, X)
    assert result.shape == X.shape
    assert np.isfinite(result).all()


def test_passes_run_first(doubling: Any) -> None:
    """A pipeline changes the program before it runs, for the target; its result here is the same."""
    (result,) = mosaic_grid.run(doubling, 4, X, passes="partition-cores", target="v5p")
    np.testing.assert_array_equal(result, 2 * X)
    with pytest.raises(UserError, match="unknown target 'v5x'"):
        mosaic_grid.run(doubling, 4, X, passes="partition-cores", target="v5x")


def test_trees_and_unused_arguments() -> None:
    """A lowered function takes its own arguments: trees, and those that it doesn't use and its program doesn't have."""

    def function(unused: Any, pair: Any) -> Any:
        return {"a": one(*pair["p"]), "b": pair["p"][0] + 1}

    program = lowered(function, SHAPES[1], {"p": SHAPES, "q": SHAPES[0]})
    first, second = mosaic_grid.run(program, X, {"p": (4, X), "q": 7})
    np.testing.assert_array_equal(first, 2 * X)
    assert second == 5
    exported = jax.export.export(jax.jit(function), platforms=["tpu"])(SHAPES[1], {"p": SHAPES, "q": SHAPES[0]})
    first, second = mosaic_grid.run(exported, X, {"p": (4, X), "q": 7})
    np.testing.assert_array_equal(first, 2 * X)


def test_trees_of_another_structure() -> None:
    """Leaves are never matched up by chance: another structure is an error, also where the count is right."""
    program = lowered(lambda pair: one(*pair), SHAPES)
    for args in ((4, X), ([4, X],), ((4, X), 1), ((4,),), ({"n": 4, "x": X},)):
        with pytest.raises(UserError, match="don't have the structure of those that the function was lowered for"):
            mosaic_grid.run(program, *args)


def test_arguments_are_converted_where_nothing_is_lost(doubling: Any) -> None:
    """Python's numbers and other types are taken if the argument's type holds them, and else refused."""
    (expected,) = mosaic_grid.run(doubling, 4, X)
    for n, x in ((np.int64(4), X), (4, X.astype(np.float64)), (jnp.int32(4), jnp.asarray(X)), (4, X.tolist())):
        np.testing.assert_array_equal(mosaic_grid.run(doubling, n, x)[0], expected)
    np.testing.assert_array_equal(mosaic_grid.run(doubling, 4, 1.5)[0], np.full_like(X, 3))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((4,), "the program takes 2 arguments; it got 1"),
        ((4, X, X), "the program takes 2 arguments; it got 3"),
        ((4, X[:3]), r"argument 1 \(x\) is f32\[32,256\]; it got float32 of shape \[3, 256\]"),
        ((4.5, X), r"argument 0 \(n\) is i32\[\]: it takes integers from -2147483648 to 2147483647, and got 4.5"),
        ((4, X + np.float64(0.1)), "not all of its numbers are the same in that type"),
    ],
)
def test_arguments_that_do_not_fit(args: tuple[Any, ...], message: str, doubling: Any) -> None:
    """Each is an error that says which argument, and what it is."""
    with pytest.raises(UserError, match=message):
        mosaic_grid.run(text_of(one), *args)


def test_what_is_no_program(tmp_path: Path) -> None:
    """Other things, missing files and text that is no program are errors."""
    with pytest.raises(UserError, match=r"a int can't be run\nnote: give what jax\.jit"):
        mosaic_grid.run(3)
    with pytest.raises(UserError, match="missing: error: can't read the program: no such file or directory"):
        mosaic_grid.run(tmp_path / "missing")
    with pytest.raises(UserError, match="<text>:1:1: error: this is text, but neither MLIR nor HLO"):
        mosaic_grid.run("foo\n")
    with pytest.raises(AttributeError, match="module 'mosaic_grid' has no attribute 'walk'"):
        mosaic_grid.walk  # noqa: B018 (it is the access that fails)


@pytest.mark.usefixtures("forgotten")
def test_programs_are_remembered_by_content(monkeypatch: pytest.MonkeyPatch, doubling: Any) -> None:
    """The same program, whatever it comes as, is prepared once for each set of options; the oldest is forgotten."""
    prepared: list[object] = []
    prepare = api._prepare

    def counted(key: Any, source: Any) -> api.Prepared:
        prepared.append(key)
        return prepare(key, source)

    monkeypatch.setattr(api, "_prepare", counted)
    for _ in range(2):
        mosaic_grid.run(doubling, 4, X)
    text = doubling.as_text()
    for form in (text, text.encode()):
        mosaic_grid.run(form, 4, X)
    prepared.pop()
    assert len(prepared) == 1
    mosaic_grid.run(doubling, 4, X, uninitialized="zero")
    assert len(prepared) == 2
    monkeypatch.setattr(api, "_KEPT", 1)
    mosaic_grid.run(doubling, 4, X)
    mosaic_grid.run(doubling, 4, X, uninitialized="zero")
    assert len(prepared) == 3
    assert len(api._remembered) == 1


@pytest.mark.usefixtures("forgotten")
def test_threads(doubling: Any) -> None:
    """Several threads may run one program at once."""
    found: list[Any] = []

    def work() -> None:
        found.append(mosaic_grid.run(doubling, 4, X)[0])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all((each == 2 * X).all() for each in found)


def test_inside_of_jit(doubling: Any) -> None:
    """Under `jax.jit` the program is a part of the function, several times over and among other operations."""

    @jax.jit
    def function(n: Any, x: Any) -> Any:
        (once,) = mosaic_grid.run(doubling, n, x + 1)
        (twice,) = mosaic_grid.run(doubling, n, once)
        return twice - 1

    np.testing.assert_array_equal(function(np.int32(4), X), 4 * (X + 1) - 1)
    # a number that isn't traced is a part of the function too
    fixed = jax.jit(lambda x: mosaic_grid.run(doubling, 4, x)[0])
    np.testing.assert_array_equal(fixed(X), 2 * X)
    assert len(str(jax.make_jaxpr(fixed)(X))) < len(doubling.as_text()) / 2


def test_our_options_inside_of_jit(doubling: Any) -> None:
    """JAX takes the options that we compile with."""
    options = dict(mosaic_grid.COMPILER_OPTIONS)
    run = jax.jit(lambda x: mosaic_grid.run(doubling, 4, x)[0], compiler_options=options)
    np.testing.assert_array_equal(run(X), 2 * X)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_the_same_inside_of_jit(program: Any) -> None:
    """Whole programs with functions of their own come out the same under `jax.jit`."""
    text = text_of(program)
    inside = jax.jit(lambda n, x: mosaic_grid.run(text, n, x))(np.int32(4), X)
    np.testing.assert_array_equal(inside[0], mosaic_grid.run(text, 4, X)[0])


def test_under_vmap(doubling: Any) -> None:
    """A batch is run one element after the other, over any argument."""
    batch = np.stack([X, X + 1])
    run: Any = jax.vmap(lambda n, x: mosaic_grid.run(doubling, n, x)[0], in_axes=(None, 0))
    np.testing.assert_array_equal(run(np.int32(4), batch), 2 * batch)
    run = jax.vmap(lambda n, x: mosaic_grid.run(doubling, n, x, uninitialized="zero")[0], in_axes=(0, None))
    found = np.asarray(run(np.array([4, 1], np.int32), X))
    np.testing.assert_array_equal(found[0], 2 * X)
    np.testing.assert_array_equal(found[1, :8], 2 * X[:8])
    assert not found[1, 8:].any()


def test_derivatives_are_refused(doubling: Any) -> None:
    """A derivative is an error that says what to do; where nothing depends on the program's inputs there is none."""

    def function(x: Any) -> Any:
        return mosaic_grid.run(doubling, 4, x)[0].sum()

    with pytest.raises(UserError, match=r"can't be differentiated: .*\nnote: lower the gradient"):
        jax.grad(function)(X)
    with pytest.raises(UserError, match="can't be differentiated"):
        jax.jit(jax.grad(function))(X)
    np.testing.assert_array_equal(jax.grad(lambda y: (function(jnp.asarray(X)) * y).sum())(2.0), (2 * X).sum())


def test_traced_arguments_that_do_not_fit(doubling: Any) -> None:
    """Traced arrays aren't converted: another type or shape is an error."""
    function = jax.jit(lambda n, x: mosaic_grid.run(doubling, n, x)[0])
    with pytest.raises(UserError, match=r"argument 1 \(x\) is f32\[32,256\]; it got float32 of shape \[3, 256\]"):
        function(np.int32(4), X[:3])
    with pytest.raises(UserError, match=r"argument 0 \(n\) is i32\[\]; it got float32"):
        function(np.float32(4), X)
    with pytest.raises(UserError, match="the program takes 2 arguments; it got 1"):
        jax.jit(lambda x: mosaic_grid.run(text_of(one), x))(X)


def test_other_platforms_are_refused(doubling: Any) -> None:
    """What was lowered for the CPU isn't silently taken for a TPU's."""
    with pytest.raises(UserError, match="works on the CPU, and this function is compiled for another platform"):
        lowered(lambda n, x: mosaic_grid.run(doubling, n, x))


def test_a_jax_that_has_changed(doubling: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where JAX's own functions have moved, that is what is said."""
    monkeypatch.delattr("jax.interpreters.mlir.merge_mlir_modules")
    with pytest.raises(UserError, match=r"can't be run under jax\.jit: JAX .* is too new or too old"):
        jax.jit(lambda x: mosaic_grid.run(doubling, 4, x))(X)


def test_shardings_of_one_device() -> None:
    """A program that says how it is sharded, on one device, is a part of a function without that."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("d",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))

    def function(n: Any, x: Any) -> Any:
        return one(n, jax.lax.with_sharding_constraint(x, sharding))

    text = jax.jit(function).trace(*SHAPES).lower(lowering_platforms=("tpu",)).as_text()
    assert "sdy.mesh" in text
    assert "sdy.sharding_constraint" in text
    np.testing.assert_array_equal(jax.jit(lambda x: mosaic_grid.run(text, 4, x)[0])(X), 2 * X)
    np.testing.assert_array_equal(mosaic_grid.run(text, 4, X)[0], 2 * X)


def test_jax_is_not_needed() -> None:
    """A program from a file runs without JAX being imported."""
    code = f"""
import sys, mosaic_grid, numpy
(result,) = mosaic_grid.run({str(DOUBLE)!r}, 128, numpy.ones((1024, 256), numpy.float32))
assert (result == 2).all()
print("jax" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("False\n", "", 0)


def test_module_of_another_context() -> None:
    """A module that the caller goes on using is left as it is."""
    with create_context(), unknown_location():
        module = ir.Module.parse("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }")
        before = str(module)
        (result,) = mosaic_grid.run(module, np.array([1, 2], np.float32))
        assert list(result) == [1, 2]
        assert str(module) == before
