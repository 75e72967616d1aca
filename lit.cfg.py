"""lit's configuration: `lit test`, `lit test/passes/resolve-grid.mlir`; see CONTRIBUTING.md for what a test may use."""

import importlib.metadata
import importlib.util
import os
import sys
from pathlib import Path

import lit.formats

root = Path(__file__).resolve().parent
bin_folder = Path(sys.executable).parent  # not resolved: a venv's python is a link, its FileCheck is beside the link

config.name = "mosaic-grid"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".py"]
config.excludes = ["unit", "Inputs", "conftest.py", "lit.cfg.py", "__init__.py"]
config.test_exec_root = str(root / ".cache" / "lit")

config.substitutions += [
    ("%mosaic-opt", str(root / "tools" / "mosaic-opt")),
    ("%mosaic-run", str(root / "tools" / "mosaic-run")),
    ("%python", sys.executable),
    # The exact exit code of a command that fails on purpose: 1 for diagnosed errors, 2 for bad input or usage.
    ("%expect-exit", f"{sys.executable} {root / 'tools' / 'expect_exit.py'}"),
    # Variables live from one LABEL to the next unless they start with $, and a prefix with no directive is an error.
    # FileCheck as a part of a path or of a longer word stays as it is.
    (r"(?<![\w/.-])FileCheck(?![\w.-])", "FileCheck -enable-var-scope --allow-unused-prefixes=false"),
]

path = os.pathsep.join([str(bin_folder), str(root / "tools"), os.environ["PATH"]])
config.environment.update(
    {
        "PATH": path,
        "PYTHON": sys.executable,
        "PYTHONPATH": str(root / "python"),
        "JAX_PLATFORMS": "cpu",
        "TPU_SKIP_MDS_QUERY": "1",  # libtpu must not ask a metadata server what machine this is
        "NO_COLOR": "1",
        "TERM": "dumb",
        "COLUMNS": "120",
        "FILECHECK_OPTS": "--dump-input-context=20",
    }
)

for tool in ("FileCheck", "split-file"):
    if not (bin_folder / tool).exists():
        lit_config.fatal(f"{tool} is not beside {sys.executable}: install the project with its `test` extra")

release = ".".join(importlib.metadata.version("jax").split(".")[:2])
config.available_features.add(f"jax-{release}")  # `UNSUPPORTED: jax-0.10`: the test is of what that JAX hasn't
if importlib.util.find_spec("libtpu"):
    config.available_features.add("libtpu")  # `REQUIRES: libtpu`: the test compiles with the real compiler
if lit_config.params.get("full"):
    config.available_features.add("full")  # `REQUIRES: full`: part of the long sweep only
