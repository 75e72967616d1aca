"""Programs before and after `partition-cores`, run on the same inputs: what its tests share."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import pytest
from cpu_programs import assert_same, compiled
from grid_samples import Sample
from jaxlib.mlir import ir

import mosaic_grid.legality
from mosaic_grid.cpu.arrays import Array
from mosaic_grid.cpu.options import Options
from mosaic_grid.objections import Judgement
from mosaic_grid.partition.plan import Strategy
from mosaic_grid.passes.partition_cores import PartitionCores
from mosaic_grid.program import Program
from mosaic_grid.session import Session
from mosaic_grid.unpack import unpack


def trust_every_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes every kernel for one that may be shared: the samples are, and the rewriting is tested with them."""
    monkeypatch.setattr(mosaic_grid.legality, "judge", lambda *args: Judgement((), ()))


def grids(module: ir.Operation) -> dict[str, str]:
    """The grids of the program's kernels, as text, by symbol."""
    kernels = Program(module).kernels.items()
    return {symbol: ", ".join(f"{d} {d.semantics.value}" for d in kernel.grid) for symbol, kernel in kernels}


@dataclasses.dataclass(frozen=True)
class Checked:
    """A program before and after the pass, unpacked; both did the same for all arguments."""

    before: ir.Operation
    after: ir.Operation

    @property
    def grids(self) -> dict[str, str]:
        """The grids after the pass."""
        return grids(self.after)


def partitioned(text: str, cores: int, strategy: Strategy = "auto") -> Checked:
    """A program before and after the pass, which must not have refused anything. Nothing is run."""
    before = ir.Operation.parse(text).operation
    unpack(before)
    after = before.clone().operation
    session = Session()
    PartitionCores(cores=cores, strategy=strategy).run(after, session)
    after.verify()
    refusals = [d for d in session.diagnostics if d.name == "not-partitioned"]
    assert not refusals, "\n".join(line for d in refusals for line in d.lines())
    return Checked(before, after)


def check(
    text: str, launches: Sequence[Sequence[Array]], cores: int, strategy: Strategy = "auto", seed: int = 0
) -> Checked:
    """Runs a program before and after the pass on the arguments of all launches, and compares the results.

    The context must be current.
    """
    program = partitioned(text, cores, strategy)
    original = compiled(program.before)
    expected = [original(*arguments) for arguments in launches]
    for options in (Options(), Options(interleave=seed)) if program.grids != grids(program.before) else ():
        executable = compiled(program.after, options)
        for arguments, wanted in zip(launches, expected, strict=True):
            scalars = [int(argument) for argument in arguments if not argument.shape]
            assert_same(executable(*arguments), wanted, f"scalars {scalars}, {options}, {program.grids}")
    return program


def is_partitioned(found: Mapping[str, str], cores: int) -> bool:
    """Whether some kernel was made for these cores, with a dimension for them in front."""
    made = [grid for symbol, grid in found.items() if f"_cores{cores}_" in symbol]
    assert all(grid.startswith(f"{cores} core_parallel, ") for grid in made), found
    return bool(made)


def launches_of(sample: Sample, cores: int) -> list[list[Array]]:
    """Arguments with every bound as large as it can be, then around the number of cores, odd, none and negative."""
    dynamic = [dim for dim in sample.grid if dim.dynamic]
    wanted = (0, 1, cores - 1, cores, cores + 1, 5, -1, -(2**31))
    choices = [[dim.bound, *(n for n in wanted if n <= dim.bound)] for dim in dynamic]
    rows = [list(column) for column in zip(*(choice * len(wanted) for choice in choices), strict=False)]
    mixed = [
        [choice[(k * (axis + 1)) % len(choice)] for axis, choice in enumerate(choices)] for k in range(len(wanted))
    ]
    return [sample.arguments(row, seed) for seed, row in enumerate([*rows[: len(wanted)], *mixed] if dynamic else [[]])]
