"""The kernels under `jax.experimental.pallas.ops.tpu` with what they must compute: run on the CPU, three ways.

A kernel is lowered for TPU and then to the CPU; its public reference, in JAX on the CPU, says what must come out; and
JAX's own interpreter (`interpret=True`) runs the same `pallas_call`, where it can. `references.py [NAME...]` prints a
line for each case: the largest difference from the reference as a part of what is allowed, and that from the
interpreter in units in the last place, for each result; and the seconds of the first two.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu
from jaxlib.mlir import ir

import reference_attention
import reference_matmul
import reference_paged
from mosaic_grid.context import create_context
from mosaic_grid.cpu.convert import lower_to_cpu
from mosaic_grid.cpu.execute import compile_program
from mosaic_grid.cpu.options import Options
from mosaic_grid.dump import read_dump
from mosaic_grid.program import Program
from mosaic_grid.unpack import unpack
from reference_case import Array, Case, Tolerance
from shipped_kernels import lower, lower_for

CASES: dict[str, Case] = {**reference_matmul.CASES, **reference_attention.CASES, **reference_paged.CASES}
"""By name."""

_ROUNDING = {"xla_allow_excess_precision": False}
"""Every rounding to bf16 is made, as it is in what `mosaic_grid` compiles."""


def arguments_of(name: str) -> list[Array]:
    """The arguments of a case, the same ones each time."""
    return [np.asarray(array) for array in CASES[name].arguments(np.random.default_rng(0))]


def lower_case(case: Case, arguments: Sequence[Array]) -> bytes:
    """The program of a case as JAX lowers it for TPU; it takes every argument, used or not."""
    function = jax.jit(case.kernel, keep_unused=True)
    shapes = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arguments]
    return lower_for(*case.device, function, *shapes) if case.device else lower(function, *shapes)


def run_lowered(case: Case, arguments: Sequence[Array], options: Options | None = None) -> list[Array]:
    """The results of the kernel lowered for TPU, its launches lowered to the CPU, run by XLA."""
    with create_context() as context, ir.Location.unknown():
        module = read_dump(lower_case(case, arguments), "kernel", context).module
        unpack(module)
        if case.needs_cores:
            _use_cores(module)
        lower_to_cpu(module, options or Options())
        return compile_program(module)(*arguments)


def _use_cores(program: ir.Operation) -> None:
    """Makes the outermost dimension of each kernel, a parallel one, that of the cores, as libtpu does."""
    core = ir.Attribute.parse("#tpu.dimension_semantics<core_parallel>")
    for kernel in Program(program).kernels.values():
        semantics = ir.ArrayAttr(kernel.body.attributes["dimension_semantics"])
        kernel.body.attributes["dimension_semantics"] = ir.ArrayAttr.get([core, *list(semantics)[1:]])


def run_reference(case: Case, arguments: Sequence[Array]) -> list[Array]:
    """What must come out."""
    return _listed(case.reference(*map(jnp.asarray, arguments)))


def run_interpreted(case: Case, arguments: Sequence[Array]) -> list[Array]:
    """The results of the same kernel in JAX's interpreter."""
    interpret: Any = True  # instead of parameters: as if it stood in every `pallas_call`
    with pltpu.force_tpu_interpret_mode(interpret):
        return _listed(jax.jit(case.kernel, compiler_options=_ROUNDING)(*arguments))


def _listed(results: Any) -> list[Array]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(results)]


def excess(found: Array, expected: Array, tolerance: Tolerance) -> float:
    """The largest difference as a part of what is allowed: above 1 it is too large. NaN counts as infinitely far."""
    left, right = found.astype(np.float64), expected.astype(np.float64)
    difference = np.abs(left - right)
    allowed = tolerance.absolute + tolerance.relative * np.abs(right)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(difference == 0, 0.0, difference / allowed)
    return float(np.where(np.isnan(parts), np.inf, parts).max(initial=0.0))


def max_ulp(found: Array, expected: Array) -> int:
    """How many numbers of their type two elements are apart at most: 0 if all are equal, 0 and -0 being so too."""
    left, right = _ordered(found), _ordered(expected)
    return int(np.abs(left - right).max(initial=0))


def _ordered(array: Array) -> Array:
    """Numbers as integers that follow each other as they do."""
    bits = array.view(f"i{array.dtype.itemsize}").astype(np.int64)
    if array.dtype.kind in "iub":
        return bits
    return np.where(bits < 0, -(bits & (2 ** (8 * array.dtype.itemsize - 1) - 1)), bits)


def main(names: Sequence[str]) -> int:
    """A line for each case; the number of those that fail."""
    failed = 0
    for name in names or CASES:
        case, arguments, start = CASES[name], arguments_of(name), time.perf_counter()
        try:
            found, expected = run_lowered(case, arguments), run_reference(case, arguments)
        except Exception as error:
            failed += 1
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
            continue
        taken = time.perf_counter() - start
        parts = [excess(a, b, case.tolerance(k)) for k, (a, b) in enumerate(zip(found, expected, strict=True))]
        failed += max(parts) > 1
        try:
            units = " ".join(str(max_ulp(a, b)) for a, b in zip(found, run_interpreted(case, arguments), strict=True))
        except Exception as error:
            units = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        allowed = " ".join(f"{part:.2g}" for part in parts)
        print(f"{name}: {allowed} of what is allowed; interpreter: {units}; {taken:.1f} s", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
