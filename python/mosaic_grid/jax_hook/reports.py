"""`jax_mosaic_grid_report`: what came of each lowering, in files."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Sequence
from pathlib import Path

from jaxlib.mlir import ir

from mosaic_grid.diagnostics import Diagnostic
from mosaic_grid.errors import Place, UserError
from mosaic_grid.program import Program, symbol_of
from mosaic_grid.session import Session
from mosaic_grid.summary import ASSUMED_TARGET, render_plain, summarize
from mosaic_grid.targets import Target, parse_target
from mosaic_grid.unpack import pack, unpack
from mosaic_grid.write import write_text

_numbers = itertools.count()


def write_report(
    directory: str, before: ir.Operation, after: ir.Operation, target: Target | None, said: Sequence[Diagnostic]
) -> None:
    """Writes a new directory in `directory`, named after the program.

    `before.mlir` and `after.mlir` are what `mosaic-opt` opens, with locations; `diagnostics.txt` is everything that
    was said; `summary.txt` describes the kernels that went in. `before` is as JAX lowered it, `after` unpacked. Raises
    `UserError` where nothing can be written.
    """
    name = re.sub(r"\W+", "_", symbol_of(before) or "program")
    place = Path(directory) / f"{name}-{os.getpid()}-{next(_numbers)}"
    packed = after.clone(ip=False).operation
    pack(packed)
    unpacked = before.clone(ip=False).operation
    unpack(unpacked)
    chip = target or parse_target(ASSUMED_TARGET)
    files = {
        "before.mlir": write_text(before, debuginfo=True),
        "after.mlir": write_text(packed, debuginfo=True),
        "diagnostics.txt": "".join(f"{line}\n" for each in said for line in each.lines()),
        "summary.txt": render_plain(summarize(Program(unpacked), chip, Session(chip).selects), name),
    }
    try:
        place.mkdir(parents=True)
        for file, text in files.items():
            (place / file).write_text(text)
    except OSError as error:
        raise UserError(f"can't write a report: {(error.strerror or str(error)).lower()}", Place(str(place))) from None
