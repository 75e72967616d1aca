"""Which variants are kept for what the compiler made of them: those that gain enough, as long as the budgets last."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from mosaic_grid.variants.measure import Measured, cost_ratio


@dataclasses.dataclass(frozen=True)
class Thresholds:
    """What a variant has to gain, in percent, and what all that a run of the pass keeps may cost together.

    That is bytes of code, and seconds of compiling.
    """

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


def judged_by_schedule(pairs: Sequence[tuple[Measured, Measured]], thresholds: Thresholds) -> list[Verdict]:
    """Of originals, each with a variant of it: whether the variant is kept.

    Those are whose step, divided by the cores that share the steps, is shorter by enough (`cost_ratio`). The best come
    first, whatever kernel they are of.
    """
    gains = [_gain(original, variant) for original, variant in pairs]
    variants = [variant for _, variant in pairs]
    verdicts = [_verdict(each, gain, thresholds.min_gain) for each, gain in zip(variants, gains, strict=True)]
    code, seconds = 0, 0.0
    for number in sorted(range(len(variants)), key=lambda k: -(gains[k] or 0.0)):
        if not verdicts[number].kept:
            continue
        its_code = variants[number].code_bytes
        with_it = code + (its_code or 0), seconds + variants[number].seconds
        if thresholds.code_bytes is not None and its_code is None:
            verdicts[number] = Verdict(False, "the compiler doesn't say how much code it is, and there is a budget")
        elif thresholds.code_bytes is not None and with_it[0] > thresholds.code_bytes:
            verdicts[number] = Verdict(False, f"with it there are {with_it[0]} bytes of code, beyond the budget")
        elif thresholds.seconds is not None and with_it[1] > thresholds.seconds:
            verdicts[number] = Verdict(False, f"with it compiling takes {with_it[1]:.1f} s, beyond the budget")
        else:
            code, seconds = with_it
    return verdicts


def _gain(original: Measured, variant: Measured) -> float | None:
    """By how many percent the variant is better; `None` where that isn't known."""
    ratio = cost_ratio(variant, original)
    return None if ratio is None else 100 * (1 - ratio)


def _verdict(variant: Measured, gain: float | None, min_gain: int) -> Verdict:
    if variant.error:
        return Verdict(False, f"it doesn't compile: {variant.error}")
    if gain is None:
        return Verdict(False, "the compiler doesn't say what it gains")
    words = f"{abs(gain):.1f}% {'better' if gain >= 0 else 'worse'}"
    return Verdict(True, words) if gain >= max(min_gain, 0) else Verdict(False, f"{words}, it takes {min_gain}%")
