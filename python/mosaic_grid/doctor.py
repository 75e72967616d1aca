"""`python -m mosaic_grid.doctor`: what there is for `JAX_MOSAIC_GRID` to work with, and what it does here."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Iterator

import mosaic_grid

PACKAGES = ("jax", "jaxlib", "libtpu", "islpy")
OPTIONS = ("jax_mosaic_grid", "jax_mosaic_grid_cpu", "jax_mosaic_grid_contracts", "jax_mosaic_grid_report")


def main() -> int:
    """Prints a line for each finding; 1 if the hook doesn't work here, else 0."""
    healthy = True
    for good, line in findings():
        healthy = healthy and good
        print(f"{'ok  ' if good else 'FAIL'}  {line}")
    return 0 if healthy else 1


def findings() -> Iterator[tuple[bool, str]]:
    """Whether something is as it should be, and what it is."""
    started = "mosaic_grid_startup" in sys.modules
    yield True, f"mosaic-grid {mosaic_grid.__version__}, Python {sys.version.split()[0]}"
    for package in PACKAGES:
        version = _version(package)
        if package == "libtpu":  # without it programs are lowered, but nothing here compiles them for a TPU
            yield True, f"libtpu {version}" if version else "libtpu isn't installed: nothing can be compiled for a TPU"
        else:
            yield bool(version), f"{package} {version}" if version else f"{package} isn't installed"
    yield (
        started,
        (
            "the start-up file was read: scripts need no change"
            if started
            else "the start-up file wasn't read: install the package, or import mosaic_grid_startup in your script"
        ),
    )
    if importlib.util.find_spec("jax"):
        yield from _hook_findings()


def _hook_findings() -> Iterator[tuple[bool, str]]:
    import mosaic_grid_startup  # noqa: F401

    try:
        import jax
    except ValueError as error:  # an option that the environment sets to what it can't be
        yield False, str(error).replace("\n", "; ")
        return
    from mosaic_grid.jax_hook import install
    from mosaic_grid.jax_hook.internals import SUPPORTED, MovedError, known_release

    supported = known_release() is not None
    yield (
        supported,
        f"JAX {jax.__version__} is {'' if supported else 'not '}one that the hook knows ({', '.join(SUPPORTED)})",
    )
    for option in OPTIONS:
        yield (
            True,
            f"{option} = {getattr(jax.config, option)!r}"
            + (" (from the environment)" * (option.upper() in os.environ)),
        )
    if not supported:
        return
    try:
        patched = install.patch_all()
    except MovedError as error:
        yield False, str(error)
        return
    yield True, f"what the hook replaces is in its place: {', '.join(patched)}"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


if __name__ == "__main__":
    sys.exit(main())
