"""Kernels that ship with JAX: nothing is lost of them by unpacking and packing, and their grids are shared."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from jaxlib.mlir import ir

import sweep
from mosaic_grid.context import create_context
from mosaic_grid.dump import read_dump
from mosaic_grid.libtpu import LaunchReport, compile_program
from mosaic_grid.passes.partition_cores import PartitionCores
from mosaic_grid.passes.resolve_grid import ResolveGrid
from mosaic_grid.session import Session
from mosaic_grid.targets import parse_target
from mosaic_grid.unpack import pack, unpack
from mosaic_grid.write import write_text
from shipped_kernels import KERNELS

V5P = parse_target("v5p")
QUICK = ("example_double", "matmul_bf16", "flash_single_step", "splash_mqa_causal", "paged", "gmm")
"""What every run compiles; the others take longer."""
CORPUS = "MOSAIC_GRID_CORPUS"
"""The environment variable that names a directory of dumps for the long sweep."""


@functools.cache
def trip(name: str) -> sweep.RoundTrip:
    """A kernel that ships with JAX, lowered here, unpacked and packed again."""
    return sweep.round_trip(KERNELS[name](), name)


@pytest.mark.parametrize("name", KERNELS)
def test_round_trip(name: str) -> None:
    """Unpacked, packed and unpacked again a program is the same to the last location; so is the packed text."""
    assert trip(name).launches >= 1  # `round_trip` raises where something differs
    assert trip(name).opened == trip(name).repacked
    assert '"body": ""' not in trip(name).repacked


def test_round_trip_sees_locations() -> None:
    """The comparison is one with locations, and with those of the kernel, which JAX ships apart."""
    assert 'example_kernel.py":' in trip("example_double").unpacked


@pytest.mark.libtpu
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.full) for name in KERNELS]
)
def test_compiled_the_same(name: str) -> None:
    """libtpu makes the same HLO and the same schedule of the repacked program, or refuses both alike."""
    before, after = sweep.compile_both(trip(name), V5P)
    assert [launch.bundles for launch in before.launches] == [launch.bundles for launch in after.launches]
    if name in QUICK:
        assert not before.failed
        assert all(launch.bundles for launch in before.launches)


def test_without_payloads() -> None:
    """HLO is compared without the kernels' bytes, in either spelling, and with everything else."""
    hlo = 'a={"body":"TUz+/w==", "debug_locations": "TUzv", "flags": "x"}'
    assert sweep.without_payloads(hlo) == 'a={"body":"", "debug_locations": "", "flags": "x"}'


@pytest.mark.parametrize(("first", "second"), [("a\nb\n", "a\nc\n"), ("a\n", "a\nb\n"), ("a", "a\n")])
def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch, first: str, second: str) -> None:
    """A text that comes back different fails the round trip."""
    texts = iter(("opened", first, "opened", second))
    monkeypatch.setattr(sweep, "write_text", lambda *_, **__: next(texts))
    with pytest.raises(sweep.DiffersError, match="unpacked text differs at line"):
        sweep.round_trip(KERNELS["example_double"](), "double")


def test_sweep_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The sweep says a line for each dump of a directory, the smallest first, and counts; other files are left out."""
    (tmp_path / "b.mlir").write_bytes(KERNELS["example_double"]())
    (tmp_path / "a.mlir").write_text("module {\n")
    (tmp_path / "README.md").write_text("# no dump\n")
    assert sweep.main([str(tmp_path), "--no-compile"]) == 1
    bad, good, count = capsys.readouterr().out.splitlines()
    assert bad.startswith("FAIL a.mlir: ")
    assert good == "PASS b.mlir: 1 launch, same text"
    assert count == "1 passed, 1 failed"


@pytest.mark.libtpu
@pytest.mark.full
def test_corpus() -> None:
    """The same for every dump of a directory that the environment names."""
    if CORPUS not in os.environ:
        pytest.skip(f"{CORPUS} names no directory of dumps")
    files = sweep.files_of([Path(os.environ[CORPUS])])
    failures = [f"{path.name}: {words}" for path, words, good in sweep.sweep(files, V5P, jobs=1) if not good]
    assert files
    assert not failures


def dynamic_copy() -> str:
    """Imported where it is called: the module imports JAX."""
    import real_kernels

    return real_kernels.dynamic_copy()


def dynamic_flash_attention() -> str:
    """The same."""
    import real_kernels

    return real_kernels.dynamic_flash_attention()


def dynamic_gmm() -> str:
    """The same."""
    import real_kernels

    return real_kernels.dynamic_gmm()


@pytest.mark.libtpu
@pytest.mark.parametrize(
    ("lower", "choices"),
    [
        (dynamic_copy, 2),
        pytest.param(dynamic_flash_attention, 2, marks=pytest.mark.full),
        pytest.param(dynamic_gmm, 1, marks=pytest.mark.full),
    ],
)
def test_shared_between_cores(lower: Callable[[], str], choices: int) -> None:
    """By libtpu's word a kernel with a dynamic parallel dimension runs on one core, and on both when it is shared.

    Where the number of steps isn't known to be enough for both, the original is still there, for one core.
    """
    before = lower()
    (launch,) = compiled(before)
    assert launch.cores_used == 1
    shared = compiled(partitioned(before))
    assert [launch.cores_used for launch in shared] == [1, 2][-choices:]
    assert all(launch.bundles for launch in shared)


def compiled(program: str) -> tuple[LaunchReport, ...]:
    """libtpu's reports on a program for v5p, which has two cores."""
    (report,) = compile_program(program.encode(), [V5P])
    assert not report.failed
    return report.launches


def partitioned(program: str) -> str:
    """A packed program after resolve-grid and partition-cores, packed again."""
    with create_context() as context, ir.Location.unknown():
        module = read_dump(program.encode(), "program", context).module
        unpack(module)
        session = Session(V5P)
        for step in (ResolveGrid(), PartitionCores()):
            step.run(module, session)
        assert module.verify()
        pack(module)
        return write_text(module)
