"""Which variants are worth having: by the real compiler's word where it can be asked, else by what folds away."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from jaxlib.mlir import ir

from mosaic_grid.diagnostics import Diagnostic, Severity, first_place, note
from mosaic_grid.libtpu import libtpu_available
from mosaic_grid.program import Kernel, Launch
from mosaic_grid.targets import Target
from mosaic_grid.variants.build import fold, specialize
from mosaic_grid.variants.measure import Measured, measure
from mosaic_grid.variants.plan import Plan, Variant

_HEADER = ("variant", "bundles", "cores", "code bytes", "seconds", "")


@dataclasses.dataclass(frozen=True)
class Thresholds:
    """What a variant has to gain, in percent, and what the variants of a kernel may cost in all."""

    min_gain: int
    code_bytes: int | None = None
    seconds: int | None = None


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Whether a variant is kept and why, in words."""

    kept: bool
    reason: str

    def __str__(self) -> str:
        return f"{'kept' if self.kept else 'dropped'}: {self.reason}"


@dataclasses.dataclass
class Judge:
    """Judges plans one by one; equal launches are judged once, and told of once."""

    target: Target | None
    thresholds: Thresholds
    remarks: list[Diagnostic] = dataclasses.field(default_factory=list[Diagnostic])

    def __post_init__(self) -> None:
        """Nothing is judged yet."""
        self._known: dict[tuple[str, ...], dict[Variant, Verdict]] = {}

    def profitable(self, plan: Plan) -> Plan:
        """The plan with those variants only that are worth it."""
        key = (plan.launch.kernel.symbol, *(str(operand.type) for operand in plan.launch.op.operands))
        verdicts = self._known.setdefault(key, {})
        new = [variant for variant in plan.variants if variant not in verdicts]
        if new:
            verdicts.update(self._judged(plan.launch, new))
        kept = tuple(variant for variant in plan.variants if verdicts[variant].kept)
        return Plan(plan.launch, kept, plan.complete and kept == plan.variants)

    def _judged(self, launch: Launch, variants: Sequence[Variant]) -> dict[Variant, Verdict]:
        grid = launch.kernel.grid
        names = [variant.text(grid) for variant in variants]
        if self.target is None or not self.target.topology or not libtpu_available():
            verdicts = [judged_by_folds(launch.kernel, variant, self._cores) for variant in variants]
            rows = [(name, *[""] * 4, str(verdict)) for name, verdict in zip(names, verdicts, strict=True)]
            lines = _table(rows)
            if self.thresholds.code_bytes is not None or self.thresholds.seconds is not None:
                lines.append("no budget is kept to: only the compiler says what code and seconds variants take")
            self._tell(launch.kernel, verdicts, "by what folds away", lines)
        else:
            original, *measured = measure(launch, [None, *variants], self.target)
            verdicts = judged_by_schedule(original, measured, self.thresholds)
            rows = [_row(name, each, str(v)) for name, each, v in zip(names, measured, verdicts, strict=True)]
            dynamic = _row(f"({', '.join(map(str, grid))})", original, original.error and _failure(original))
            self._tell(launch.kernel, verdicts, f"for {self.target}", _table([_HEADER, dynamic, *rows]))
        return dict(zip(variants, verdicts, strict=True))

    @property
    def _cores(self) -> int:
        return self.target.cores if self.target else 2

    def _tell(self, kernel: Kernel, verdicts: Sequence[Verdict], how: str, lines: Sequence[str]) -> None:
        kept = sum(verdict.kept for verdict in verdicts)
        message = f"specialize-grid keeps {kept} of {len(verdicts)} variants of '{kernel.name}' {how}"
        notes = tuple(map(note, lines))
        place = first_place(kernel.body)
        self.remarks.append(Diagnostic(Severity.REMARK, message, place, "variants-kept", notes, kernel.name))


def judged_by_schedule(original: Measured, variants: Sequence[Measured], thresholds: Thresholds) -> list[Verdict]:
    """Those are kept whose schedule, divided by the cores that run it, is shorter by enough; the best first, as long as
    the budgets last.
    """
    gains = [_gain(original, each) for each in variants]
    verdicts = [_verdict(each, gain, thresholds.min_gain) for each, gain in zip(variants, gains, strict=True)]
    code, seconds = 0, 0.0
    for number in sorted(range(len(variants)), key=lambda k: -(gains[k] or 0.0)):
        if not verdicts[number].kept:
            continue
        with_it = code + (variants[number].code_bytes or 0), seconds + variants[number].seconds
        if thresholds.code_bytes is not None and with_it[0] > thresholds.code_bytes:
            verdicts[number] = Verdict(False, f"with it there are {with_it[0]} bytes of code, beyond the budget")
        elif thresholds.seconds is not None and with_it[1] > thresholds.seconds:
            verdicts[number] = Verdict(False, f"with it compiling takes {with_it[1]:.1f} s, beyond the budget")
        else:
            code, seconds = with_it
    return verdicts


def _gain(original: Measured, variant: Measured) -> float | None:
    """By how many percent the variant is better; `None` where that isn't known."""
    if original.cost is None or variant.cost is None:
        return None
    return 100 * (1 - variant.cost / original.cost)


def _verdict(variant: Measured, gain: float | None, min_gain: int) -> Verdict:
    if variant.error:
        return Verdict(False, _failure(variant))
    if gain is None:
        return Verdict(False, "the compiler doesn't say what it gains")
    words = f"{abs(gain):.1f}% {'better' if gain >= 0 else 'worse'}"
    return Verdict(True, words) if gain >= max(min_gain, 0) else Verdict(False, f"{words}, it takes {min_gain}%")


def judged_by_folds(kernel: Kernel, variant: Variant, cores: int) -> Verdict:
    """The rule where no compiler can be asked.

    A variant is kept that the compiler shares between cores and the original isn't, or in which a branch or a trip
    count that is only known at run time has gone. A guard adds a branch.
    """
    grid = variant.grid(kernel.grid)
    shared = [
        next((k for k, d in enumerate(g) if d.is_parallel and (d.bound or 0) > 1), None) for g in (kernel.grid, grid)
    ]
    if cores > 1 and shared[0] is None and shared[1] is not None:
        return Verdict(True, f"the compiler shares dimension {shared[1]}")
    before, after = (_undecided(kernel, each) for each in (None, variant))
    if after < before:
        return Verdict(True, f"{before - after} of {before} branches and loops are decided")
    return Verdict(False, "nothing folds away, and no core is gained")


def _undecided(kernel: Kernel, variant: Variant | None) -> int:
    """How many branches and trip counts are left to the run once all that is constant is worked out."""
    clone = kernel.module.clone(ip=False).operation
    if variant is None:
        fold(clone)
    else:
        specialize(clone, variant)
    count = 0

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal count
        bounds = op.operands[:3] if op.name == "scf.for" else ()
        static = all(isinstance(each, ir.OpResult) and each.owner.name == "arith.constant" for each in bounds)
        count += op.name == "scf.if" or not static
        return ir.WalkResult.ADVANCE

    clone.walk(visit)
    return count


def _failure(measured: Measured) -> str:
    return f"it doesn't compile: {measured.error}"


def _row(name: str, measured: Measured, verdict: str) -> tuple[str, ...]:
    numbers = [measured.bundles, measured.cores, measured.code_bytes]
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
