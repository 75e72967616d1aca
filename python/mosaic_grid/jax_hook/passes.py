"""What each value of `jax_mosaic_grid` does to a program in its unpacked form."""

from __future__ import annotations

import dataclasses
import hashlib
import tempfile
from pathlib import Path

from jaxlib.mlir import ir

from mosaic_grid.batching.body import NAME as NOT_BATCHED
from mosaic_grid.dataflow.control import functions_of
from mosaic_grid.dataflow.loop_bodies import loop_around, with_bodies
from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.errors import UserError
from mosaic_grid.grid import Dimension, Semantics
from mosaic_grid.jax_hook import options
from mosaic_grid.jax_hook.promises import contracts_about, unused_contracts
from mosaic_grid.jax_hook.ways import ways
from mosaic_grid.packed import is_packed
from mosaic_grid.passbase import Pass
from mosaic_grid.passes import PASSES
from mosaic_grid.passes.batch_grid import BatchGrid
from mosaic_grid.passes.check_grid import CheckGrid
from mosaic_grid.passes.partition_cores import PartitionCores
from mosaic_grid.passes.resolve_grid import ResolveGrid
from mosaic_grid.pipeline import Pipeline, parse_pipeline, run_pipeline
from mosaic_grid.program import Program
from mosaic_grid.session import Session
from mosaic_grid.targets import Target
from mosaic_grid.unpack import unpack
from mosaic_grid.write import write_bytecode

_SHARED = frozenset({"idle-cores", "dynamic-core-parallel", "core-parallel-exceeds-cores"})
"""What `partition-cores` exists to remedy: it is looked for in what comes out, everything else in what goes in."""

_LOOPS = "vmap-became-loop"
"""What `batch-grid` remedies. A loop that it leaves for batches that are too large isn't told."""

_REMEMBERED = 256
_said: dict[tuple[bytes, Target | None, tuple[str, ...], str], tuple[Diagnostic, ...]] = {}
"""What was said of programs, by a digest that their locations go into, too, and what notes advise by."""

_REPRODUCERS = Path(tempfile.gettempdir())


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What the passes said, and whether they may have changed the program."""

    said: list[Diagnostic]
    changed: bool


def run_passes(program: ir.Operation, mode: str, target: Target | None) -> Outcome:
    """Runs what `mode`, which isn't `off`, asks for on an unpacked program, in place.

    `check` and `on` report errors as they report all else. In a pipeline that the user has written, one that a pass
    reports is raised as a `UserError`. Whatever fails in a pass leaves as it does from `run_pipeline`.
    """
    unused = unused_contracts(program)
    outcome = _outcome(program, mode, target)
    return dataclasses.replace(outcome, said=[*unused, *outcome.said])


def _outcome(program: ir.Operation, mode: str, target: Target | None) -> Outcome:
    if mode == options.CHECK:
        return Outcome(_checked(program, target), changed=False)
    if mode == options.ON:
        outcome = _rewritten(program, target)
        return outcome if target is not None else _with_reason(outcome)
    session = Session(target, contracts=contracts_about(program), ways=ways())
    run_pipeline(parse_pipeline(mode, PASSES), program, session, reproducers=_REPRODUCERS)
    if is_packed(program):
        unpack(program)
    for each in session.diagnostics:
        if each.severity is Severity.ERROR:
            raise UserError(each.message, each.place, [found.message for found in each.notes])
    return Outcome(session.diagnostics, changed=True)


def _rewritten(program: ir.Operation, target: Target | None) -> Outcome:
    said, before = _checked(program, target), _grids(program)
    joined = with_bodies(Program(program), functions_of(program))  # a name of its own: its operations live as long
    in_loops = any(loop_around(launch.op) is not None for launch in joined.launches)
    if not in_loops and not any(_is_open(dimension) for _, grid in before for dimension in grid):
        return Outcome(said, changed=False)
    batch = (BatchGrid(),) if in_loops else ()
    # without knowing the chip nothing can be said of its cores: a kernel that is shared needs as many as it says
    share = (PartitionCores(),) if target is not None else ()
    more = _run((*batch, ResolveGrid(), *share), program, target)
    if _grids(program) == before:
        return Outcome(said + more, changed=False)
    gone = _SHARED if any(each.name == NOT_BATCHED for each in more) else {*_SHARED, _LOOPS}
    kept = [each for each in said if each.name not in gone]
    left = [each for each in _checked(program, target) if each.name in _SHARED]
    return Outcome(kept + more + left, changed=True)


def _with_reason(outcome: Outcome) -> Outcome:
    """The same, where nobody says which chip this is: with that as the reason why nothing is shared."""
    why = note("JAX doesn't say which chip this is for, so nothing is shared: an abstract mesh with a device says it")
    said = [
        dataclasses.replace(each, notes=(*each.notes, why)) if each.name in _SHARED else each for each in outcome.said
    ]
    return Outcome(said, outcome.changed)


def _checked(program: ir.Operation, target: Target | None) -> list[Diagnostic]:
    """What `check-grid` says; of a program that it has seen before, as of a kernel lowered again, what it said then."""
    key = hashlib.sha256(write_bytecode(program)).digest(), target, contracts_about(program), options.mode()
    found = _said.get(key)
    if found is None:
        if len(_said) >= _REMEMBERED:
            _said.clear()
        found = _said[key] = tuple(_run((CheckGrid(),), program, target))
    return list(found)


def forget() -> None:
    """Forgets what was said of programs, as if each were new."""
    _said.clear()


def _is_open(dimension: Dimension) -> bool:
    """Whether there may be something to resolve or to share: the compiler does the rest by itself."""
    return dimension.bound is None or dimension.semantics is Semantics.CORE_PARALLEL


def _grids(program: ir.Operation) -> list[tuple[str, tuple[Dimension, ...]]]:
    """Of each launch: whatever resolves or shares a grid changes it."""
    return [(launch.kernel.symbol, launch.kernel.grid) for launch in Program(program).launches]


def _run(passes: tuple[Pass, ...], program: ir.Operation, target: Target | None) -> list[Diagnostic]:
    session = Session(target, contracts=contracts_about(program), ways=ways())
    run_pipeline(Pipeline(passes), program, session, reproducers=_REPRODUCERS)
    return session.diagnostics
