"""Putting our functions in the place of JAX's: once, when an option is first set, each module when it is loaded."""

from __future__ import annotations

import importlib
import threading
import warnings
from collections.abc import Callable
from types import ModuleType

import jax.version

from mosaic_grid.jax_hook.internals import SUPPORTED, known_release
from mosaic_grid_startup import when_loaded

_EVERY_RELEASE = (
    ("jax._src.traceback_util", "frames"),
    ("jax._src.source_info_util", "frames"),
    ("jax._src.tpu_custom_call", "launches"),
    ("jax._src.pallas.pallas_call", "pallas_calls"),
    ("jax._src.pallas.mpmd", "core_maps"),
    ("jax._src.interpreters.mlir", "lowerings"),
    ("jax._src.compiler", "rounding"),
)
PATCHES = {
    "0.12": (
        *_EVERY_RELEASE,
        ("jax._src.tpu_info", "device"),
        ("jax._src.pallas.mosaic.core", "tensor_cores"),
        ("jax._src.pallas.mosaic.pipeline", "partition"),
        ("jax._src.pallas.mosaic.pipeline", "batched_pipelines"),
    ),
    "0.10.2": (
        *_EVERY_RELEASE,
        ("jax._src.pallas.mosaic.tpu_info", "device"),
        ("jax._src.pallas.mosaic.core", "tensor_core_meshes"),
        ("jax.experimental.pallas.tpu", "tensor_core_meshes"),
        ("jax._src.pallas.mosaic.pipeline", "partition_along_axes"),
    ),
}
"""For each release the modules of JAX that are touched, each with the one of this package whose `patch` touches it."""

_lock = threading.RLock()
_done: list[bool] = []
_patched: dict[str, None] = {}


def install() -> None:
    """Replaces what the hook needs; a second call does nothing.

    A JAX whose insides aren't known is left as it is, with a warning. Raises `MovedError` where it turns out to be
    another than it says, then or when the module in question is imported.
    """
    with _lock:
        if not _done:
            _done.append(True)
            _install()


def _install() -> None:
    patches = _patches()
    if not patches:
        warnings.warn(
            f"JAX {jax.version.__version__} isn't one that mosaic-grid's hook knows ({', '.join(SUPPORTED)}): it is "
            "left as it is. mosaic-opt works on dumps of its programs all the same",
            stacklevel=2,
        )
        return
    for module, concern in patches:
        when_loaded(module, _patcher(concern))


def patch_all() -> tuple[str, ...]:
    """Installs the hook, imports every module that it touches, and returns their names. Raises `MovedError`."""
    install()
    for module, _ in _patches():
        importlib.import_module(module)
    return tuple(_patched)


def _patches() -> tuple[tuple[str, str], ...]:
    """Those for the installed JAX; none for one that isn't known."""
    return PATCHES.get(known_release() or "", ())


def _patcher(concern: str) -> Callable[[ModuleType], None]:
    def patch(module: ModuleType) -> None:
        importlib.import_module(f"mosaic_grid.jax_hook.{concern}").patch(module)
        _patched[module.__name__] = None

    return patch
