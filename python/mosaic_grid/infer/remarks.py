"""What there is to say of a plan: what it marks, and of each refusal the dimension, the memory and two steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from jaxlib.mlir import ir

from mosaic_grid.diagnostics import Diagnostic, Severity, first_place, note, place_of
from mosaic_grid.errors import Place
from mosaic_grid.grid import Dimension
from mosaic_grid.infer.plan import Plan, Refusal
from mosaic_grid.legality.handover import CARRIED
from mosaic_grid.legality.races import RACE
from mosaic_grid.legality.sharing import listed
from mosaic_grid.objections import Objection
from mosaic_grid.program import Launch

Reason: TypeAlias = tuple[str, ir.Location]

_NAMES_TOLD = 3


def remarks(plan: Plan, launches: Sequence[Launch]) -> Iterator[Diagnostic]:
    """The remarks on one kernel that was looked at."""
    kernel = plan.kernel
    if plan.axes:
        axes = axes_text(plan.axes)
        marked = f"{axes} of '{kernel.name}' {'are' if len(plan.axes) > 1 else 'is'} marked parallel"
        words = ", ".join(f'"{dimension.semantics.value}"' for dimension in plan.grid)
        comma = "," if len(plan.grid) == 1 else ""
        advice = note(f"to say so in the source: dimension_semantics=({words}{comma})")
        place = next((p for launch in launches if (p := place_of(launch.op.location))), None)
        message = f"{marked}: the steps are proved independent"
        yield _remark(plan, message, place, "marked-parallel", (advice,), axes)
    alike: dict[tuple[str, ...], list[Refusal]] = {}
    for refusal in plan.refusals:
        texts = tuple(text for text, _ in reasons(kernel.grid, refusal))
        alike.setdefault(texts, []).append(refusal)
    for refused in alike.values():
        (first, location), *others = reasons(kernel.grid, refused[0])
        axes = axes_text([refusal.axis for refusal in refused])
        stays = "stay" if len(refused) > 1 else "stays"
        message = f"{axes} of '{kernel.name}' {stays} arbitrary: {first}"
        ways = dict.fromkeys(text for refusal in refused for text in refusal.judgement.advice)
        told = [note(f"and {reason}", place_of(at)) for reason, at in others]
        notes = (*told, *(note(text) for text in ways))
        yield _remark(plan, message, place_of(location), "not-parallel", notes, axes)


def reasons(grid: Sequence[Dimension], refusal: Refusal) -> Iterator[Reason]:
    """Why a dimension is refused, each reason with two steps that it is about if it is about any."""
    for objection in refusal.judgement.objections:
        yield objection.reason + _shown(grid, refusal.axis, objection), objection.location
    for unproved in refusal.judgement.assumptions:
        why = f": {unproved.why}" if unproved.why else ""
        yield f"it isn't proved {unproved.claim}{why}", unproved.location


def nothing_done(plans: Sequence[Plan], place: Place | None) -> Diagnostic:
    """One remark for a whole program in which there was no dimension to judge."""
    kernels: dict[str, list[str]] = {}
    for plan in plans:
        kernels.setdefault(plan.left, []).append(f"'{plan.kernel.name}'")
    told = "; ".join(f"{reason} ({_several(names)})" for reason, names in kernels.items())
    message = f"infer-parallel looked at nothing: {told or 'there is no kernel to work on'}"
    return Diagnostic(Severity.REMARK, message, place, "nothing-to-mark")


def axes_text(axes: Sequence[int]) -> str:
    """`dimension 0`, `dimensions 0, 1 and 2`."""
    *before, last = map(str, axes)
    return f"dimensions {', '.join(before)} and {last}" if before else f"dimension {last}"


def _shown(grid: Sequence[Dimension], axis: int, objection: Objection) -> str:
    """The two steps, where the reason doesn't have them."""
    if objection.steps is not None:
        return ""
    if not objection.certain:
        return ""
    if objection.name == CARRIED:
        # the last step at index 0, and the first at index 1
        before = [0] * axis
        last = [f"n{k} - 1" if d.bound is None else d.bound - 1 for k, d in enumerate(grid) if k > axis]
        left, found = listed([*before, 0, *last]), listed([*before, 1, *([0] * len(last))])
        return f": step {found} finds what step {left} left"
    return f"; take {_neighbours(grid, axis)}" if objection.name == RACE else ""


def _neighbours(grid: Sequence[Dimension], axis: int) -> str:
    """The first two steps that differ in one dimension only."""
    first, second = ([index if k == axis else 0 for k in range(len(grid))] for index in (0, 1))
    return f"steps {listed(first)} and {listed(second)}"


def _remark(
    plan: Plan, message: str, place: Place | None, name: str, notes: tuple[Diagnostic, ...], about: str
) -> Diagnostic:
    at = place or first_place(plan.kernel.body)
    return Diagnostic(Severity.REMARK, message, at, name, notes, plan.kernel.name, about)


def _several(names: Sequence[str]) -> str:
    more = len(names) - _NAMES_TOLD
    return ", ".join(names[:_NAMES_TOLD]) + (f" and {more} more" if more > 0 else "")
