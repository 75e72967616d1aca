"""Programs lowered for a TPU under the hook: what they become, what is said of them, and what stays as it is."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hook_kernels import plus_one, rows
from hooked import grids, hooked, lowered, output, python, quietly
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from mosaic_grid.errors import UserError
from mosaic_grid.jax_hook import passes, promises
from mosaic_grid.jax_hook.told import MosaicGridWarning
from mosaic_grid.pipeline import Pipeline, run_pipeline
from mosaic_grid.reproducer import InternalError

X = np.zeros((64, 128), np.float32)
N = jnp.int32(4)


def race(x: jax.Array) -> Any:
    """Two parallel steps that write one block."""
    return pl.pallas_call(
        plus_one,
        out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype),
        grid=(8,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        name="race",
    )(x)


def test_on_shares_and_check_does_not() -> None:
    """`on` makes a kernel for two cores of a v5p, and leaves a v5e, which has one, alone."""
    with hooked("on"):
        assert grids(quietly(lowered, rows, N, X)) == ["? 1", "2* ?"]
        assert grids(quietly(lambda: lowered(rows, N, X, device="TPU v5 lite", cores=1))) == ["? 1"]
    with hooked("check"):
        assert grids(quietly(lowered, rows, N, X)) == ["? 1"]


def test_unknown_chip_is_not_shared_for() -> None:
    """Where nobody says what the program is lowered for nothing is assumed of its cores."""
    with hooked("on"):
        lower = jax.jit(rows).trace(N, X).lower
        assert "stablehlo.case" not in quietly(lambda: lower(lowering_platforms=("tpu",)).as_text())


def test_program_without_kernels_stays() -> None:
    """Its text is the same, with the flag and without."""
    with hooked():
        stock = lowered(jnp.sin, X)
    with hooked("on"):
        assert lowered(jnp.sin, X) == stock


def test_kernel_that_the_compiler_shares_stays() -> None:
    """A program in which there is nothing to rewrite is the same to the last character."""
    with hooked():
        stock = lowered(lambda x: rows(4, x), X)
    with hooked("on"):
        assert quietly(lowered, lambda x: rows(4, x), X) == stock


def notes_of(name: str, mode: str, function: Any, *arguments: Any) -> str:
    """What the hook says under a name, with notes."""
    passes.forget()
    with hooked(mode), pytest.warns(MosaicGridWarning) as caught:
        lowered(function, *arguments)
    return "\n".join(str(each.message) for each in caught if f"[{name}]" in str(each.message))


def test_notes_speak_of_the_hook_s_options() -> None:
    """What to do next is said as it is done here: with options, and with `on` where that is all it takes."""
    outside = notes_of("window-out-of-bounds", "check", lambda n, x: rows(n, x), N, X)
    assert "or promise what the inputs can be, as with JAX_MOSAIC_GRID_CONTRACTS='n <= 8'" in outside
    assert "--contracts" not in outside
    idle = notes_of("idle-cores", "check", lambda n, x: rows(n, x), N, X)
    assert "partition-cores (JAX_MOSAIC_GRID=on) shares it between the cores" in idle
    unmarked = notes_of("idle-cores", "check", lambda x: rows(2, x, "arbitrary"), X)
    infer = "infer-parallel (JAX_MOSAIC_GRID=batch-grid,resolve-grid,infer-parallel,partition-cores)"
    assert f"say that dimension 0 is parallel, in dimension_semantics; or run {infer}" in unmarked
    # there nothing is to be switched on
    assert infer in notes_of("idle-cores", "on", lambda x: rows(2, x, "arbitrary"), X)


def test_notes_on_a_vmapped_launch() -> None:
    """`batch-grid` is advised where it does something, and its reason told where it doesn't."""
    bounds, xs = jnp.arange(1, 4), jnp.zeros((3, 16, 128))
    loop = notes_of("vmap-became-loop", "check", jax.vmap(lambda n, x: rows(n, x)), bounds, xs)
    assert "batch-grid (JAX_MOSAIC_GRID=on) makes one launch of the loop; or make the batch a dimension" in loop
    kept = notes_of("vmap-became-loop", "check", jax.vmap(summed), bounds, xs)
    assert "\nnote: batch-grid leaves the loop as it is: " in kept
    assert "scratch" in kept
    assert "\nnote: make the batch a dimension of the grid" in kept


def summed(n: Any, x: Any) -> Any:
    """Adds up blocks in scratch that nothing clears."""

    def kernel(x_ref: Any, o_ref: Any, sum_ref: Any) -> None:
        sum_ref[...] += x_ref[...]
        o_ref[...] = sum_ref[...]

    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(n,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
    )(x)


def test_warning_is_at_the_user_s_line() -> None:
    """An error of the checks is a warning of Python's, at the line that made the kernel; JAX compiles the program."""
    with hooked("check"), pytest.warns(MosaicGridWarning, match=r"race.*\[parallel-race\]") as caught:
        lowered(race, X)
    (found,) = [each for each in caught if "[parallel-race]" in str(each.message)]
    assert found.filename == __file__
    assert "pl.pallas_call(" in Path(__file__).read_text().splitlines()[found.lineno - 1]
    assert __file__ not in str(found.message), "Python tells the place"


def test_idle_cores_are_told_of_unless_they_are_put_to_work() -> None:
    """`check` finds the idle core that `on` remedies, and `on` doesn't complain of it."""
    told = {}
    for mode in ("check", "on"):
        with hooked(mode), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lowered(rows, N, X)
        told[mode] = [each for each in caught if "[idle-cores]" in str(each.message)]
    assert len(told["check"]) == 1
    assert told["on"] == []


def test_a_chip_that_nobody_names() -> None:
    """Where JAX doesn't say which chip a program is for, `on` tells why the idle core stays idle."""
    with hooked("on"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jax.jit(lambda n, x: rows(n, x)).trace(N, X).lower(lowering_platforms=("tpu",))
    (found,) = [str(each.message) for each in caught if "[idle-cores]" in str(each.message)]
    assert "an abstract mesh with a device says it" in found


def test_remarks_go_to_the_logger(caplog: pytest.LogCaptureFixture) -> None:
    """What a rewrite did or not is there for who wants to know."""
    with hooked("on"), caplog.at_level(logging.INFO, "mosaic_grid"):
        quietly(lowered, lambda n, x: rows(n, x, "arbitrary"), N, X)
    assert "partition-cores" in caplog.text


def test_pipeline_runs_and_raises() -> None:
    """A pipeline does what it says; an error that a pass of it reports is raised, with its line."""
    with hooked("resolve-grid"):
        assert grids(lowered(lambda x: rows(jnp.max(jnp.array([2, 4])), x), X)) == ["4 1"]
    with hooked("check-grid"), pytest.raises(UserError, match=r"test_hook_lowering.py:\d+:\d+: error: .*race"):
        lowered(race, X)


def test_unshared_core_parallel_is_an_error_of_ours() -> None:
    """A dynamic core_parallel bound that nothing makes static is refused with the user's line."""
    with hooked("resolve-grid"), pytest.raises(UserError, match=r"hook_kernels.py:\d+.*core_parallel dimension 0"):
        lowered(lambda n, x: rows(n, x, "core_parallel"), N, X)


def test_contracts_are_promises_about_arguments() -> None:
    """With enough steps promised there is no fallback; a contract about no argument of a program says nothing of it."""
    with hooked("on", contracts="n >= 2, n <= 8, other >= 1"):
        assert grids(quietly(lowered, rows, N, X)) == ["2* ?"]
        assert grids(quietly(lowered, lambda m, x: rows(m, x), N, X)) == ["? 1", "2* ?"]
    promises.forget()


def test_a_misspelt_contract_is_told_once() -> None:
    """A contract about a name that a program has almost is a warning with the names there are, and the rest holds."""
    promises.forget()

    def function(steps: Any, x: Any) -> Any:
        return rows(steps, x)

    with hooked("on", contracts="step >= 2, steps >= 2, steps <= 8, other >= 1"):
        with pytest.warns(MosaicGridWarning) as caught:
            assert grids(lowered(function, N, X)) == ["2* ?"]
        (found,) = [str(each.message) for each in caught if "unused-contract" in str(each.message)]
        assert "contract 'step >= 2' says nothing of this program" in found
        assert "no integer argument 'step'; did you mean steps? [unused-contract]" in found
        assert "\nnote: it has steps" in found
        passes.forget()
        with warnings.catch_warnings(record=True) as again:
            warnings.simplefilter("always")
            lowered(function, N, X)
        assert not [each for each in again if "unused-contract" in str(each.message)]
    promises.forget()


def test_a_contract_for_no_program_is_told_at_the_end() -> None:
    """One that no program of a process has had the arguments of, and not one for another program than the first."""
    code = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl

def lower(f):
    jax.jit(f).trace(jnp.int32(2), jnp.zeros((16, 128))).lower(lowering_platforms=("tpu",))

def call(n, x):
    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    kernel = lambda x_ref, o_ref: o_ref.__setitem__(..., x_ref[...])
    return pl.pallas_call(kernel, out_shape=x, grid=(n,), in_specs=[block], out_specs=block)(x)

lower(lambda n, x: call(n, x))
lower(lambda count, x: call(count, x))
"""
    given = {"JAX_MOSAIC_GRID": "check", "JAX_MOSAIC_GRID_CONTRACTS": "count <= 2, n <= 2, lengths[*] >= 0"}
    done = python(code, **given)
    assert done.returncode == 0, done.stderr
    (found,) = [line for line in done.stderr.splitlines() if "unused-contract" in line]
    assert "contract 'lengths[*] >= 0' says nothing of this program" in found


def test_what_was_said_of_a_program_is_said_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that is lowered again isn't checked again, and its error is reported all the same; another one is."""
    ran: list[Pipeline] = []

    def run(pipeline: Pipeline, *given: Any, **named: Any) -> None:
        ran.append(pipeline)
        run_pipeline(pipeline, *given, **named)

    monkeypatch.setattr(passes, "run_pipeline", run)
    passes.forget()
    with hooked("check"):
        for _ in range(2):
            with pytest.warns(MosaicGridWarning, match="race"):
                lowered(race, X)
        assert len(ran) == 1
        quietly(lambda: lowered(race, X, device="TPU v5 lite", cores=1))
        assert len(ran) == 2


@pytest.mark.parametrize("error", [InternalError("partition-cores", None, ValueError("boom")), UserError("boom")])
def test_failure_of_a_pass_leaves_the_program(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our bugs, and what we can't read, cost a warning and not the user's program."""
    with hooked():
        stock = lowered(rows, N, X)

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(passes, "_rewritten", fail)
    with hooked("on"), pytest.warns(MosaicGridWarning, match="leaves a program as it is.*boom"):
        assert lowered(rows, N, X) == stock


def test_report_has_both_programs(tmp_path: Path) -> None:
    """Each lowering of a program with kernels writes a directory of its own; others write nothing."""
    with hooked("on", report=str(tmp_path)):
        for _ in range(2):
            quietly(lowered, rows, N, X)
        lowered(jnp.sin, X)
    first, second = sorted(tmp_path.iterdir(), key=lambda path: path.stat().st_ctime_ns)
    assert first.name.startswith("jit_rows-")
    assert sorted(path.name for path in second.iterdir()) == [
        "after.mlir",
        "before.mlir",
        "diagnostics.txt",
        "summary.txt",
    ]
    assert grids((first / "after.mlir").read_text()) == ["? 1", "2* ?"]
    assert grids((first / "before.mlir").read_text()) == ["? 1"]
    assert "grid: (?, 1)" in (first / "summary.txt").read_text()


def test_report_alone_shows_what_jax_lowers(tmp_path: Path) -> None:
    """Without another option the program stays, and its report has it twice."""
    with hooked():
        stock = lowered(rows, N, X)
    with hooked(report=str(tmp_path)):
        assert lowered(rows, N, X) == stock
    (written,) = tmp_path.iterdir()
    assert grids((written / "before.mlir").read_text()) == grids((written / "after.mlir").read_text()) == ["? 1"]


def test_report_that_can_not_be_written(tmp_path: Path) -> None:
    """A file in the place of the directory is one clear error."""
    (tmp_path / "file").write_text("")
    with hooked("check", report=str(tmp_path / "file")), pytest.raises(UserError, match="can't write a report"):
        quietly(lowered, rows, N, X)


def test_locations_are_the_user_s() -> None:
    """No frame of the hook is in the locations of a program."""
    with hooked("on", "v5p"):
        text = quietly(lambda: lowered(rows, N, X, debug=True))
    assert "hook_kernels.py" in text
    assert "jax_hook" not in text


def test_off_after_on_is_stock() -> None:
    """A process whose flag was on lowers as one that never heard of it: the same text, locations included."""
    code = """
import sys, warnings
warnings.simplefilter("ignore")
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

def copy(a_ref, o_ref):
    o_ref[...] = a_ref[...]

def f(n, x):
    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(copy, out_shape=x, grid=(n,), in_specs=[block], out_specs=block)(x)

arguments = jax.ShapeDtypeStruct((), jnp.int32), jax.ShapeDtypeStruct((64, 128), jnp.float32)
for value in VALUES:
    jax.config.update("jax_mosaic_grid", value)
    jax.config.update("jax_mosaic_grid_cpu", "" if value == "off" else "v5p")
    text = jax.jit(f).trace(*arguments).lower(lowering_platforms=("tpu",)).as_text(debug_info=True)
print(text)
"""
    never = output(code.replace("VALUES", '["off"]'))
    assert "tpu_custom_call" in never
    assert output(code.replace("VALUES", '["on", "off"]')) == never
