"""Two programs on the same inputs: where their results differ, and which step of which kernel wrote what differs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from mosaic_grid.cpu.arrays import Array
from mosaic_grid.cpu.options import Options
from mosaic_grid.errors import Place, UserError
from mosaic_grid.runner import execution
from mosaic_grid.runner.differences import Difference, Tolerance, difference
from mosaic_grid.runner.execution import Run
from mosaic_grid.runner.origin import NotKnownError
from mosaic_grid.runner.results import Result, number_of
from mosaic_grid.runner.steps import Step, last_write


@dataclasses.dataclass(frozen=True)
class Writer:
    """What wrote an element last in one of the programs, or why that is not known."""

    program: str
    step: Step | None
    reason: str = ""


@dataclasses.dataclass(frozen=True)
class Compared:
    """One result of both programs."""

    result: Result
    difference: Difference
    writers: tuple[Writer, ...] = ()


def check_alike(left: Run, right: Run) -> None:
    """Raises `UserError` for programs that don't take and return arrays of the same types."""
    for what, ours, theirs in (
        ("takes", left.executable.arguments, right.executable.arguments),
        ("returns", left.executable.results, right.executable.results),
    ):
        if [str(spec) for spec in ours] != [str(spec) for spec in theirs]:
            listed = [f"{run.opened.name} {what} {', '.join(map(str, specs)) or 'nothing'}"
                      for run, specs in ((left, ours), (right, theirs))]  # fmt: skip
            raise UserError(f"the programs can't be compared: one {what} other arrays than the other",
                            Place(right.opened.name), listed)  # fmt: skip


def compare(
    runs: Mapping[str, Run],
    results: Sequence[tuple[Result, Array]],
    inputs: Sequence[Array],
    tolerance: Tolerance,
    options: Options,
) -> list[Compared]:
    """Compares each result of the first of two programs with the array that the second returned for it.

    `runs` are both of them by the names that they are to be told apart by.
    """
    found = []
    for result, other in results:
        how = difference(result.array, other, tolerance)
        writers: tuple[Writer, ...] = ()
        if how.first is not None:
            place = (result.number, how.first)
            writers = tuple(_writer(name, run, place, inputs, options) for name, run in runs.items())
        found.append(Compared(result, how, writers))
    return found


def _writer(
    name: str, run: Run, place: tuple[int, tuple[int, ...]], inputs: Sequence[Array], options: Options
) -> Writer:
    try:
        with execution.uninterrupted():
            return Writer(name, last_write(run.opened, *place, inputs, options))
    except NotKnownError as error:
        return Writer(name, None, str(error))


def told(compared: Sequence[Compared], names: Sequence[str]) -> str:
    """What a person is told: a line for each result, and the first difference with what wrote it."""
    return "".join(f"{line}\n" for each in compared for line in _lines(each, names))


def _lines(compared: Compared, names: Sequence[str]) -> list[str]:
    result, how = compared.result, compared.difference
    title = f"{result.label}: {result.spec}"
    if how.first is None:
        within = f", within the tolerance: at most {how.absolute:.6g} apart, {how.relative:.6g} relative"
        return [f"{title}: equal{within if how.absolute or how.relative else ''}"]
    place = f"[{', '.join(map(str, how.first))}]"
    lines = [
        f"{title}: {how.count} of {how.total} elements differ",
        f"  at most {how.absolute:.6g} apart, {how.relative:.6g} relative to {names[1]}",
        f"  first at {place}: {_shown(how.left)} in {names[0]}, {_shown(how.right)} in {names[1]}",
    ]
    for writer in compared.writers:
        if writer.step:
            lines.append(f"  {writer.program}: {writer.step} wrote it last")
        else:
            lines.append(f"  {writer.program}: the grid point is not known: {writer.reason}")
    return lines


def facts(compared: Compared) -> dict[str, Any]:
    """The same for scripts."""
    how = compared.difference
    first = None
    if how.first is not None:
        first = {
            "index": list(how.first),
            "values": [number_of(how.left), number_of(how.right)],
            "written_by": [
                {"program": each.program, "kernel": each.step.kernel, "step": list(each.step.indices)}
                if each.step
                else {"program": each.program, "unknown": each.reason}
                for each in compared.writers
            ],
        }
    return {
        "result": compared.result.number,
        "differing": how.count,
        "elements": how.total,
        "max_absolute": how.absolute,
        "max_relative": how.relative,
        "first": first,
    }


def _shown(value: Any) -> str:
    number = number_of(value)
    return repr(number) if isinstance(number, float) else str(number)
