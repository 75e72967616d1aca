"""Kernels that ship with JAX, lowered for TPU and then to the CPU, against their references and JAX's interpreter."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from jaxlib.mlir import ir

import references
import run_corpus
from mosaic_grid.context import create_context
from mosaic_grid.cpu.convert import UnsupportedKernelError, lower_to_cpu
from mosaic_grid.cpu.options import Options
from mosaic_grid.dump import read_dump
from mosaic_grid.unpack import unpack
from reference_case import EXACT, Array, Tolerance
from references import CASES, excess, max_ulp
from shipped_kernels import KERNELS


def marked(*names: str) -> list[object]:
    """The cases, of which the slow ones run in the long sweep."""
    return [pytest.param(name, marks=pytest.mark.full) if CASES[name].is_slow else name for name in names]


@functools.cache
def lowered(name: str) -> list[Array]:
    """What a kernel returns on the CPU."""
    return references.run_lowered(CASES[name], references.arguments_of(name))


@pytest.mark.parametrize("name", marked(*CASES))
def test_agrees_with_reference(name: str) -> None:
    """Each result, gradients included, is as near to the public reference as JAX's own tests of the kernel ask."""
    case = CASES[name]
    expected = references.run_reference(case, references.arguments_of(name))
    pairs = zip(lowered(name), expected, strict=True)
    parts = [excess(found, wanted, case.tolerance(k)) for k, (found, wanted) in enumerate(pairs)]
    assert max(parts) <= 1, f"differences as parts of what is allowed: {parts}"


@pytest.mark.parametrize("name", marked(*(name for name, case in CASES.items() if case.ulps is not None)))
def test_same_as_interpreter(name: str) -> None:
    """JAX's interpreter does the same operations on the same `pallas_call`, and returns the same bits."""
    expected = references.run_interpreted(CASES[name], references.arguments_of(name))
    for found, wanted in zip(lowered(name), expected, strict=True):
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        assert max_ulp(found, wanted) <= (CASES[name].ulps or 0)


def for_two_devices() -> bytes:
    """JAX's `all_gather`, which is lowered for one device, as a program that says it is for two."""
    one, two = b"mhlo.num_partitions = 1", b"mhlo.num_partitions = 2"
    program = KERNELS["all_gather"]()
    assert one in program
    return program.replace(one, two)


def test_all_gather_is_refused() -> None:
    """A kernel that talks to another device is refused, and the error says with which operations and where."""
    with create_context() as context, ir.Location.unknown():
        module = read_dump(for_two_devices(), "all_gather", context).module
        unpack(module)
        with pytest.raises(UnsupportedKernelError) as refusal:
            lower_to_cpu(module, Options())
    remote = [note for note in refusal.value.notes if "a copy to another device" in note]
    assert remote
    assert all("all_gather.py:" in note for note in remote)


def test_a_difference_is_found() -> None:
    """One wrong element, one NaN or one bit fails the comparison, wherever it is."""
    expected = np.linspace(-3, 3, 64, dtype=np.float32)
    for k in range(expected.size):
        wrong, lost, near = expected.copy(), expected.copy(), expected.copy()
        wrong[k] += 0.02
        lost[k] = np.nan
        near[k] = np.nextafter(near[k], np.float32(9))
        assert excess(wrong, expected, Tolerance(1e-2, 1e-3)) > 1 >= excess(wrong, expected, Tolerance(2.1e-2, 0))
        assert excess(lost, expected, Tolerance(1e9, 0)) > 1
        assert excess(near, expected, EXACT) > 1
        assert max_ulp(near, expected) == 1


def test_units_in_the_last_place() -> None:
    """Numbers are counted across zero and in every type; two zeros are one number."""
    tiny = np.float32(1e-45)  # the least that is positive
    assert max_ulp(np.array([-tiny, 0], np.float32), np.array([tiny, -0.0], np.float32)) == 2
    assert max_ulp(np.array([1, -1], np.float16), np.array([1, -1], np.float16)) == 0
    assert max_ulp(np.array([3], np.int32), np.array([-4], np.int32)) == 7


def test_run_corpus_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each dump of a directory says whether it ran, or each operation that is in the way, and why."""
    (tmp_path / "double.mlir").write_bytes(KERNELS["example_double"]())
    (tmp_path / "gather.mlir").write_bytes(for_two_devices())
    assert run_corpus.main([str(tmp_path)]) == 1
    _, double, gather, total = capsys.readouterr().out.splitlines()
    assert double.split()[:2] == ["double", "ok"]
    assert gather.split()[:2] == ["gather", "FAILED"]
    assert "tpu.enqueue_dma (a copy to another device)" in gather
    assert total == "1 passed, 1 failed"


def test_run_corpus_stops_what_hangs(tmp_path: Path) -> None:
    """A program that takes too long, or dies, is a failure that says so, and not the end of the run."""
    (tmp_path / "double.mlir").write_bytes(KERNELS["example_double"]())
    slow = run_corpus.run_apart(tmp_path / "double.mlir", timeout=0.01, memory=16, seed=0)
    assert slow.problem == "not done after 0 s"
    dead = run_corpus.run_apart(tmp_path / "missing.mlir", timeout=60, memory=16, seed=0)
    assert dead.problem.startswith("died with 1: FileNotFoundError")
