"""Which bounds variants are asked for, as the options of `specialize-grid` say it. Pure: no MLIR."""

from __future__ import annotations

import dataclasses
import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mosaic_grid.errors import Place, UserError
from mosaic_grid.grid import I32_MAX

MOST_VALUES = 1024
"""How many values a range may hold: far more than there can be variants."""

_ELEMENT = re.compile(r"(?:(?:(?P<kernels>[^:=]+):)?(?P<key>[^:=]+)=)?(?P<low>-?[0-9]+)(?:\.\.(?P<high>-?[0-9]+))?")
_KEYED = re.compile(r"[^=]*=")


@dataclasses.dataclass(frozen=True)
class Wish:
    """Values of one bound.

    `key` says which: the number of a dimension, the name of an argument that bounds are computed from, or nothing for
    each dynamic bound. `kernels` is a glob pattern of kernel names.
    """

    values: tuple[int, ...]
    key: str = ""
    kernels: str = "*"

    @property
    def dimension(self) -> int | None:
        """The dimension, where the key is the number of one."""
        return int(self.key) if self.key.isascii() and self.key.isdigit() else None

    def concerns(self, kernel: str) -> bool:
        """Whether it is about the kernel of this name."""
        return fnmatch.fnmatchcase(kernel, self.kernels)

    def __str__(self) -> str:
        """How it is written, without the values."""
        return f"{self.kernels}:{self.key}" if self.kernels != "*" else self.key


@dataclasses.dataclass(frozen=True)
class Ladder:
    """Bounds up to the largest that is proved: powers of two, or multiples of `step` where there is one.

    `automatic` takes every value of a range with no more of them than the budget, and powers of two of a longer one.
    """

    step: int | None = None
    automatic: bool = False

    def rungs(self, least: int, most: int) -> list[int]:
        """The rungs that lie in [least, most]. The first one may be the end of a bucket, and so may `most`."""
        if self.step is not None:
            return list(range(-(-max(least, 1) // self.step) * self.step, most + 1, self.step))
        return [1 << power for power in range(most.bit_length()) if least <= 1 << power <= most]


def parse_wishes(elements: Iterable[str]) -> tuple[Wish, ...]:
    """Reads `8,16`, `0=8,16,1=1..4`, `n=1024` and `gmm:0=8`: an element without a key is of the key before it.

    Raises `ValueError` where an element is none of that, and for a range that is empty or too long.
    """
    found: dict[tuple[str, str], list[int]] = {}
    at = ("*", "")
    for element in elements:
        match = _ELEMENT.fullmatch(element.strip())
        if match is None:
            raise ValueError(f"'{element}' is no value of a bound: it is 8, 1..4, DIMENSION=8, NAME=8 or KERNEL:NAME=8")
        if _KEYED.match(element):
            at = (match["kernels"] or "*", match["key"])
        low = int(match["low"])
        high = int(match["high"] or low)
        if not low <= high < low + MOST_VALUES:
            raise ValueError(f"the range '{element}' has to have 1 to {MOST_VALUES} values")
        if high > I32_MAX:
            raise ValueError(f"a bound can't be {high}: bounds have 32 bits")
        found.setdefault(at, []).extend(range(low, high + 1))
    return tuple(Wish(tuple(dict.fromkeys(values)), key, kernels) for (kernels, key), values in found.items())


def parse_ladder(text: str) -> Ladder | None:
    """Reads `pow2`, `multiples-of:8` and `auto`; nothing is no ladder. Raises `ValueError` for anything else."""
    if not text:
        return None
    if text in ("pow2", "auto"):
        return Ladder(automatic=text == "auto")
    match = re.fullmatch(r"multiples-of:([0-9]+)", text)
    if match is None or not 1 <= int(match[1]) <= I32_MAX:
        raise ValueError(f"option 'ladder' expects pow2, auto or multiples-of:NUMBER, got '{text}'")
    return Ladder(int(match[1]))


def wishes_of(elements: Sequence[str]) -> tuple[Wish, ...]:
    """The wishes with those of each `@FILE` put in. Raises `UserError` for a file that can't be read."""
    written = [element for element in elements if not element.startswith("@")]
    found = list(parse_wishes(written))
    for element in elements:
        if element.startswith("@"):
            found += _read(element[1:])
    joined: dict[tuple[str, str], list[int]] = {}
    for wish in found:
        joined.setdefault((wish.kernels, wish.key), []).extend(wish.values)
    return tuple(Wish(tuple(dict.fromkeys(values)), key, kernels) for (kernels, key), values in joined.items())


def _read(path: str) -> Iterator[Wish]:
    """The wishes in a file: a line holds what `values=` takes, and a `#` starts a comment."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise UserError(f"can't read the values of bounds: {reason.lower()}", Place(path)) from None
    for number, line in enumerate(lines, start=1):
        elements = [part for part in re.split(r"[,\s]+", line.partition("#")[0]) if part]
        try:
            yield from parse_wishes(elements)
        except ValueError as refusal:
            raise UserError(str(refusal), Place(path, number)) from None
