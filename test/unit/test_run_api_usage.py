"""`mosaic_grid.run` used wrongly: options, arguments and trees that don't fit, and what the errors say of them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pallas_programs import COLUMNS, ROWS, one
from run_programs import DOUBLE

import mosaic_grid
from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.errors import Place, UserError
from mosaic_grid.runner.recorded import KernelError

X = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
SHAPES: Any = (jax.ShapeDtypeStruct((), jnp.int32), jax.ShapeDtypeStruct(X.shape, jnp.float32))


@pytest.fixture(scope="module")
def doubling() -> Any:
    """A program that doubles a matrix."""
    return jax.jit(one).trace(*SHAPES).lower(lowering_platforms=("tpu",))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dma": "never"}, "dma: expects 'early' or 'late', got 'never'"),
        ({"uninitialized": "bogus"}, "uninitialized: expects 'nan' or 'zero', got 'bogus'"),
        ({"precision": "f64"}, "precision: expects 'f32' or 'bf16', got 'f64'"),
        ({"cores_interleaved": "x"}, "cores_interleaved: expects None or an integer >= 0, got 'x'"),
        ({"cores_interleaved": -1}, "cores_interleaved: expects None or an integer >= 0, got -1"),
        ({"check": "yes"}, "check: expects True or False, got 'yes'"),
        ({"passes": None}, "passes: expects text as in mosaic-opt -p, got None"),
        ({"passes": ["partition-cores"]}, "passes: expects text as in mosaic-opt -p, got ['partition-cores']"),
        ({"target": "v9"}, "unknown target 'v9'"),
        ({"target": 5}, "target: expects None or the name of a chip, 'v5p', got 5"),
    ],
)
def test_options_that_there_are_not(options: Any, message: str) -> None:
    """A wrong value of an option is an error, and not silently another one."""
    with pytest.raises(UserError) as caught:
        mosaic_grid.run(DOUBLE, 4, 1.0, **options)
    assert caught.value.message.startswith(message)


def test_public_names() -> None:
    """What a user needs is in the package's own namespace, and found there."""
    assert {"run", "UserError", "KernelError"} <= set(dir(mosaic_grid))
    assert mosaic_grid.UserError is UserError
    assert issubclass(mosaic_grid.KernelError, UserError)


def test_keys_of_random_numbers() -> None:
    """A key isn't an array: it is refused with what to give instead, which works."""
    function = jax.jit(lambda key, x: jax.random.key_data(key)[0] + x)
    program = function.trace(jax.random.key(7), jnp.uint32(0)).lower(lowering_platforms=("tpu",))
    with pytest.raises(UserError, match=r"it got key<fry>, which are no numbers\nnote: .* jax\.random\.key_data"):
        mosaic_grid.run(program, jax.random.key(7), 1)
    data = jax.random.key_data(jax.random.key(7))
    assert mosaic_grid.run(program, data, 1)[0] == int(data[0]) + 1


def test_arguments_by_keyword_are_told() -> None:
    """What was lowered with arguments by keyword can't be run as such; its text takes the arrays in order."""
    program = jax.jit(lambda n, *, x: one(n, x)).trace(SHAPES[0], x=SHAPES[1]).lower(lowering_platforms=("tpu",))
    with pytest.raises(UserError, match=r"lowered with arguments by keyword.*\nnote: .*lowered\.as_text\(\)"):
        mosaic_grid.run(program, 4, X)
    np.testing.assert_array_equal(mosaic_grid.run(program.as_text(), 4, X)[0], 2 * X)


def test_notes_for_wrong_structures_have_no_values(doubling: Any) -> None:
    """They say how many arguments there are, and what trees: never what is in the arrays."""
    with pytest.raises(UserError) as caught:
        mosaic_grid.run(doubling, [4], X, X)
    assert caught.value.notes == (
        "it takes 2 arguments, and got 3",
        "it was lowered for (*, *), where * is an array",
        "it got ([*], *, *)",
    )


def test_wrong_values_are_not_told_of_flags(doubling: Any) -> None:
    """What can be given is said in Python's words and not in those of the command line."""
    with pytest.raises(
        UserError, match=r"not numbers\nnote: an argument is an array, a number or nested lists"
    ) as caught:
        mosaic_grid.run(doubling, 4, "x.npy")
    assert ".npz" not in str(caught.value)


def test_a_kernel_error_has_a_line_for_each_thing() -> None:
    """All errors are told as the command line tells them, each with its notes."""
    error = KernelError(
        [
            Diagnostic(Severity.ERROR, "first", Place("k.py", 1), "stuck-wait", (note("why", Place("k.py", 2)),)),
            Diagnostic(Severity.ERROR, "second", Place("k.py", 3), "core-race"),
        ]
    )
    assert str(error).splitlines() == [
        "k.py:1: error: first [stuck-wait]",
        "k.py:2: note: why",
        "k.py:3: error: second [core-race]",
    ]
    assert error.notes == ("why",)


def test_checks_are_refused_in_traced_functions(doubling: Any) -> None:
    """The message says where the check can be made."""
    with pytest.raises(
        UserError, match=r"can't be checked in a function that JAX traces\nnote: run it with check=True"
    ):
        jax.jit(lambda x: mosaic_grid.run(doubling, 4, x, check=True))(X)
