"""Our functions aren't the user's: JAX leaves them out of the locations of what it lowers, and of its tracebacks."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from mosaic_grid.jax_hook.internals import internal


def patch(module: ModuleType) -> None:
    """Of both modules that keep a list of such files."""
    internal(module, "register_exclusion", ("path",))(str(Path(__file__).parent))
