"""`infer-parallel` on kernels that JAX ships: as they are, and with what their authors said of dimensions taken out."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cpu_programs import assert_same, compiled
from jax.experimental.pallas.ops.tpu.random import philox, threefry
from jaxlib.mlir import ir
from test_legality_real import lowered

from mosaic_grid.context import create_context
from mosaic_grid.cpu.options import Options
from mosaic_grid.grid import Dimension, Semantics
from mosaic_grid.kernel_edit import set_grid
from mosaic_grid.passes.infer_parallel import InferParallel
from mosaic_grid.program import Program
from mosaic_grid.session import Session
from mosaic_grid.unpack import unpack

BITS = {
    "threefry": functools.partial(
        threefry.threefry_2x32_count, shape=(16, 256), unpadded_shape=(16, 256), block_size=(8, 128)
    ),
    "philox": functools.partial(
        philox.philox_4x32_kernel, shape=(16, 256), unpadded_shape=(16, 256), block_size=(8, 128)
    ),
}


def give_words(program: ir.Operation, words: Semantics, axes: list[int] | None = None) -> None:
    """Calls dimensions of the program's first kernel so: all of them, or some."""
    kernel = next(iter(Program(program).kernels.values()))
    grid = [Dimension(d.bound, words) if axes is None or k in axes else d for k, d in enumerate(kernel.grid)]
    set_grid(kernel.body, grid)


def words_after(program: ir.Operation) -> str:
    """The first letters of the words on the dimensions of the first kernel, after the pass."""
    InferParallel().run(program, Session())
    assert program.verify()
    return "".join(d.semantics.value[0] for d in next(iter(Program(program).kernels.values())).grid)


@pytest.mark.parametrize("name", BITS)
def test_bit_generators(name: str) -> None:
    """JAX's own bit generators don't say that their steps are independent; they are, and run in any order."""
    function: Callable[..., Any] = BITS[name]
    key = jax.eval_shape(lambda: jnp.zeros(2, jnp.uint32))
    text = jax.jit(function).trace(key).lower(lowering_platforms=("tpu",)).as_text()
    with create_context(), ir.Location.unknown():
        program = ir.Operation.parse(text).operation
        unpack(program)
        plain = compiled(program)
        assert words_after(program) == "pp"
        give_words(program, Semantics.CORE_PARALLEL)
        turns = compiled(program, Options(interleave=7))
        numbers = np.asarray([17, 4], np.uint32)
        assert_same(turns(numbers), plain(numbers), name)


@pytest.mark.parametrize(
    ("name", "words"), [("flash", "pppa"), ("matmul", "ppa"), ("gmm", "paa"), ("tgmm", "ppa"), ("splash", "ppa")]
)
def test_words_of_the_authors_are_found(name: str, words: str) -> None:
    """What authors said is proved where it is lost, and some that they didn't say: tiles that no step shares."""
    with create_context(), ir.Location.unknown():
        program = ir.Module.parse(lowered(name)).operation
        unpack(program)
        said = next(iter(Program(program).kernels.values())).grid
        give_words(program, Semantics.ARBITRARY)
        found = words_after(program)
    assert found == words
    assert all(letter == "p" for letter, dimension in zip(found, said, strict=True) if dimension.is_parallel)
