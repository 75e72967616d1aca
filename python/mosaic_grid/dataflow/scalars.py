"""The integer scalars of a kernel's body at one step, as expressions; what isn't known is a fresh unknown.

A scalar is evaluated when it is asked for. A walk that runs a block again forgets what it computed before, so an
unknown is the value of one execution: the same operation in two iterations of an unrolled loop gives two unknowns.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.definitions import Computation, Definition
from mosaic_grid.dataflow.kernel_ops import scalar_type
from mosaic_grid.dataflow.listing import Listing, in_order
from mosaic_grid.ir_types import Value

GRID_INDEX = "d"
BOUND = "n"
# larger expressions say nothing and cost much
_LARGEST = 60
_ANYTHING = sym.type_range(64, True)


class Scalars:
    """Values of a body's scalars while it is walked; `bounds` are the grid's, `None` for a dynamic one.

    `listing` has the body's constants and computations.
    """

    def __init__(self, bounds: Iterable[int | None], listing: Listing) -> None:
        self._known: dict[Value, sym.Expr] = {}
        self._definition = listing.definition
        self._computed_in: dict[ir.Block, list[Value]] = {}
        self._bounds = tuple(bounds)
        self._fresh = 0
        self.evaluated = 0

    def of(self, value: Value) -> sym.Expr:
        """The value of a scalar that is computed from others or was given; a fresh unknown for anything else."""
        known = self._known.get(value)
        return self._computed(value) if known is None else known

    def _computed(self, value: Value) -> sym.Expr:
        known = self._known
        definition = self._definition(value)
        if isinstance(definition, Computation):
            if all(operand in known for operand in definition.operands):
                self._evaluate(definition)
            else:
                for goal in in_order(value, known, self._operands):
                    self._know(goal, self._definition(goal))
        else:
            self._know(value, definition)
        return known[value]

    def _know(self, value: Value, definition: Definition) -> None:
        if isinstance(definition, Computation):
            self._evaluate(definition)
        else:
            self._known[value] = self.unknown(value.type) if definition is None else definition

    def _operands(self, value: Value) -> tuple[Value, ...]:
        definition = self._definition(value)
        return definition.operands if isinstance(definition, Computation) else ()

    def set(self, values: Mapping[Value, sym.Expr]) -> None:
        """Gives scalars their values."""
        self._known.update(values)

    def forget(self, values: Iterable[Value]) -> None:
        """Makes values unknown, each time anew: those that an execution of an operation gives."""
        for value in values:
            self._known.pop(value, None)

    def forget_block(self, block: ir.Block) -> None:
        """Makes what was computed of a block's operations unknown, for it runs again."""
        self.forget(self._computed_in.pop(block, ()))

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
        known = self._known
        given = [each if isinstance(each, sym.Expr) else known[each] for each in computation.arguments]
        self.evaluated += len(computation.results)
        again = self._computed_in.setdefault(computation.block, [])
        for result, kind in computation.results:
            expr = rule(op, kind, given) if rule else self._special(op)
            known[result] = expr if expr is not None and expr.size <= _LARGEST else self.unknown(result.type)
            again.append(result)

    def _special(self, op: ir.Operation) -> sym.Expr | None:
        if op.name != "tpu.iteration_bound":
            return None
        axis = ir.IntegerAttr(op.attributes["dim"]).value
        bound = self._bounds[axis]
        return sym.constant(bound) if bound is not None else sym.parameter(f"{BOUND}{axis}", sym.Range(1, 2**31 - 1))


@functools.lru_cache(maxsize=256)
def grid_index(axis: int, bound: int | None) -> sym.Expr:
    """The index of a grid dimension at a step; the constant 0 where there is no other."""
    last = 2**31 - 2 if bound is None else max(bound, 1) - 1
    return sym.parameter(f"{GRID_INDEX}{axis}", sym.Range(0, last))


def is_stable(expr: sym.Expr) -> bool:
    """Whether an expression has no unknown of its own but only grid indices and bounds, so that it means one thing."""
    return all(not leaf.text.startswith("?") for leaf in sym.leaves_of(expr))
