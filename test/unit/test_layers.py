"""The layers of the package: imports go one way, and jax is imported only where it has to be.

The layers are read from the sources, imports inside functions and under TYPE_CHECKING included: those are dependencies
too. What a module really drags in is asked of a fresh interpreter.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import mosaic_grid

PACKAGE = Path(mosaic_grid.__file__).parent

# From the bottom up, by module or subpackage: a module may import its own layer and those below. A module that is not
# named belongs to LAYERS[DEFAULT]; name it when it needs something higher.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    ("symbolic",),
    ("program", "grid", "context", "diagnostics", "session", "passbase"),
    ("dataflow",),
    ("legality", "objections"),
    ("passes", "checks", "contract_checks", "batching", "infer", "partition", "resolve", "variants", "cpu", "summary"),
    (
        *("pipeline", "reproducer", "containers", "dump", "kernel_patterns"),
        *("guard", "guard_server", "supervisor"),
    ),
    (
        *("command_line", "compile_command", "core_counts", "driver", "flags", "output", "process", "rerun", "stages"),
        *("runner", "jax_hook", "selection_flags"),
    ),
    ("opt", "doctor", "__main__"),
)
DEFAULT = 2

# The package itself: it hands out what is in any layer, when it is asked for.
FACADE = "mosaic_grid"

# What a subpackage must not import beyond the layers.
FORBIDDEN: dict[str, tuple[str, ...]] = {
    "symbolic": ("mosaic_grid.errors", "jax", "jaxlib"),  # pure: no MLIR, no JAX, nothing of ours
    "errors": ("jax", "jaxlib"),
}

# The modules that import jax when they are imported: the hook lives in it.
USES_JAX = ("mosaic_grid.jax_hook",)

# What `mosaic-opt --version` must not pay for.
HEAVY_FOR_OPT = ("jax", "rich", "islpy", "libtpu")


def within(module: str, parent: str) -> bool:
    """Whether `module` is `parent` or inside it."""
    return module == parent or module.startswith(f"{parent}.")


def sources() -> dict[str, str]:
    """Every module of the package by its full name, with its source; the linked passes included."""
    files = [*PACKAGE.rglob("*.py"), *(PACKAGE / "passes").rglob("*.py")]  # rglob doesn't follow links
    names = {file: ".".join(("mosaic_grid", *file.relative_to(PACKAGE).with_suffix("").parts)) for file in files}
    return {name.removesuffix(".__init__"): file.read_text() for file, name in names.items()}


def imports(source: str, modules: frozenset[str]) -> Iterator[str]:
    """The modules that a source imports; `from a import b` is a.b where that is one of `modules`, else a."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not used here"
            assert node.module is not None
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in modules else node.module


def layer(module: str) -> int:
    """The index in LAYERS of a module of ours; the package itself, which every module may import, is at the bottom."""
    if module == FACADE:
        return 0
    name = module.removeprefix("mosaic_grid.")
    return next((i for i, names in enumerate(LAYERS) if any(within(name, known) for known in names)), DEFAULT)


def violations(modules: dict[str, str]) -> list[str]:
    """Every import that goes up or is forbidden, as a line that says which."""
    known = frozenset(modules)
    found = []
    for module, source in modules.items():
        forbidden = [bad for part, names in FORBIDDEN.items() if within(module, f"mosaic_grid.{part}") for bad in names]
        for imported in imports(source, known):
            if any(within(imported, bad) for bad in forbidden):
                found.append(f"{module} must not import {imported}")
            elif module != FACADE and within(imported, FACADE) and layer(imported) > layer(module):
                found.append(f"{module} (layer {layer(module)}) imports {imported} (layer {layer(imported)}) above it")
    return found


def test_imports_go_one_way() -> None:
    """No module imports a layer above its own, nor what its subpackage is kept free of."""
    assert violations(sources()) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("mosaic_grid.program", "import mosaic_grid.passes.resolve_grid"),
        ("mosaic_grid.program", "from mosaic_grid import passes"),
        ("mosaic_grid.dataflow.outer", "from mosaic_grid.passes import PASSES"),
        ("mosaic_grid.passes.resolve_grid", "def f():\n    from mosaic_grid.opt import main"),
        ("mosaic_grid.brand_new", "if True:\n    from mosaic_grid import opt"),
        ("mosaic_grid.symbolic.bounds", "from mosaic_grid import errors"),
        ("mosaic_grid.symbolic.bounds", "from mosaic_grid.program import Program"),
        ("mosaic_grid.symbolic.bounds", "from jaxlib.mlir import ir"),
        ("mosaic_grid.symbolic.bounds", "import jax"),
    ],
)
def test_violation_is_found(module: str, source: str) -> None:
    """The test above would notice: each of these sources breaks a rule once."""
    others = dict.fromkeys(["mosaic_grid.passes", "mosaic_grid.opt", "mosaic_grid.errors"], "")
    assert len(violations({**others, module: source})) == 1


def test_downward_imports_are_no_violation() -> None:
    """The directions that the architecture is made of are allowed."""
    allowed = {
        "mosaic_grid.symbolic.bounds": "import islpy\nfrom mosaic_grid.symbolic import contracts",
        "mosaic_grid.dataflow.outer": "from mosaic_grid.program import Program\nimport mosaic_grid.symbolic.bounds",
        "mosaic_grid.passes.resolve_grid": "from mosaic_grid.dataflow import outer",
        "mosaic_grid.opt": "from mosaic_grid.passes import PASSES\nfrom mosaic_grid import dump",
    }
    assert violations(allowed) == []


def test_sources_include_the_linked_passes() -> None:
    """The passes folder is a link, and is looked at all the same."""
    assert "mosaic_grid.passes" in sources()


def run_python(code: str) -> str:
    """What a fresh interpreter prints, with the package importable."""
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r})\n{code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def loaded(modules: list[str], unwanted: tuple[str, ...]) -> str:
    """The first of `modules` whose import loads something unwanted, with what it loads; empty if none does."""
    return run_python(
        f"import importlib\nfor name in {modules!r}:\n"
        f"    importlib.import_module(name)\n"
        f"    bad = [m for m in {unwanted!r} if m in sys.modules]\n"
        f"    if bad: print(name, 'imports', *bad); break"
    )


def test_package_itself_imports_nothing() -> None:
    """`import mosaic_grid` is free."""
    assert loaded(["mosaic_grid"], ("jax", "jaxlib", "numpy", "rich", "islpy")) == ""


def test_only_named_modules_import_jax() -> None:
    """Plain MLIR is handled without jax: no module loads it but the named ones."""
    light = sorted(name for name in sources() if not any(within(name, heavy) for heavy in USES_JAX))
    assert loaded(light, ("jax",)) == ""


def test_unwanted_import_is_noticed() -> None:
    """The probe sees what an import drags in."""
    assert loaded(["mosaic_grid.errors", "mosaic_grid.context"], ("jaxlib",)) == "mosaic_grid.context imports jaxlib"


@pytest.mark.skipif(not (PACKAGE / "opt.py").exists(), reason="the command line is not written yet")
def test_command_line_starts_light() -> None:
    """Starting mosaic-opt loads nothing that only some runs need."""
    assert loaded(["mosaic_grid.opt"], HEAVY_FOR_OPT) == ""
