"""How many bundles one step of a kernel's grid is, from libtpu's final schedule.

Established with libtpu on kernels for v4, v5e, v5p, v6e and TPU7x: a grid of several steps is one loop, whatever its
rank and whether its bounds are static, and is never unrolled. Where the grid moves blocks it runs twice more than there
are steps: fetching, computing, and waiting for what was written are stages of a pipeline. A grid of one step has none.

In the schedule each bundle is a line, `0x13 LB: > { ... } /* End region 7 */`: its address, `LB` where a loop's body
begins, and a `>` for each loop around it. Comments say where regions begin and end, and name the counter of the grid.
Their ends tell how far a loop goes: the bundles in the delay of the branch back are run too.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence

COUNTER = "iteration index, stage"
"""What libtpu's comments call the counter of the loop over the grid's steps; no other loop has one of that name."""

_LINE = re.compile(r" *(0x[0-9a-f]+|0) +([A-Z ]*): *((?:> ?)*)")
_REGION = re.compile(r"(Start/End empty|Start|End) region (\d+)")
_BRANCH = re.compile(r"\bsbr\.rel\b[^=]* target = \$region(\d+)")


@dataclasses.dataclass
class _Bundle:
    """A bundle: whether the body of an outermost loop begins with it, and all its text."""

    begins_loop: bool
    text: str


def step_bundles(original: str, schedule: str, total: int) -> int | None:
    """The bundles of one step: those of the grid's loop, or all where there is none, since the grid has one step then.

    A bundle counts once, also in a branch that a step may skip, or in a loop within the step. `original` is the code as
    it is before it is scheduled, `total` the length of the schedule. `None` where the text isn't as it was expected.
    """
    if COUNTER not in original:
        return total
    bundles = _bundles(schedule)
    if len(bundles) != total:
        return None
    loops = [bundles[loop.start : loop.stop] for loop in _outermost_loops(bundles)]
    over_grid = [loop for loop in loops if any(COUNTER in bundle.text for bundle in loop)]
    return len(over_grid[0]) if len(over_grid) == 1 else None


def _bundles(schedule: str) -> list[_Bundle]:
    """The bundles in order, with the lines that go on with one. They are numbered from 0."""
    found: list[_Bundle] = []
    for line in schedule.splitlines():
        match = _LINE.match(line)
        if match and int(match[1], 16) == len(found):
            found.append(_Bundle("LB" in match[2] and match[3].count(">") == 1, line))
        elif found:
            found[-1].text += f"\n{line}"
    return found


def _outermost_loops(bundles: Sequence[_Bundle]) -> Iterator[range]:
    """The loops that are in no other, by the places of their bundles."""
    begin: dict[str, int] = {}
    end: dict[str, int] = {}
    for place, bundle in enumerate(bundles):
        for what, region in _REGION.findall(bundle.text):
            if what != "End":
                begin.setdefault(region, place)
            if what != "Start":
                end[region] = place
    for head in (place for place, bundle in enumerate(bundles) if bundle.begins_loop):
        back = [
            place
            for place, bundle in enumerate(bundles[head:], head)
            if any(begin.get(region) == head for region in _BRANCH.findall(bundle.text))
        ]
        if back:
            ends = (end[region] for region, place in begin.items() if head <= place <= back[-1] and region in end)
            yield range(head, max(ends, default=back[-1]) + 1)
