"""Whether what a load gives matters: who uses it, and under which choice."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jaxlib.mlir import ir

from mosaic_grid.dataflow.effects import Effect, effect_of
from mosaic_grid.dataflow.kernel_ops import scalar_type
from mosaic_grid.ir_types import Value

Known = Callable[[Value], int | None]
"""The value of a scalar where it is known."""

SELECT = "arith.select"
# a chain of more users than this is neither a dead load's nor a simple counter's
_FEW_USERS = 24


def is_dead(op: ir.Operation, known: Known) -> bool:
    """Whether nothing uses what an operation that only reads or computes gives.

    JAX emits a load of the old contents before every store, and nothing uses it. A selection by a known scalar doesn't
    use what it doesn't take; this must be asked where the block of `op` has been walked, for only selections in that
    block are looked at.
    """
    waiting = list(op.results)
    for seen, value in enumerate(waiting):
        for use in value.uses:
            user = use.owner.operation
            if user.name == SELECT and _ignores(user, use.operand_number, op, known):
                continue
            if effect_of(user) is not Effect.PURE or seen > _FEW_USERS:
                return False
            waiting.extend(user.results)
    return True


class Uses:
    """Who uses what, found out once for all walks over a body."""

    def __init__(self) -> None:
        self._used: dict[Value, bool] = {}

    def is_dead_whatever(self, op: ir.Operation) -> bool | None:
        """As `is_dead`, whatever is known; None where that is up to a selection."""
        # whether a plain chain of users comes to an effect: nothing that is known of a selection changes that
        if len(op.results) and self._is_used(op):
            return False
        waiting = list(op.results)
        chosen = False
        for seen, value in enumerate(waiting):
            for use in value.uses:
                user = use.owner.operation
                chosen = chosen or user.name == SELECT
                if effect_of(user) is not Effect.PURE or seen > _FEW_USERS:
                    return None if chosen else False
                waiting.extend(user.results)
        return True

    def _is_used(self, op: ir.Operation) -> bool:
        """Whether something that isn't pure uses what an operation gives, or what others make of it.

        Selections that a scalar's value may settle are not followed.
        """
        used, first = self._used, op.results[0]
        if first in used:
            return used[first]
        used[first] = False
        waiting = [(first, _uses_of(op))]
        while waiting:
            use = next(waiting[-1][1], None)
            if use is None:
                waiting.pop()
                continue
            user = use.owner.operation
            if user.name == SELECT and _may_ignore(user, use.operand_number):
                continue
            pure = effect_of(user) is Effect.PURE
            first = user.results[0] if pure and len(user.results) else None
            if not pure or (first is not None and used.get(first)):
                used.update((above, True) for above, _ in waiting)
                return True
            if first is not None and first not in used:
                used[first] = False
                waiting.append((first, _uses_of(user)))
        return False


def _uses_of(op: ir.Operation) -> Iterator[ir.OpOperand]:
    return (use for result in op.results for use in result.uses)


def may_be_chosen_away(op: ir.Operation) -> bool:
    """Whether a selection may drop what an operation gives; True where there are too many users to look at."""
    waiting = list(op.results)
    for seen, value in enumerate(waiting):
        for use in value.uses:
            user = use.owner.operation
            if user.name == SELECT or seen > _FEW_USERS:
                return True
            if effect_of(user) is Effect.PURE:
                waiting.extend(user.results)
    return False


def _ignores(select: ir.Operation, operand: int, op: ir.Operation, known: Known) -> bool:
    """Whether a selection in the block of `op` surely takes its other operand."""
    if operand == 0 or select.block != op.block:
        return False
    condition = next((value for value in map(known, _scalars_behind(select.operands[0])) if value is not None), None)
    return condition is not None and operand == (2 if condition else 1)


def _may_ignore(select: ir.Operation, operand: int) -> bool:
    """Whether the condition of a selection, if known, may show that it doesn't take an operand."""
    return operand > 0 and any(scalar_type(value.type) is not None for value in _scalars_behind(select.operands[0]))


def _scalars_behind(condition: Value) -> Iterator[Value]:
    """The scalar that a condition is, or is a broadcast of."""
    yield condition
    if isinstance(condition, ir.OpResult) and condition.owner.name == "vector.broadcast":
        yield condition.owner.operands[0]
