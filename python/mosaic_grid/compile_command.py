"""`--compile`: the programs of a run, through the real compiler, as lines for people or JSON for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jaxlib.mlir import ir

from mosaic_grid.command_line import Compile
from mosaic_grid.errors import Place, UserError
from mosaic_grid.libtpu import compile_program
from mosaic_grid.libtpu_report import ProgramReport, report_json, report_line
from mosaic_grid.program import custom_calls, is_kernel
from mosaic_grid.unpack import pack
from mosaic_grid.write import write_bytecode


def compile_results(programs: Sequence[tuple[str, ir.Operation]], wanted: Compile) -> tuple[str, bool]:
    """What to print, and whether everything compiles. `programs` are (name, module), packed or not.

    Raises `UserError` for a module that is no whole program: libtpu compiles launches, not kernels by themselves.
    """
    keep = Path(wanted.keep) if wanted.keep else None
    reports: list[ProgramReport] = []
    lines: list[str] = []
    for name, module in programs:
        found = compile_program(_packed(module, name), wanted.targets, keep=keep)
        reports += found
        prefix = f"{name}: " if len(programs) > 1 else ""
        lines += [prefix + report_line(launch) for report in found for launch in report.launches]
    compiled = not any(report.failed for report in reports)
    return (report_json(reports) if wanted.json else "".join(f"{line}\n" for line in lines)), compiled


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
