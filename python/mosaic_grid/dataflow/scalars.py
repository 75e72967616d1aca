"""The integer scalars of a kernel's body at one step, as expressions; what isn't known is a fresh unknown.

A scalar is evaluated when it is asked for. A walk that runs a block again forgets what it computed before, so an
unknown is the value of one execution: the same operation in two iterations of an unrolled loop gives two unknowns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.kernel_ops import scalar_type
from mosaic_grid.dataflow.listing import Computation, Listing, in_order
from mosaic_grid.ir_types import Value

GRID_INDEX = "d"
BOUND = "n"
# larger expressions say nothing and cost much
_LARGEST = 60
_ANYTHING = sym.type_range(64, True)


class Scalars:
    """Values of a body's scalars while it is walked; `bounds` are the grid's, `None` for a dynamic one.

    `listing` has the body's constants and computations, as far as it has been read.
    """

    def __init__(self, bounds: Iterable[int | None], listing: Listing) -> None:
        self._known: dict[Value, sym.Expr] = {}
        self._constants = listing.constants
        self._computations = listing.computations
        self._bounds = tuple(bounds)
        self._fresh = 0

    def of(self, value: Value) -> sym.Expr:
        """The value of a scalar that is computed from others or was given; a fresh unknown for anything else."""
        return self._known.get(value) or self._constants.get(value) or self._computed(value)

    def _computed(self, value: Value) -> sym.Expr:
        for goal in in_order(value, self._known, self._operands):
            computation = self._computations.get(goal)
            if computation is None:
                self._known[goal] = self._constants.get(goal) or self.unknown(goal.type)
            else:
                self._evaluate(computation)
        return self._known[value]

    def _operands(self, value: Value) -> tuple[Value, ...]:
        computation = self._computations.get(value)
        return computation.operands if computation else ()

    def set(self, values: Mapping[Value, sym.Expr]) -> None:
        """Gives scalars their values."""
        self._known.update(values)

    def forget(self, values: Iterable[Value]) -> None:
        """Makes values unknown, each time anew: those that an execution of an operation gives."""
        for value in values:
            self._known.pop(value, None)

    def choose(self, result: Value, condition: sym.Expr, then: Value, other: Value) -> None:
        """Gives a result one of two values."""
        expr = sym.select(condition, self.of(then), self.of(other))
        self._known[result] = expr if expr.size <= _LARGEST else self.unknown(result.type)

    def unknown(self, kind: ir.Type, values: sym.Range | None = None) -> sym.Expr:
        """A value of its own."""
        self._fresh += 1
        integer = scalar_type(kind)
        return sym.parameter(f"?{self._fresh}", values or (integer.range if integer else _ANYTHING))

    def _evaluate(self, computation: Computation) -> None:
        """Computes the scalar results of an operation without regions, whose operands are known."""
        op, rule = computation.op, computation.rule
        for result, kind in computation.results:
            expr = rule(op, kind, [self.of(operand) for operand in computation.operands]) if rule else self._special(op)
            known = expr is not None and expr.size <= _LARGEST
            self._known[result] = expr if known and expr is not None else self.unknown(result.type)

    def _special(self, op: ir.Operation) -> sym.Expr | None:
        if op.name != "tpu.iteration_bound":
            return None
        axis = ir.IntegerAttr(op.attributes["dim"]).value
        bound = self._bounds[axis]
        return sym.constant(bound) if bound is not None else sym.parameter(f"{BOUND}{axis}", sym.Range(1, 2**31 - 1))


def grid_index(axis: int, bound: int | None) -> sym.Expr:
    """The index of a grid dimension at a step; the constant 0 where there is no other."""
    last = 2**31 - 2 if bound is None else max(bound, 1) - 1
    return sym.parameter(f"{GRID_INDEX}{axis}", sym.Range(0, last))


def is_stable(expr: sym.Expr) -> bool:
    """Whether an expression has no unknown of its own but only grid indices and bounds, so that it means one thing."""
    return all(not leaf.text.startswith("?") for leaf in sym.leaves_of(expr))
