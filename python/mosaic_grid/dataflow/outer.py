"""The integer scalars of the outer StableHLO program as expressions of its arguments.

A value is evaluated through the operations that compute it, into the private functions it is returned from and out to
the calls it is an argument of. An operation without a rule gives an unknown that carries its place, never an error.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow import elementwise, structural
from mosaic_grid.dataflow.control import PASSING, Function, defining, functions_of, passed_on, runs_always
from mosaic_grid.dataflow.prefix_sums import prefix_sums
from mosaic_grid.dataflow.promises import arguments_of, named_inputs, promises_of
from mosaic_grid.dataflow.reductions import reduce
from mosaic_grid.dataflow.tensors import (
    FEW,
    LIMIT,
    Each,
    Elements,
    IntType,
    Tensor,
    Uniform,
    collect,
    extent,
    int_type,
    is_constant,
    shape_of,
    spread,
)
from mosaic_grid.dataflow.unknowns import Unknowns, name_of
from mosaic_grid.ir_types import Argument, Value

# the most steps spent inside entered calls on all questions together, and as many more for each call of the program:
# beyond, a value in a call is an unknown, so that calls within calls within calls stay linear
_BUDGET = 20_000
_BUDGET_OF_A_CALL = 100
# an expression of more nodes than this is of no use to a person and is replaced by an unknown with its facts
_LARGEST = 100


@dataclasses.dataclass(frozen=True, eq=False)
class _Frame:
    """One call that has been entered, from within `parent`; `None` is a function whose caller hasn't been chosen."""

    call: ir.Operation
    function: Function
    parent: _Frame | None

    def enters(self, function: Function) -> bool:
        """Whether `function` has been entered here or further out."""
        return self.function is function or (self.parent is not None and self.parent.enters(function))


_Key: TypeAlias = tuple[Value, _Frame | None]
# what has to be evaluated first, and what to make of it: the value or another plan
_Combine: TypeAlias = Callable[[Sequence[Tensor]], "Tensor | _Plan | None"]
_Plan: TypeAlias = tuple[list[_Key], _Combine]
# a result of a function and the arguments it was called with
_Call: TypeAlias = tuple[Value, tuple[Tensor, ...]]


class OuterScalars:
    """What is known of the scalars of one unpacked program, for as long as the program isn't changed.

    `functions` are its own, by symbol, `inputs` the integer arguments of the public ones, by name, and `contracts` are
    promises about these. Raises `UserError` for contracts that no inputs keep, or that aren't about them.
    """

    def __init__(self, program: ir.Operation, contracts: Sequence[str] = ()) -> None:
        self.functions = functions_of(program)
        self._by_body = {function.op: function for function in self.functions.values()}
        self._unknowns = Unknowns()
        self._known: dict[_Key, Tensor | None] = {}
        self._kinds: dict[ir.Type, IntType | None] = {}
        self._frames: dict[tuple[ir.Operation, _Frame | None], _Frame] = {}
        self._results: dict[_Call, Tensor] = {}
        self._budget = _BUDGET + _BUDGET_OF_A_CALL * sum(len(f.calls) for f in self.functions.values())
        arguments = arguments_of(self.functions.values(), self._unknowns)
        self.inputs = named_inputs(arguments)
        self._named = frozenset(known.name for known in self.inputs.values())
        self.promises = promises_of(contracts, self.inputs)
        self._known.update(((a.value, None), self.promises.narrowed(a.tensor)) for a in arguments)

    def range_of(self, expr: sym.Expr) -> sym.Range:
        """A range that holds every value; where there are contracts, all that they say together."""
        if not self.promises.contracts:
            return sym.range_of(expr)
        from mosaic_grid.symbolic.proofs import extent  # isl is loaded only where there is a contract

        known = extent(expr, self.promises.contracts)
        return sym.range_of(expr) if isinstance(known, sym.Unknown) else known

    def tensor(self, value: Value) -> Tensor | None:
        """What is known of an integer tensor; `None` for another type."""
        return self._evaluate((value.maybe_downcast(), None))

    def evaluate(self, value: Value) -> sym.Expr:
        """The value of an integer tensor with one element. Raises `ValueError` for another type."""
        exprs = self.elements(value)
        if exprs is None or len(exprs) != 1:
            raise ValueError(f"expected an integer scalar, got {value.type}")
        return exprs[0]

    def runs_always(self, op: ir.Operation) -> bool:
        """Whether an operation runs whenever the program does."""
        return runs_always(op, self._by_body)

    def elements(self, value: Value) -> tuple[sym.Expr, ...] | None:
        """The elements of an integer tensor in row-major order; `None` for another type or more than 4096 elements."""
        tensor = self.tensor(value)
        return None if tensor is None else spread(tensor, shape_of(value.type))

    def _evaluate(self, goal: _Key) -> Tensor | None:
        """Depth first with a stack of its own: a chain of ten thousand additions is no recursion.

        No value is planned twice, whatever is asked: what the budget cuts off stays unknown, and what was computed
        from it is kept.
        """
        stack, plans = [goal], dict[_Key, _Plan]()
        while stack:
            key = stack[-1]
            if key in self._known:
                stack.pop()
                continue
            if key in plans:
                sources, combine = plans.pop(key)
                outcome = self._outcome(sources, combine)
                if not isinstance(outcome, tuple):
                    self._known[key] = self._finished(key, outcome)
                    continue
                plans[key] = outcome
            elif key[1] is not None and self._budget == 0:
                self._known[key] = self._unknowns.of(key[0])
                continue
            else:
                self._budget -= key[1] is not None
                plans[key] = self._plan(*key)
            # one that is being planned already is a recursion, which `_outcome` sees
            stack += [source for source in plans[key][0] if source not in self._known and source not in plans]
        return self._known[goal]

    def _outcome(self, sources: list[_Key], combine: _Combine) -> Tensor | _Plan | None:
        tensors = [self._known.get(source) for source in sources]
        known = [t for t in tensors if t is not None]
        return combine(known) if len(known) == len(tensors) else None

    def _finished(self, key: _Key, result: Tensor | None) -> Tensor | None:
        if result is None:
            return self._unknowns.of(key[0])
        if isinstance(result, Uniform | Each) and result.expr.size > _LARGEST:
            return self._unknowns.of(key[0], "", *extent([result]))
        return result

    def _kind(self, value: Value) -> IntType | None:
        """The integer type of its elements; asking the type itself takes long."""
        type = value.type
        if type not in self._kinds:
            self._kinds[type] = int_type(type)
        return self._kinds[type]

    def _plan(self, value: Value, frame: _Frame | None) -> _Plan:
        """How to get at a value. Nothing is asked of values that aren't integers: they are unknown at once."""
        if self._kind(value) is None:
            return [], _nothing
        if isinstance(value, ir.BlockArgument):
            source = passed_on(value)
            return self._argument(value, frame) if source is None else ([(source, frame)], _first)
        op, k = defining(value)
        if op.name in PASSING and (source := passed_on(value)) is not None:
            return [(source, frame)], _first
        match op.name:
            case "func.call":
                return self._call(op, k, frame)
            case "stablehlo.case" | "stablehlo.if":
                results = [region.blocks[0].operations[-1].operation.operands[k] for region in op.regions]
                return [(v, frame) for v in (op.operands[0], *results)], lambda ts: self._branch(value, ts)
            case "stablehlo.reduce":
                return self._operands(op, frame), lambda ts: reduce(op, ts, self._unknowns, self._named, self.range_of)
            case "stablehlo.reduce_window":
                return self._operands(op, frame), lambda ts: prefix_sums(
                    op, ts, self._unknowns, self._named, self.range_of
                )
            case "stablehlo.sort":
                return [(op.operands[k], frame)], lambda ts: self._picked(value, ts)
            case "stablehlo.get_dimension_size":
                return [], lambda _: structural.SIZES[op.name](op, ()) or self._dimension_size(value)
        if (rule := elementwise.rule_of(op)) is not None:
            return self._operands(op, frame), lambda ts: self._elementwise(value, rule, ts)
        if op.name in structural.RULES or op.name in structural.PICKS:
            return self._operands(op, frame), lambda ts: self._structural(value, ts)
        return [], _nothing

    def _operands(self, op: ir.Operation, frame: _Frame | None) -> list[_Key]:
        return [(operand, frame) for operand in op.operands]

    def _argument(self, value: Argument, frame: _Frame | None) -> _Plan:
        """A function's argument: what the entered call passes, or what all its calls agree on."""
        function = self._by_body.get(value.owner.owner.operation)
        if function is None or function.results is None:
            return [], _nothing
        if frame is not None:
            return [(frame.call.operands[value.arg_number], frame.parent)], _first
        if not function.closed or not function.calls:
            return [], _nothing
        return [(call.operands[value.arg_number], None) for call in function.calls], lambda ts: self._joined(value, ts)

    def _call(self, op: ir.Operation, k: int, frame: _Frame | None) -> _Plan:
        function = self.functions.get(ir.FlatSymbolRefAttr(op.attributes["callee"]).value)
        results = function.results if function else None
        if function is None or results is None or (frame is not None and frame.enters(function)):
            return [], _nothing
        if frame is None and function.closed and len(function.calls) == 1:
            # its only call needn't be chosen
            return [(results[k], None)], _first
        inside = results[k], self._frames.setdefault((op, frame), _Frame(op, function, frame))
        arguments = [(operand, frame) for operand in op.operands if self._kind(operand) is not None]
        return arguments, lambda ts: self._entered(inside, tuple(ts))

    def _entered(self, inside: _Key, arguments: tuple[Tensor, ...]) -> Tensor | _Plan:
        """What a function returns for these integer arguments, from an earlier call of it where that was as good."""
        if any(isinstance(t, Elements) for t in arguments):
            return [inside], _first
        call = inside[0], arguments
        return self._results[call] if call in self._results else ([inside], lambda ts: self._remembered(call, *ts))

    def _remembered(self, call: _Call, result: Tensor) -> Tensor:
        """The result; kept for other calls where it is an expression of the arguments and nothing else.

        An unknown of the body isn't the same in two calls: it may be a random number, or depend on an argument that
        is no integer.
        """
        if not isinstance(result, Elements):
            given = {leaf for t in call[1] if not isinstance(t, Elements) for leaf in sym.leaves_of(t.expr)}
            if given.issuperset(sym.leaves_of(result.expr)):
                self._results[call] = result
        return result

    def _branch(self, value: Value, tensors: Sequence[Tensor]) -> Tensor | None:
        """The branch that is taken; of two, a selection. `if` takes the first where its condition is true."""
        index, branches = tensors[0], tensors[1:]
        if not isinstance(index, Uniform):
            return None
        first = index.expr
        if defining(value)[0].name == "stablehlo.case":
            chosen = sym.constant_of(index.expr)
            if chosen is not None:
                # an index out of bounds takes the last branch
                return branches[chosen if 0 <= chosen < len(branches) else -1]
            first = sym.comparison("==", index.expr, sym.constant(0))
        if len(branches) == 2:
            kind = self._kind(value)
            assert kind is not None
            return self._elementwise(value, lambda _, args: sym.select(*args), [Uniform(first), *branches])
        return self._joined(value, branches)

    def _elementwise(self, value: Value, rule: elementwise.Rule, tensors: Sequence[Tensor]) -> Tensor | None:
        kind, shape = self._kind(value), shape_of(value.type)
        assert kind is not None
        if shape is not None and any(isinstance(t, Elements) for t in tensors) and _pays(math.prod(shape), tensors):
            columns = [spread(t, shape) or () for t in tensors]
            exprs = [rule(kind, args) for args in zip(*columns, strict=True)]
            known = [e for e in exprs if e is not None and e.size <= _LARGEST]
            return collect(known) if len(known) == len(exprs) else None
        # what is computed from one element, whatever its value, is computed from each
        tables = [self._unknowns.of(value, "%table", *extent([t])) if isinstance(t, Elements) else t for t in tensors]
        expr = rule(kind, [t.expr for t in tables if isinstance(t, Uniform | Each)])
        if expr is None or all(isinstance(t, Uniform) for t in tables):
            return None if expr is None else Uniform(expr)
        return Each(expr) if sym.constant_of(expr) is None else Uniform(expr)

    def _structural(self, value: Value, tensors: Sequence[Tensor]) -> Tensor | None:
        op, _ = defining(value)
        rule = structural.RULES.get(op.name)
        result = rule(op, tensors) if rule else None
        if isinstance(result, Uniform):
            result = Uniform(self._unknowns.elements.get(result.expr, result.expr))
        if result is None and op.name in structural.PICKS:
            return self._picked(value, [tensors[i] for i in structural.PICKS[op.name] or range(len(tensors))])
        return result

    def _joined(self, value: Value, tensors: Sequence[Tensor]) -> Tensor | None:
        """One of these tensors: what they agree on, or something within their range."""
        if all(t == tensors[0] for t in tensors):
            return tensors[0]
        return self._unknowns.of(value, "", *extent(tensors))

    def _picked(self, value: Value, tensors: Sequence[Tensor]) -> Tensor | None:
        """A tensor made of elements of these, in whatever order."""
        if all(t == tensors[0] for t in tensors) and isinstance(tensors[0], Uniform):
            return tensors[0]
        hint = next((t.expr.text for t in tensors if isinstance(t, Each)), "")
        return self._unknowns.of(value, hint, *extent(tensors))

    def _dimension_size(self, value: Value) -> Tensor | None:
        op, _ = defining(value)
        axis = ir.IntegerAttr(op.attributes["dimension"]).value
        return self._unknowns.of(value, f"{name_of(op.operands[0])}.shape[{axis}]", sym.Range(0, 2**31 - 1))


def _pays(count: int, tensors: Sequence[Tensor]) -> bool:
    """Whether a list of results is worth its work: a short one, or one of constants."""
    return count <= FEW or (count <= LIMIT and all(is_constant(t) for t in tensors))


def _first(tensors: Sequence[Tensor]) -> Tensor:
    return tensors[0]


def _nothing(_: Sequence[Tensor]) -> None:
    return None
