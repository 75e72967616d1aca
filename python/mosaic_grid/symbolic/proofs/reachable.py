"""Whether every block may be shown by some step, told without isl: by values of all that nobody knows.

A block that is surely left unwritten is so whatever these values are. So if there are some with which it is written,
others for another block, nothing is refuted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from mosaic_grid.symbolic.arith import linear_parts
from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.facts import ends_of, leaves_of
from mosaic_grid.symbolic.nodes import Compare, Const, Linear, Param, Select, constant
from mosaic_grid.symbolic.proofs.steps import Steps
from mosaic_grid.symbolic.substitute import substitute

# what is hidden is next to one of these numbers, and what is read next to 0
_NUMBERS = (1, 1 << 10, 1 << 20)


def may_reach(steps: Steps, index: Sequence[Expr], counts: Sequence[Expr]) -> bool:
    """Whether the claim can't be refuted that some step has each index below its count; False says nothing.

    `index` is what is at the point `only`. It holds where an index is one of the grid that no other speaks of, or is
    read at run time, or 0 where the count is 1, for certain values of the rest. Each index counts in one of these ways.
    """
    facts, truths, hidden = steps.facts(), steps.truths(), steps.hidden()
    places = set(steps.points["only"])
    applied = hidden - steps.grid.opaque
    own = {i.name for i in index if isinstance(i, Param) and i.name in places}
    free = own | {read.name for i in index for read in _reads(i, applied)}
    exprs = (*facts, *truths, *index, *counts)
    others = {leaf.text for expr in exprs for leaf in leaves_of(expr)} - free
    if not others <= hidden | places:
        return False
    ends = ends_of((*steps.unknowns(), *exprs))

    def chooser(number: int) -> Callable[[Expr], Expr | None]:
        def chosen(part: Expr) -> Expr | None:
            if not isinstance(part, Param) or part.name not in others:
                return None
            return constant(0 if part.name in places else _next_to(0 if part.name in applied else number, part))

        return chosen

    return any(_reaches(facts, truths, index, counts, {**ends}, set(free), chooser(number)) for number in _NUMBERS)


def _reads(expr: Expr, applied: frozenset[str]) -> Iterator[Param]:
    """What an index may be, of what is read at run time."""
    match expr:
        case Param(name) if name in applied:
            yield expr
        case Select(_, then, other):
            yield from _reads(then, applied)
            yield from _reads(other, applied)
        case Linear(((Param() as read, 1), *_), _):
            yield from _reads(read, applied)


def _next_to(number: int, part: Param) -> int:
    """The value of an unknown that is the next one to a number, upwards if there is a choice."""
    wanted = max(part.range.lo, min(part.range.hi, number))
    return -(-wanted // part.divisor) * part.divisor if part.divisor else 0


def _reaches(
    facts: Iterable[Expr],
    truths: Iterable[Expr],
    index: Sequence[Expr],
    counts: Sequence[Expr],
    ends: dict[str, tuple[int, int]],
    free: set[str],
    chosen: Callable[[Expr], Expr | None],
) -> bool:
    """Whether the values that `chosen` gives let each index be any number below its count.

    It gives none to those that are `free`, each of which is good for one index, with a value of its range.
    """
    if any(substitute(fact, chosen) != Const(1) for fact in facts):
        return False
    for truth in truths:
        match substitute(truth, chosen):
            case Const(1):
                pass
            case Compare("<", Param(name), Const(bound)) if name in free:
                ends[name] = (ends[name][0], min(bound - 1, ends[name][1]))
            case _:
                return False
    for i, size in zip(index, counts, strict=True):
        count, (terms, offset) = substitute(size, chosen), linear_parts(substitute(i, chosen))
        if not isinstance(count, Const) or count.value < 1:
            return False
        if not terms and offset == 0 and count.value == 1:
            continue
        match terms:
            case ((Param(name) as one, 1),) if name in free and one.divisor == 1:
                free.remove(name)
                if ends[name][0] + offset > 0 or ends[name][1] + offset < count.value - 1:
                    return False
            case _:
                return False
    return True
