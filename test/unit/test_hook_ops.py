"""The kernels that ship with JAX, forward and backward, under each value of the flag: the same bits on the CPU."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hooked import hooked, quietly

import references

QUICK = ("matmul_bf16", "flash_gradient", "splash_causal", "gmm_bf16", "paged_few_queries")
NAMES = [name for name, case in references.CASES.items() if not case.needs_cores]


def bits(name: str, mode: str) -> list[bytes]:
    """The results of a case, run by JAX with the hook."""
    kernel = references.CASES[name].kernel
    with hooked(mode, "v5p"):
        results = quietly(jax.jit(lambda *arguments: kernel(*arguments)), *references.arguments_of(name))
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(results)]


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.full) for name in NAMES]
)
def test_flag_changes_no_bit(name: str) -> None:
    """`off`, `check` and `on` agree with each other, and with the lowered program run by itself."""
    arguments = references.arguments_of(name)
    wanted = [result.tobytes() for result in references.run_lowered(references.CASES[name], arguments)]
    for mode in ("off", "check", "on"):
        assert bits(name, mode) == wanted, mode
