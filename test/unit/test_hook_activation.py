"""The hook without an import of ours: from the start-up file alone, whatever a script imports in which order."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest
from hooked import SITE, output, python

from mosaic_grid.jax_hook import install
from mosaic_grid.jax_hook.internals import MovedError, internal, known_release

RUN = """
x = jnp.ones((8, 128))
print(jax.jit(pl.pallas_call(lambda i, o: o.__setitem__(..., i[...] + 1), out_shape=x))(x)[0, 0])
"""
FAMILIAR = "import jax\nimport jax.numpy as jnp\nfrom jax.experimental import pallas as pl\n"
BACKWARDS = "from jax.experimental.pallas import tpu\n" + "\n".join(reversed(FAMILIAR.splitlines())) + "\n"


@pytest.mark.parametrize("imports", [FAMILIAR, BACKWARDS])
def test_variable_is_enough(imports: str) -> None:
    """The script knows nothing of us, and its kernel runs on the CPU."""
    assert output(imports + RUN, JAX_MOSAIC_GRID_CPU="v5p") == "2.0"


@pytest.mark.parametrize("imports", [FAMILIAR, BACKWARDS])
def test_option_set_after_everything_is_imported(imports: str) -> None:
    """`jax.config.update` works in a process that has imported Pallas, and run something."""
    before = "print(jax.jit(jnp.sin)(0.0))\njax.config.update('jax_mosaic_grid_cpu', 'v5p')\n"
    assert output(imports + before + RUN) == "0.0\n2.0"


def test_trace_before_the_back_end_is_there() -> None:
    """A function that is traced first of all, before JAX looks for devices, is traced under the option."""
    code = FAMILIAR + "jax.jit(lambda x: x + 1).trace(jax.ShapeDtypeStruct((8,), jnp.float32))\n" + RUN
    assert output(code, JAX_MOSAIC_GRID_CPU="v5p") == "2.0"


def test_start_up_imports_nothing() -> None:
    """A Python that doesn't use JAX doesn't pay for us: one module, and no package."""
    code = "import sys; print(*sorted(name for name in sys.modules if 'mosaic' in name or name in ('jax', 'typing')))"
    assert output(code) == "mosaic_grid_startup"


def test_unset_flag_touches_nothing() -> None:
    """JAX's functions are its own until an option is set."""
    code = (
        FAMILIAR + "from jax._src.interpreters import mlir\nimport sys\n"
        "print(mlir.lower_jaxpr_to_module.__module__, 'mosaic_grid.jax_hook.install' in sys.modules)"
    )
    assert output(code) == "jax._src.interpreters.mlir False"


def test_unknown_jax_is_left_alone() -> None:
    """Of a JAX that isn't known nothing is replaced; one warning says so, and where it is set."""
    code = (
        "import warnings\nwarnings.simplefilter('always')\nimport jax.version\njax.version.__version__ = '0.99.0'\n"
        "import jax\njax.config.update('jax_mosaic_grid', 'on')\n"
        "from jax._src.interpreters import mlir\nprint(mlir.lower_jaxpr_to_module.__module__)"
    )
    done = python(code)
    assert done.stdout.strip() == "jax._src.interpreters.mlir"
    assert done.stderr.count("JAX 0.99.0 isn't one that mosaic-grid's hook knows") == 1


def test_what_has_moved_is_one_clear_error() -> None:
    """A function that is gone, or takes something else, is named."""
    module = ModuleType("jax._src.somewhere")
    with pytest.raises(MovedError, match=r"jax\._src\.somewhere\.lower is gone"):
        internal(module, "lower")
    vars(module)["lower"] = lambda context, other: None
    with pytest.raises(MovedError, match=r"takes \(context, other\), not \(context, operands\)"):
        internal(module, "lower", ("context", "operands"))
    assert internal(module, "lower", ("context",)) is vars(module)["lower"]


def test_everything_that_is_replaced_is_where_it_was() -> None:
    """The installed JAX has all that the hook looks for."""
    assert set(install.patch_all()) == {module for module, _ in install.PATCHES[known_release() or ""]}


@pytest.mark.parametrize(
    ("version", "known"),
    [
        ("0.12", "0.12"),
        ("0.12.0.1", "0.12"),
        ("0.12.9", "0.12"),
        ("0.10.2", "0.10.2"),
        ("0.10.1", None),
        ("0.10", None),
        ("0.11.2", None),
        ("0.120.0", None),
        ("0.13.0", None),
        ("1.12.0", None),
    ],
)
def test_releases_that_are_known(version: str, known: str | None) -> None:
    """Every 0.12 is one, of 0.10 only the one that was looked at; what begins alike is not."""
    assert known_release(version) == known
    assert known is None or known in install.PATCHES


def test_doctor() -> None:
    """It names versions and the options, and fails where the hook can't work."""
    healthy = output("from mosaic_grid.doctor import main; raise SystemExit(main())", JAX_MOSAIC_GRID="check")
    assert "FAIL" not in healthy
    assert "jax_mosaic_grid = 'check' (from the environment)" in healthy
    assert "jax._src.tpu_custom_call" in healthy
    sick = python("from mosaic_grid.doctor import main; raise SystemExit(main())", JAX_MOSAIC_GRID="sideways")
    assert sick.returncode == 1
    assert "choose one of off, check, on" in sick.stdout


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An empty environment whose other packages are this one's."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path], check=True)
    (site,) = (tmp_path / "lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return tmp_path / "bin" / "python"


@pytest.mark.skipif(not importlib.util.find_spec("hatchling"), reason="building needs the `dev` extra")
@pytest.mark.parametrize("how", [(), ("-e",)])
def test_installed_package_is_enough(how: tuple[str, ...], environment: Path, tmp_path: Path) -> None:
    """`pip install .` and `pip install -e .` both bring the start-up file."""
    pip: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        environment,
        "--disable-pip-version-check",
        "install",
    ]
    quiet = ["--no-deps", "--no-index", "--no-build-isolation", "--quiet"]
    subprocess.run([*pip, *quiet, *how, SITE.parent], check=True, cwd=tmp_path, capture_output=True)
    code = FAMILIAR + "import mosaic_grid_startup\nprint(mosaic_grid_startup.__file__)" + RUN
    variables = {"JAX_PLATFORMS": "cpu", "JAX_MOSAIC_GRID_CPU": "v5p"}
    done = subprocess.run(
        [environment, "-c", code], env=variables, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    place, result = done.stdout.split()
    assert result == "2.0"
    assert place.startswith(str(SITE) if how else str(tmp_path))
