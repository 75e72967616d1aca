"""Private parts of JAX by name: each is looked up here, so that one that has moved is told in one way."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import jax.version

SUPPORTED = ("0.12", "0.10.2")
"""The releases of JAX whose insides this package knows; 0.10.2 is the last one for Python 3.11."""


class MovedError(RuntimeError):
    """JAX isn't the one that is known here: a part of it has moved or takes other arguments."""

    def __init__(self, module: ModuleType, name: str, what: str) -> None:
        super().__init__(
            f"mosaic-grid's JAX hook doesn't fit JAX {jax.version.__version__}: {module.__name__}.{name} {what}; "
            "unset JAX_MOSAIC_GRID and JAX_MOSAIC_GRID_CPU, or take another version of either"
        )


def known_release(version: str = jax.version.__version__) -> str | None:
    """Which one of those that are known a version of JAX is, the installed one if none is given."""
    parts = version.split(".")
    return next((known for known in SUPPORTED if parts[: known.count(".") + 1] == known.split(".")), None)


def internal(module: ModuleType, name: str, parameters: Sequence[str] | None = None) -> Any:
    """A private object of one of JAX's modules, and for a function the names of its parameters as they are expected.

    Raises `MovedError` where it isn't there, or takes something else.
    """
    if not hasattr(module, name):
        raise MovedError(module, name, "is gone")
    found = getattr(module, name)
    if parameters is not None:
        taken = tuple(inspect.signature(found).parameters)
        if taken[: len(parameters)] != tuple(parameters):
            raise MovedError(module, name, f"takes ({', '.join(taken)}), not ({', '.join(parameters)})")
    return found
