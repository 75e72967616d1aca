"""What libtpu's low-level dump says of the code it made: one core or all of them, and how many bundles, also of a step.

`--xla_jf_dump_to` writes a file per instruction and stage, named `TIME-INSTRUCTION-NN-STAGE.txt`. The dialect is not
open, so its text is all there is.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from mosaic_grid.llo_step import step_bundles

# Keeps the dump to the two stages that are read; a dump of all of them is 20 times as large.
STAGES = "^(original|final_bundles)$"

_FILE = re.compile(r"\d+-(?P<name>.+)-\d+-(?P<stage>original|(?:schedule-analysis_)?final_bundles)\.txt")
_ONE_CORE = re.compile(r"^\s*\$region\d+ \(PrimaryCoreRegion\):", re.MULTILINE)
_BUNDLES = re.compile(r"total scheduled bundles:\s*(\d+)")


@dataclasses.dataclass(frozen=True)
class Code:
    """Compiled code. `one_core`: it sends all cores but one away. `bundles`: None where it wasn't scheduled.

    `step` is the part of `bundles` that is one step of the grid, all of it where there is no other step.
    """

    one_core: bool
    bundles: int | None
    step: int | None = None


def read_codes(dump: Path, names: Iterable[str]) -> dict[str, Code]:
    """The code of each of these instructions that the dump has code for; equal code is there once, under one name.

    Where libtpu compiled an instruction several times (it tries again with other options when memory is short), the
    last time counts.
    """
    known = frozenset(names)
    stages: dict[str, dict[str, str]] = {}
    # The time comes first, with the same number of digits.
    for path in sorted(dump.iterdir()):
        if (match := _FILE.fullmatch(path.name)) is None:
            continue
        text = path.read_text(errors="replace")
        if name := _instruction(match["name"], text, known):
            stages.setdefault(name, {})[match["stage"]] = text
    return {name: _code(texts) for name, texts in stages.items() if "original" in texts}


def _code(texts: Mapping[str, str]) -> Code:
    """The code that these stages tell of."""
    original = texts["original"]
    bundles = _bundles(texts.get("schedule-analysis_final_bundles", ""))
    step = None if bundles is None else step_bundles(original, texts.get("final_bundles", ""), bundles)
    return Code(bool(_ONE_CORE.search(original)), bundles, step)


def _instruction(stem: str, text: str, known: frozenset[str]) -> str | None:
    """The instruction a file is about. A name too long for a file name is cut and ends in a hash: its text knows."""
    if stem in known:
        return stem
    begin = stem.rpartition("-")[0].removesuffix("-")
    if not begin:
        return None
    longer = (name for name in known if name.startswith(begin) and len(name) > len(begin))
    return next((name for name in longer if f"#{{{name}}}" in text or f"%{name} =" in text), None)


def _bundles(text: str) -> int | None:
    match = _BUNDLES.search(text)
    return int(match[1]) if match else None
