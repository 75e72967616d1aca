"""The archives that are published: a wheel built from the source archive, installed in an empty environment."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import mosaic_grid

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("build", "hatchling")),
    reason="building archives needs the `dev` extra",
)


def run(*command: str | Path, cwd: Path) -> str:
    """The output of a command that must succeed."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as a release makes it: first the source archive, then the wheel from that archive alone."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    (found,) = out.glob("*.whl")
    assert list(out.glob("*.tar.gz"))
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that holds the wheel and nothing else of ours.

    Its dependencies are this environment's, by a .pth line, because installing them again would take hundreds of
    megabytes. The line makes its packages importable but not the editable install of this checkout: Python reads .pth
    files, such as the one of an editable install, in its own site-packages only.
    """
    environment = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=environment)
    python = environment / "bin" / "python"
    run(
        *(sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"),
        *("install", "--no-deps", "--no-index", wheel),
        cwd=environment,
    )
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=environment))
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return environment


def source_names() -> set[str]:
    """The files of the package in this checkout, as a wheel should name them."""
    folder = ROOT / "python" / "mosaic_grid"
    files = [*folder.rglob("*"), *(folder / "passes").rglob("*")]  # rglob doesn't follow links
    wanted = [file for file in files if file.suffix == ".py" or file.name == "py.typed"]
    wanted.append(folder.parent / "mosaic_grid_startup.py")
    return {file.relative_to(folder.parent).as_posix() for file in wanted}


def test_wheel_holds_the_whole_package_and_no_more(wheel: Path) -> None:
    """Every module is in the wheel once, the linked passes and the py.typed marker too, and nothing else is."""
    names = [name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name]
    assert len(names) == len(set(names))
    assert {name for name in names if name.endswith((".py", "py.typed"))} == source_names()
    startup = {"mosaic_grid_startup.py", "mosaic_grid_startup.pth"}
    assert {name.split("/")[0] for name in names} == {"mosaic_grid", *startup}


def test_wheel_carries_licence_and_version(wheel: Path) -> None:
    """The licence's text is inside, and the version is the package's."""
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert wheel.name == f"mosaic_grid-{mosaic_grid.__version__}-py3-none-any.whl"


def test_passes_import_from_the_installed_wheel(installed: Path, tmp_path: Path) -> None:
    """`mosaic_grid.passes` comes from the new environment, not from this checkout."""
    code = "import mosaic_grid.passes; print(mosaic_grid.passes.__file__)"
    file = Path(run(installed / "bin" / "python", "-c", code, cwd=tmp_path))
    assert file.is_relative_to(installed)
    assert file.parts[-3:] == ("mosaic_grid", "passes", "__init__.py")


@pytest.mark.skipif(
    not (ROOT / "python" / "mosaic_grid" / "opt.py").exists(), reason="the command line is not written yet"
)
def test_command_of_the_installed_wheel_runs(installed: Path, tmp_path: Path) -> None:
    """The console script is there and knows the version."""
    assert mosaic_grid.__version__ in run(installed / "bin" / "mosaic-opt", "--version", cwd=tmp_path)


def test_editable_install_sees_the_sources(tmp_path: Path) -> None:
    """An editable install adds the folder python/ to the path and copies no module, which would soon be stale."""
    code = f"import hatchling.build; print(hatchling.build.build_editable({str(tmp_path)!r}))"
    name = run(sys.executable, "-c", code, cwd=ROOT).splitlines()[-1]
    archive = zipfile.ZipFile(tmp_path / name)
    assert not [name for name in archive.namelist() if name.endswith(".py")]
    assert archive.read("_mosaic_grid.pth").decode().strip() == str(ROOT / "python")
