"""`--compile`: a program through the real compiler, as lines for people or JSON for scripts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxlib.mlir import ir

from mosaic_grid.command_line import Compile
from mosaic_grid.errors import Place, UserError
from mosaic_grid.libtpu import compile_program
from mosaic_grid.libtpu_report import ProgramReport, report_json, report_line
from mosaic_grid.program import custom_calls, is_kernel
from mosaic_grid.unpack import pack
from mosaic_grid.write import write_bytecode

Compiled = tuple[str, Sequence[ProgramReport]]
"""A program's name and what became of it, target by target."""


def compile_module(name: str, module: ir.Operation, wanted: Compile, index: int = 0) -> Compiled:
    """Compiles one program, packed or not; `index` counts the programs of a run, whose dumps are kept apart.

    Raises `UserError` for a module that is no whole program: libtpu compiles launches, not kernels by themselves.
    """
    keep = None if wanted.keep is None else Path(wanted.keep, *([str(index)] if index else []))
    try:
        return name, compile_program(_packed(module, name), wanted.targets, keep=keep)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UserError(f"can't compile: {reason}", Place(error.filename or wanted.keep or name)) from None


def answer_of(compiled: Sequence[Compiled], wanted: Compile) -> str:
    """What to print: a line a launch, with the program's name where there are several; or one JSON document.

    In JSON each program has its `input` beside what `libtpu_report.report_json` says.
    """
    if wanted.json:
        return _json(compiled)
    named = len(compiled) > 1
    return "".join(
        f"{name}: {report_line(launch)}\n" if named else f"{report_line(launch)}\n"
        for name, reports in compiled
        for report in reports
        for launch in report.launches
    )


def _json(compiled: Sequence[Compiled]) -> str:
    document: dict[str, Any] = json.loads(report_json(report for _, reports in compiled for report in reports))
    names = [name for name, reports in compiled for _ in reports]
    programs = [{"input": name, **program} for name, program in zip(names, document["programs"], strict=True)]
    return json.dumps({**document, "programs": programs}, indent=2, ensure_ascii=False) + "\n"


def _packed(module: ir.Operation, name: str) -> bytes:
    if is_kernel(module) or not custom_calls(module):
        raise UserError(
            "there is no launch to compile: libtpu takes whole programs",
            Place(name),
            ["dump the StableHLO around the kernel: jax.jit(f).lower(...).as_text()"],
        )
    clone = module.clone(ip=False).operation
    pack(clone)
    return write_bytecode(clone)
