"""`grid-overflow`: more steps than 32 bits count.

Established with libtpu 0.0.50: it fails on static bounds whose product is 2**31 - 1 or more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mosaic_grid.checks.subject import Subject
from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.grid import I32_MAX, is_placeholder

NAME = "grid-overflow"
_ADVICE = "use larger blocks, or loop in the kernel over a part of what the grid counts"


def grid_overflow(subject: Subject) -> Iterator[Diagnostic]:
    """Bounds that are too large each, or else together."""
    bounds = [d.bound for d in subject.kernel.grid if d.bound is not None and not is_placeholder(d.bound)]
    large = [(axis, d.bound) for axis, d in enumerate(subject.kernel.grid) if d.bound is not None and d.bound > I32_MAX]
    for axis, bound in large:
        message = f"grid dimension {axis} has bound {bound}, and a grid index is an i32: it ends at {I32_MAX}"
        yield subject.say(NAME, Severity.ERROR, message, f"dimension {axis}", notes=[note(_ADVICE)])
    total = math.prod(bounds)
    if not large and total >= I32_MAX:
        product = " * ".join(map(str, bounds))
        message = f"the static bounds of the grid give {product} = {total} steps, and libtpu takes less than {I32_MAX}"
        yield subject.say(NAME, Severity.ERROR, message, "grid", notes=[note(_ADVICE)])
