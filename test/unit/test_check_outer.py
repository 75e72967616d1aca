"""Records of what kernels do wrong, on their way out of loops, branches and calls of the program around them."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from checked_kernels import F32, Said, call, findings, lowered, rows, run_checked, said
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import mosaic_grid
from mosaic_grid.errors import UserError

X = rows(16)
WAIT = (pltpu.SemaphoreType.REGULAR(()),)
STEPS = (lambda i: (i, 0), lambda i: (i, 0))


def kernel(x_ref: Any, o_ref: Any, sem: Any) -> None:
    """Doubles a block; waits in vain where its first number is negative."""

    @pl.when(x_ref[...][0, 0] < 0)
    def _() -> None:
        pl.semaphore_wait(sem, 1)

    o_ref[...] = 2 * x_ref[...]


def launch(x: Any) -> Any:
    """The kernel on two blocks."""
    return call(kernel, (16, 128), (2,), maps=STEPS, scratch=WAIT)(x)


def stuck(function: Any, *arrays: Any) -> str:
    """What is said of the only wait in vain, in a checked run and in any other."""
    (found,) = [each for each in findings(function, *arrays) if each.name == "stuck-wait"]
    with pytest.raises(UserError) as caught:
        mosaic_grid.run(lowered(function, *arrays), *arrays)
    assert caught.value.message == found.message
    return found.message


def rounds(n: Any, x: Any) -> Any:
    """Launches in a loop, on an array whose second block is negative from the third round on."""
    start = jnp.where(jnp.arange(16)[:, None] < 8, x, 0)

    def body(carried: Any) -> Any:
        k, a = carried
        a = launch(a) * 0 + start
        return k + 1, jnp.where((jnp.arange(16)[:, None] >= 8) & (k >= 1), -1.0, a)

    return jax.lax.while_loop(lambda carried: carried[0] < n, body, (0, start))[1]


def test_a_loop_adds_up_its_rounds() -> None:
    """Counts of all rounds are added, and the first time is that of the first round with a fault."""
    (result,) = mosaic_grid.run(lowered(rounds, np.int32(2), X), 2, X)
    assert result[8, 0] == -1
    assert stuck(rounds, np.int32(5), X).endswith(", first at grid point (1), 3 times in all")
    assert findings(rounds, np.int32(0), X) == []


def test_launches_that_leave_different_parts() -> None:
    """What is said of them all holds of the first: how many there are of its kind isn't known."""

    def copy(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...]

    def launches(bounds: Any, x: Any) -> Any:
        return jax.lax.map(lambda n: call(copy, (16, 128), (n,), maps=STEPS)(x), bounds)

    (found,) = findings(launches, np.array([2, 1, 0], np.int32), X)
    where = "1024 of 2048 elements of 'o_ref' unwritten, the first at [8, 0]"
    assert found.message == f"'kernel' leaves {where}, in the first of 2 launches that leave any"


def chosen(which: Any, x: Any) -> Any:
    """Another launch in each branch, and none in the last."""
    other = call(kernel, (16, 128), (1,), maps=STEPS, scratch=WAIT)
    return jax.lax.switch(which, [launch, lambda x: other(x)[:16], lambda x: x], x)


@pytest.mark.parametrize(("which", "times"), [(0, 2), (1, 1)])
def test_the_branch_that_is_taken(which: int, times: int) -> None:
    """Only what the branch launches is said, and nothing where it launches nothing."""
    said_ = stuck(chosen, np.int32(which), -X - 1)
    assert said_.endswith("first at grid point (0), 2 times in all" if times == 2 else ", at grid point (0)")
    assert findings(chosen, np.int32(2), -X - 1) == []


def test_a_function_that_is_called_twice() -> None:
    """The records of both calls are one."""

    @jax.jit
    def inner(x: Any) -> Any:
        return jax.lax.cond(x[0, 0] < 0, launch, lambda x: x, x)

    def outer(x: Any) -> Any:
        return inner(x) + inner(jnp.abs(x)) + inner(3 * x)

    assert stuck(outer, -X - 1).endswith("first at grid point (0), 4 times in all")


def test_several_kernels() -> None:
    """Each launch has a record of its own, and results stay what they are without any."""

    def first(x_ref: Any, o_ref: Any, acc: Any) -> None:
        o_ref[...] = x_ref[...] + acc[...]

    def outer(x: Any) -> Any:
        a = call(first, (16, 128), (2,), maps=STEPS, scratch=(pltpu.VMEM((8, 128), F32),))(x)
        return {"a": a, "b": launch(x), "c": 3 * x}

    checked = run_checked(lowered(outer, X), X)
    assert [said(each).name for each in checked.diagnostics] == ["unwritten-read"]
    assert len(checked.results) == 3
    np.testing.assert_array_equal(checked.results[1], 2 * X)
    np.testing.assert_array_equal(checked.results[2], 3 * X)


def test_a_program_without_launches() -> None:
    """There is nothing to check, and the program runs."""
    checked = run_checked(lowered(lambda x: x + 1, X), X)
    assert checked.diagnostics == []
    np.testing.assert_array_equal(checked.results[0], X + 1)


REDUCED = """
func.func @main(%x: tensor<8x128xf32>) -> tensor<8x128xf32> {
  %0 = stablehlo.composite "a.b" %x {decomposition = @inner} : (tensor<8x128xf32>) -> tensor<8x128xf32>
  return %0 : tensor<8x128xf32>
}
func.func private @inner(%x: tensor<8x128xf32>) -> tensor<8x128xf32> {
  %0 = stablehlo.custom_call @tpu_custom_call(%x) {backend_config = "{}", mosaic.kernel = @k}
      : (tensor<8x128xf32>) -> tensor<8x128xf32> loc("model.py":7:3)
  return %0 : tensor<8x128xf32>
}
module @k attributes {stable_mosaic.version = 15 : i64} {
  func.func @k(%x: memref<8x128xf32, #tpu.memory_space<vmem>>, %o: memref<8x128xf32, #tpu.memory_space<vmem>>)
      attributes {dimension_semantics = [], iteration_bounds = array<i64>, scalar_prefetch = 0 : i64,
                  scratch_operands = 0 : i64, tpu.core_type = #tpu.core_type<tc>} {
    return
  }
}
"""


def test_a_launch_that_cannot_be_checked() -> None:
    """A launch that no record can be handed on from is run all the same, and told of."""
    checked = run_checked(REDUCED, X[:8])
    assert checked.results[0].shape == (8, 128)
    (found,) = checked.diagnostics
    assert (found.name, found.severity.value, str(found.place)) == ("not-checked", "warning", "model.py:7:3")


def test_checking_from_python() -> None:
    """Errors are raised, warnings are Python's, and a traced function can't be checked."""

    def partly(x: Any) -> Any:
        return call(kernel, (24, 128), (2,), maps=STEPS, scratch=WAIT)(x)

    with pytest.raises(UserError, match="waits for semaphore 'sem' in vain"):
        mosaic_grid.run(lowered(launch, X), -X - 1, check=True)
    with pytest.warns(UserWarning, match="leaves 1024 of 3072 elements of 'o_ref' unwritten"):
        mosaic_grid.run(lowered(partly, X), X, check=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (result,) = mosaic_grid.run(lowered(launch, X), X, check=True)
    np.testing.assert_array_equal(result, 2 * X)
    with pytest.raises(UserError, match="can't be checked in a function that JAX traces"):
        jax.jit(lambda x: mosaic_grid.run(lowered(launch, X), x, check=True))(X)


def test_errors_come_first() -> None:
    """An error is told before a remark, whatever comes first in the program."""

    def both(x_ref: Any, o_ref: Any, used: Any, masked: Any) -> None:
        o_ref[...] = jnp.where(x_ref[...] < 0, masked[...], 0) + used[...]

    scratch = (pltpu.VMEM((8, 128), F32), pltpu.VMEM((8, 128), F32))
    found: list[Said] = findings(call(both, (16, 128), (2,), maps=STEPS, scratch=scratch), X)
    assert [each.severity for each in found] == ["error", "remark"]
