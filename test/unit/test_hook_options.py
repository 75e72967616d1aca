"""The options of the hook: set in every way that JAX knows, part of its caches' key, and loud about bad values."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hook_kernels import rows
from hooked import hooked, lowered, output, python, quietly

from mosaic_grid.jax_hook import core_parallel, options

X = np.zeros((16, 128), np.float32)
SHOW = "import jax; print(jax.config.jax_mosaic_grid, jax.config.jax_mosaic_grid_cpu)"


def test_environment_update_and_context_manager() -> None:
    """A variable, `jax.config.update` and a context manager set the same option."""
    assert output(SHOW) == "off"
    assert output(SHOW, JAX_MOSAIC_GRID="check", JAX_MOSAIC_GRID_CPU="v5p") == "check v5p"
    assert output(f"import jax; jax.config.update('jax_mosaic_grid', 'on'); {SHOW}") == "on"
    with hooked("check"):
        assert jax.config.jax_mosaic_grid == "check"
    assert options.mode() == "off"


def test_empty_variable_is_unset() -> None:
    """`JAX_MOSAIC_GRID= python ...` is what it is in a shell: nothing."""
    assert (
        output("import jax; from mosaic_grid.jax_hook import options; print(options.mode())", JAX_MOSAIC_GRID="")
        == "off"
    )


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("jax_mosaic_grid", "onn", "unknown pass 'onn'; choose one of off, check, on .did you mean 'on'"),
        ("jax_mosaic_grid", "1", "choose one of off, check, on"),
        ("jax_mosaic_grid", True, "is a text, not True"),
        ("jax_mosaic_grid", "resolve-grid{", "choose one of off, check, on"),
        ("jax_mosaic_grid_cpu", "v5q", "unknown target 'v5q'; did you mean 'v5p'"),
        ("jax_mosaic_grid_cpu", 5, "is a text, not 5"),
        ("jax_mosaic_grid_contracts", "n >", "contract 'n >', column 4"),
        ("jax_mosaic_grid_report", 3, "is the name of a directory, not 3"),
    ],
)
def test_bad_values_are_refused(option: str, value: object, words: str) -> None:
    """Whatever an option can't be is an error that says what it can be, and the value stays what it was."""
    before = getattr(jax.config, option)
    with pytest.raises(ValueError, match=words):
        jax.config.update(option, value)
    assert getattr(jax.config, option) == before


def test_bad_variable_is_refused_at_import() -> None:
    """A script with a misspelt variable doesn't run as if there were none."""
    done = python("import jax", JAX_MOSAIC_GRID="enable")
    assert done.returncode != 0
    *_, last, hint = done.stderr.splitlines()
    assert last.startswith("ValueError: jax_mosaic_grid can't be 'enable': unknown pass 'enable'; choose one of off, ")
    assert hint == "--list-passes lists every pass"
    # neither the option's making nor JAX's mechanism is shown
    assert "options.py" not in done.stderr
    assert "_src/config.py" not in done.stderr


def test_value_is_a_part_of_the_key() -> None:
    """One jitted function gives two programs for two values, and neither is made twice."""
    traced = []

    @jax.jit
    def function(n: object, x: object) -> object:
        traced.append(options.mode())
        return rows(n, x)

    for _ in range(2):
        for mode in ("off", "on"):
            with hooked(mode, "v5p"):
                quietly(function, jnp.int32(2), X)
    assert traced == ["off", "on"]


def test_two_values_give_two_programs() -> None:
    """The same function lowered twice: shared by `on`, as JAX makes it by `off` and `check`."""
    texts = {}
    for mode in ("off", "check", "on"):
        with hooked(mode):
            texts[mode] = quietly(lowered, rows, jnp.int32(2), X)
    assert texts["off"] == texts["check"]
    assert "stablehlo.case" in texts["on"]
    assert "stablehlo.case" not in texts["off"]


def test_deferred_bound_is_jax_s_error_elsewhere() -> None:
    """Only the refusal of a dynamic bound is put off: any other stays."""

    def stock(_: object) -> int:
        raise ValueError("The iteration bounds attribute must be an array.")

    with hooked("on"), pytest.raises(ValueError, match="must be an array"):
        core_parallel.deferred(stock)(None)
