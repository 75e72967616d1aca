"""Which variants are worth having: by the real compiler's word where it can be asked, else by what folds away."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from mosaic_grid.diagnostics import Diagnostic, Severity, first_place, note
from mosaic_grid.libtpu import libtpu_available
from mosaic_grid.program import Kernel, Launch
from mosaic_grid.targets import Target
from mosaic_grid.variants.folds import judged_by_folds
from mosaic_grid.variants.measure import Measured, measure
from mosaic_grid.variants.plan import Plan, Variant
from mosaic_grid.variants.verdict import Thresholds, Verdict, judged_by_schedule

_HEADER = ("variant", "bundles per step", "in all", "cores", "code bytes", "seconds", "")


@dataclasses.dataclass(frozen=True)
class _Equal:
    """Launches that are one to the compiler, and what variants they are to get."""

    launch: Launch
    variants: tuple[Variant, ...]


@dataclasses.dataclass
class Judge:
    """Judges all plans of a run of the pass at once; equal launches are judged once, and told of once."""

    target: Target | None
    thresholds: Thresholds
    remarks: list[Diagnostic] = dataclasses.field(default_factory=list[Diagnostic])

    def profitable(self, plans: Sequence[Plan]) -> list[Plan]:
        """The plans with those variants only that are worth it."""
        equal: dict[tuple[str, ...], list[Plan]] = {}
        for plan in plans:
            equal.setdefault(_key(plan), []).append(plan)
        groups = [
            _Equal(group[0].launch, tuple(dict.fromkeys(variant for plan in group for variant in plan.variants)))
            for group in equal.values()
        ]
        can_compile = self.target is not None and self.target.topology and libtpu_available()
        verdicts = self._by_schedule(groups, self.target) if can_compile and self.target else self._by_folds(groups)
        known = {
            key: {variant for variant, verdict in zip(group.variants, theirs, strict=True) if verdict.kept}
            for key, group, theirs in zip(equal, groups, verdicts, strict=True)
        }
        return [_only(plan, known[_key(plan)]) for plan in plans]

    def _by_schedule(self, groups: Sequence[_Equal], target: Target) -> list[list[Verdict]]:
        measured = [measure(group.launch, [None, *group.variants], target) for group in groups]
        pairs = [(original, variant) for original, *variants in measured for variant in variants]
        each = iter(judged_by_schedule(pairs, self.thresholds))
        verdicts = [[next(each) for _ in group.variants] for group in groups]
        for group, (original, *variants), theirs in zip(groups, measured, verdicts, strict=True):
            grid = f"({', '.join(map(str, group.launch.kernel.grid))})"
            dynamic = _row(grid, original, f"it doesn't compile: {original.error}" if original.error else "")
            rows = [
                _row(name, its, str(verdict))
                for name, its, verdict in zip(_names(group), variants, theirs, strict=True)
            ]
            self._tell(group.launch.kernel, theirs, f"for {target}", _table([_HEADER, dynamic, *rows]))
        return verdicts

    def _by_folds(self, groups: Iterable[_Equal]) -> list[list[Verdict]]:
        cores = self.target.cores if self.target else 2
        verdicts: list[list[Verdict]] = []
        for group in groups:
            kernel = group.launch.kernel
            theirs = [judged_by_folds(kernel, variant, cores) for variant in group.variants]
            lines = _table([(name, str(verdict)) for name, verdict in zip(_names(group), theirs, strict=True)])
            if self.thresholds.code_bytes is not None or self.thresholds.seconds is not None:
                lines.append("no budget is kept to: only the compiler says what code and seconds variants take")
            self._tell(kernel, theirs, "by what folds away", lines)
            verdicts.append(theirs)
        return verdicts

    def _tell(self, kernel: Kernel, verdicts: Sequence[Verdict], how: str, lines: Sequence[str]) -> None:
        kept = sum(verdict.kept for verdict in verdicts)
        message = f"specialize-grid keeps {kept} of {len(verdicts)} variants of '{kernel.name}' {how}"
        notes = tuple(map(note, lines))
        place = first_place(kernel.body)
        self.remarks.append(Diagnostic(Severity.REMARK, message, place, "variants-kept", notes, kernel.name))


def _key(plan: Plan) -> tuple[str, ...]:
    """Equal for launches of one kernel on operands of the same types."""
    return plan.launch.kernel.symbol, *(str(operand.type) for operand in plan.launch.op.operands)


def _only(plan: Plan, worth: set[Variant]) -> Plan:
    kept = tuple(variant for variant in plan.variants if variant in worth)
    return Plan(plan.launch, kept, plan.complete and kept == plan.variants)


def _names(group: _Equal) -> list[str]:
    return [variant.text(group.launch.kernel.grid) for variant in group.variants]


def _row(name: str, measured: Measured, verdict: str) -> tuple[str, ...]:
    numbers = [measured.step, measured.bundles, measured.cores, measured.code_bytes]
    told = ["?" if number is None else str(number) for number in numbers]
    return (name, *told, f"{measured.seconds:.1f}", verdict)


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows as lines, numbers flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if column in (0, len(row) - 1) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            if width
        ).rstrip()
        for row in rows
    ]
