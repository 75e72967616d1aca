"""`mosaic_grid.specialize`: functions with static variants, called like the originals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dynamic_programs
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mosaic_grid

X = dynamic_programs.numbers(60, 384)


def scaled(n: Any, x: Any) -> Any:
    """A tree of results, of a kernel over as many rows as a number of elements fills."""
    return {"doubled": dynamic_programs.scale_in_place((n + 7) // 8, x), "n": n + 1}


@pytest.mark.parametrize("n", [8, 9, 16, 17, 40, 0])
def test_results_are_those_of_the_function(n: int) -> None:
    """Inside of the variants and outside, a specialized function returns what the lowered one does, as a tree."""
    specialized = mosaic_grid.specialize(scaled, {"n": (16, 33)})
    results = specialized(np.int32(n), X)
    lowered = jax.jit(scaled).trace(np.int32(n), X).lower(lowering_platforms=("tpu",))
    for found, wanted in zip(jax.tree.leaves(results), mosaic_grid.run(lowered, np.int32(n), X), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert results["n"] == n + 1


def test_it_works_inside_of_jit() -> None:
    """A specialized function is a part of a function that JAX compiles."""
    specialized = mosaic_grid.specialize(dynamic_programs.scale_in_place, {0: range(1, 4)}, bucket="round-up")
    compiled = jax.jit(lambda n, x: jnp.flip(specialized(n, x)))
    for n in (2, 3, 5):
        np.testing.assert_array_equal(compiled(np.int32(n), X), np.flip(specialized(np.int32(n), X)))


def test_the_program_has_the_variants() -> None:
    """What a client of a TPU would be given picks between the kernels, packed."""
    specialized = mosaic_grid.specialize(dynamic_programs.scale_in_place, {"kernel": {0: 4}})
    text = specialized.as_text(np.int32(1), X)
    assert "stablehlo.case" in text
    assert "mosaic.kernel" not in text
    assert specialized.pipeline == 'specialize-grid{values="kernel:0=4"}'


def test_what_the_pass_says_can_be_read() -> None:
    """The remarks of the pass are in the report."""
    specialized = mosaic_grid.specialize(dynamic_programs.scale_in_place)
    assert "specialize-grid changed nothing" in specialized.report(np.int32(1), X)
    promised = mosaic_grid.specialize(dynamic_programs.scale_in_place, contracts=["n >= 1", "n <= 3"], target="v5p")
    assert promised.report(np.int32(1), X) == ""
    np.testing.assert_array_equal(promised(np.int32(3), X), mosaic_grid.specialize(
        dynamic_programs.scale_in_place, 3)(np.int32(3), X))  # fmt: skip


def test_bounds_come_from_a_file(tmp_path: Path) -> None:
    """The path of a file with values is taken in place of them."""
    (tmp_path / "seen").write_text("n=2\nn=3\n")
    specialized = mosaic_grid.specialize(dynamic_programs.scale_in_place, tmp_path / "seen")
    assert specialized.as_text(np.int32(1), X).count("tpu_custom_call") == 3


def launched_often(n: Any, x: Any) -> Any:
    """Launches in a loop, in a branch and in a function, with different bounds."""
    scale = dynamic_programs.scale_in_place
    y = jax.lax.fori_loop(0, 3, lambda k, y: scale(n + k % 2, y), x)
    y = jax.lax.cond(n > 4, lambda y: scale(n + 2, y), lambda y: y, y)
    return jax.jit(scale)(n, y)


def test_bounds_are_recorded(tmp_path: Path) -> None:
    """Bounds are counted wherever the launch is, the most frequent come first, and what is in the file stays in it."""
    file = tmp_path / "seen"
    file.write_text("0=100\nkernel:0=6\n")
    recording = mosaic_grid.specialize(launched_often, 1, record=file)
    plain = mosaic_grid.specialize(launched_often, 1)
    for n in (2, 5, -1):
        np.testing.assert_array_equal(recording(np.int32(n), X), plain(np.int32(n), X))
    # 2, 3, 2 and 2; 5, 6, 5, 7 and 5; no steps
    assert file.read_text().splitlines() == ["kernel:0=2,5,3,6,7", "0=100"]
    made = mosaic_grid.specialize(dynamic_programs.scale_in_place, file, budget=2).as_text(np.int32(1), X)
    assert made.count("tpu_custom_call") == 3
    with pytest.raises(mosaic_grid.UserError, match="can't be recorded"):
        jax.jit(recording)(np.int32(1), X)


def test_mistakes_are_errors() -> None:
    """A bound that isn't there, and options that can't be, are errors of the user's."""
    with pytest.raises(mosaic_grid.UserError, match="no kernel has such a dynamic bound"):
        mosaic_grid.specialize(dynamic_programs.scale_in_place, {"m": 4})(np.int32(1), X)
    with pytest.raises(mosaic_grid.UserError, match="ladder"):
        mosaic_grid.specialize(dynamic_programs.scale_in_place, ladder="steep")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "v5x"}, "unknown target 'v5x'"),
        ({"bucket": "round"}, "bucket: expects 'exact' or 'round-up', got 'round'"),
        ({"keep": None}, "keep: expects 'all' or 'profitable', got None"),
        ({"bounds": {0: 1.5}}, "'float' object cannot be interpreted as an integer"),
        ({"bounds": {"n": None}}, "'NoneType' object cannot be interpreted as an integer"),
        ({"bounds": {"a:b:c": 3}}, "'a:b:c=3' is no value of a bound"),
        ({"budget": 0}, "option 'budget' expects an integer from 1 to 64, got 0"),
        ({"budget": "few"}, "budget: expects an integer, got 'few'"),
        ({"budget": None}, "budget: expects an integer, got None"),
        ({"code_budget": 1.5}, "code_budget: expects an integer, got 1.5"),
        ({"compile_budget": 0, "keep": "profitable"}, "option 'compile-budget' expects a positive integer"),
        ({"code_budget": 1000}, "option 'code-budget' expects a positive integer, and keep=profitable"),
    ],
)
def test_bad_options_are_errors(options: Any, message: str) -> None:
    """What an option can't be is said before anything is lowered."""
    with pytest.raises(mosaic_grid.UserError) as caught:
        mosaic_grid.specialize(dynamic_programs.scale_in_place, **options)
    assert message in caught.value.message


def test_budgets_reach_the_pass() -> None:
    """The budgets in bytes and seconds are options of the pipeline that the function stands for."""
    budgets = mosaic_grid.specialize(
        dynamic_programs.scale_in_place, {0: 4}, keep="profitable", code_budget=100000, compile_budget=20
    )
    assert "code-budget=100000" in budgets.pipeline
    assert "compile-budget=20" in budgets.pipeline


def test_only_functions_are_specialized() -> None:
    """Anything else is an error that says what to give."""
    with pytest.raises(mosaic_grid.UserError, match="a str can't be specialized"):
        mosaic_grid.specialize("dump.mlir")  # type: ignore[arg-type]
