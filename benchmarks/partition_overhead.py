"""What sharing a grid costs: libtpu's scheduled bundles of a kernel before and after `partition-cores`, on v5p.

Bundles are VLIW instructions of the whole kernel, read from libtpu's own schedule; fewer is faster. The baseline is the
kernel as JAX lowers it, on one core; after it each core runs half of the steps.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

import real_kernels
from mosaic_grid.context import create_context, unknown_location
from mosaic_grid.libtpu import compile_program
from mosaic_grid.libtpu_report import LaunchReport
from mosaic_grid.passes.partition_cores import PartitionCores
from mosaic_grid.passes.resolve_grid import ResolveGrid
from mosaic_grid.session import Session
from mosaic_grid.targets import parse_target
from mosaic_grid.unpack import pack, unpack
from mosaic_grid.write import write_bytecode

KERNELS = {
    "copy, 8x128 blocks": real_kernels.dynamic_copy,
    "megablox gmm": real_kernels.dynamic_gmm,
    "flash attention": real_kernels.dynamic_flash_attention,
}


def partitioned(text: str) -> bytes:
    """The program after `resolve-grid,partition-cores`, as bytecode."""
    from mosaic_grid.containers.text import parse

    with create_context() as context, unknown_location():
        program = parse(text, "program.mlir", context)
        unpack(program)
        session = Session(parse_target("v5p"))
        ResolveGrid().run(program, session)
        PartitionCores().run(program, session)
        pack(program)
        return write_bytecode(program)


def launches(program: bytes) -> list[LaunchReport]:
    """What libtpu makes of the program's launches."""
    (report,) = compile_program(program, [parse_target("v5p")])
    return [launch for launch in report.launches if launch.bundles is not None]


def main() -> None:
    """Prints a row per kernel."""
    print(f"{'kernel':22}{'before':>10}{'cores':>7}{'after':>10}{'cores':>7}{'ratio':>8}")
    for name, lower in KERNELS.items():
        text = lower()
        (before,) = launches(text.encode())
        after = max(launches(partitioned(text)), key=lambda launch: launch.cores_used or 0)
        assert before.bundles
        assert after.bundles
        ratio = after.bundles / before.bundles
        row = f"{before.bundles:>10}{before.cores_used:>7}{after.bundles:>10}{after.cores_used:>7}{ratio:>8.3f}"
        print(f"{name:22}{row}", flush=True)


if __name__ == "__main__":
    main()
