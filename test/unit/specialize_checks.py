"""Programs before and after `specialize-grid`, run on the same inputs: what its tests share."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal, TypeAlias

from cpu_programs import assert_same, compiled
from jaxlib.mlir import ir
from launched import Launches
from partition_checks import grids

from mosaic_grid.cpu.arrays import Array
from mosaic_grid.diagnostics import Diagnostic
from mosaic_grid.passes.specialize_grid import SpecializeGrid
from mosaic_grid.session import Session
from mosaic_grid.targets import parse_target
from mosaic_grid.unpack import unpack

Bucket: TypeAlias = Literal["exact", "round-up"]
BUCKETS: tuple[Bucket, ...] = ("exact", "round-up")


@dataclasses.dataclass(frozen=True)
class Specialized:
    """A program before and after the pass, unpacked, and what the pass said."""

    before: ir.Operation
    after: ir.Operation
    diagnostics: tuple[Diagnostic, ...]

    @property
    def grids(self) -> dict[str, str]:
        """The grids after the pass, by symbol."""
        return grids(self.after)

    def picks(self, *arguments: Array) -> str:
        """The symbol of the kernel that the program launches for these arguments."""
        return Launches(self.after)(*arguments).kernel.symbol


def specialized(
    text: str, options: SpecializeGrid, target: str = "v5p", contracts: Sequence[str] = (), cores: int | None = None
) -> Specialized:
    """A program before and after the pass, for a target, or for one with so many cores. Nothing is run.

    The context must be current.
    """
    before = ir.Operation.parse(text).operation
    unpack(before)
    after = before.clone().operation
    chip = parse_target(target)
    if cores is not None:
        chip = dataclasses.replace(chip, cores=cores)
    session = Session(chip, contracts=tuple(contracts))
    options.run(after, session)
    after.verify()
    return Specialized(before, after, tuple(session.diagnostics))


def assert_same_meaning(program: Specialized, launches: Sequence[Sequence[Array]]) -> None:
    """Both compute the same bits for the arguments of all launches."""
    original, changed = compiled(program.before), compiled(program.after)
    for arguments in launches:
        scalars = [int(argument) for argument in arguments if not argument.shape]
        assert_same(changed(*arguments), original(*arguments), f"scalars {scalars}, {program.grids}")
