"""The options of `mosaic_grid.run`, checked as the command line's are: a wrong one never counts as another."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from mosaic_grid.cpu.options import Options
from mosaic_grid.errors import UserError
from mosaic_grid.targets import parse_target

_CHOICES = {"uninitialized": ("nan", "zero"), "dma": ("early", "late"), "precision": ("f32", "bf16")}


def check_options(options: Options) -> None:
    """Raises `UserError` for a value that its option doesn't have."""
    for name, choices in _CHOICES.items():
        _one_of(name, getattr(options, name), choices)
    seed = options.interleave
    if seed is not None and not _is_count(seed):
        raise UserError(f"cores_interleaved: expects None or an integer >= 0, got {seed!r}")


def check_passes(passes: object, target: object) -> None:
    """Raises `UserError` for passes or a target that aren't text, and for a target that nobody knows."""
    if not isinstance(passes, str):
        raise UserError(f"passes: expects text as in mosaic-opt -p, got {_short(passes)}",
                        notes=["several are parted by commas: passes='resolve-grid,partition-cores'"])  # fmt: skip
    if target is not None:
        if not isinstance(target, str):
            raise UserError(f"target: expects None or the name of a chip, 'v5p', got {_short(target)}")
        parse_target(target)


def check_flag(name: str, value: object) -> None:
    """Raises `UserError` for what is neither true nor false: text, which always counts as true, above all."""
    if not isinstance(value, bool):
        raise UserError(f"{name}: expects True or False, got {_short(value)}")


def _one_of(name: str, value: object, choices: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in choices:
        raise UserError(f"{name}: expects {' or '.join(map(repr, choices))}, got {_short(value)}")


def _is_count(value: object) -> bool:
    try:
        return not isinstance(value, bool) and operator.index(value) >= 0  # type: ignore[arg-type]
    except TypeError:
        return False


def _short(value: object) -> str:
    return repr(value)[:40]
