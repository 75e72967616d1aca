"""A kernel, the arguments it is run on, and the public function that says what it must return."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

Function = Callable[..., Any]
Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

F32, BF16, I32 = np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16), np.dtype(np.int32)


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """How far a result may be from the reference: `absolute + relative * |reference|`."""

    absolute: float
    relative: float


EXACT = Tolerance(0.0, 0.0)
"""Equal bit for bit."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A kernel under test.

    `kernel` and `reference` take the same arguments and return an array or a tuple of arrays, with what the kernel
    leaves undefined cut off. `tolerances` are those of the results in order; the last is that of all that follow.
    `device` is the kind and the number of cores of the TPU that a kernel asks for while it is traced. One that
    `needs_cores` is only right on a chip that has a core for each index of its outermost dimension. `ulps` is how far
    results may be from those of JAX's interpreter, in units in the last place; `None` where that doesn't run it.
    """

    kernel: Function
    reference: Function
    arguments: Callable[[np.random.Generator], Sequence[Array]]
    tolerances: tuple[Tolerance, ...]
    device: tuple[str, int] | None = None
    needs_cores: bool = False
    ulps: int | None = 0
    is_slow: bool = False

    def tolerance(self, result: int) -> Tolerance:
        """What is allowed to the result of this number."""
        return self.tolerances[min(result, len(self.tolerances) - 1)]


def normal(rng: np.random.Generator, *shapes: tuple[int, ...], dtype: np.dtype[Any] = F32) -> list[Array]:
    """An array of normally distributed numbers for each shape."""
    return [rng.standard_normal(shape, np.float32).astype(dtype) for shape in shapes]


def uniform(
    rng: np.random.Generator, *shapes: tuple[int, ...], dtype: np.dtype[Any] = F32, low: float = 0
) -> list[Array]:
    """An array of numbers between `low` and 1 for each shape, rounded to bf16, as JAX's own tests take them."""
    return [rng.uniform(low, 1, shape).astype(BF16).astype(dtype) for shape in shapes]


def pull_back(function: Function, count: int) -> Function:
    """A function of a cotangent and the arguments of `function`: the result, and the gradients of the first `count`."""

    def pulled(cotangent: Any, *arguments: Any) -> tuple[Any, ...]:
        primals, rest = arguments[:count], arguments[count:]
        result, backward = jax.vjp(lambda *variables: function(*variables, *rest), *primals)
        return (result, *backward(cotangent.astype(result.dtype)))

    return pulled


def in_f32(function: Function) -> Function:
    """The same of floats converted to f32, so that a reference rounds nothing that a kernel doesn't."""

    def convert(value: Any) -> Any:
        return value.astype(F32) if jnp.issubdtype(value.dtype, jnp.floating) else value

    return lambda *arguments: function(*map(convert, arguments))
