"""Where a value that no rule computes comes from: calls, loops, and operations that merely pass it on."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping
from typing import Any

from jaxlib.mlir import ir

from mosaic_grid.ir_types import Argument, Value

# custom calls that return their operand, when the types agree
_SHARDINGS = frozenset({"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "LayoutConstraint"})
_SDY_IDENTITIES = frozenset({"sdy.sharding_constraint", "sdy.reshard", "sdy.propagation_barrier"})
_MANUAL = "sdy.manual_computation"
_CUSTOM_CALLS = frozenset({"stablehlo.custom_call", "mhlo.custom_call"})
PASSING = frozenset({"stablehlo.while", "stablehlo.optimization_barrier", *_CUSTOM_CALLS, *_SDY_IDENTITIES})
"""The operations that may merely pass a value on."""

# a dialect's own attributes, whose parts only their text shows
_OPAQUE = (ir.Attribute, ir.OpaqueAttr)
# as MLIR writes a symbol, bare or quoted, wherever there is an `@`
_SYMBOL = re.compile(r'@(?=(?:"([^"]*)"|([\w$.]+)))')


@dataclasses.dataclass(frozen=True)
class Function:
    """A function of the outer program and the calls of it.

    Its arguments are known from its calls only where it is `closed`: private, and named by nothing but calls.
    """

    op: ir.Operation
    calls: list[ir.Operation]
    closed: bool

    @functools.cached_property
    def results(self) -> list[Value] | None:
        """What it returns; `None` for a declaration or a body of several blocks."""
        blocks = list(self.op.regions[0].blocks)
        return list(blocks[0].operations[-1].operation.operands) if len(blocks) == 1 else None


def functions_of(program: ir.Operation) -> dict[str, Function]:
    """The outer functions by symbol: one walk over the program, kernels left out."""
    calls: dict[str, list[ir.Operation]] = {}
    named: set[str] = set()
    seen: set[ir.Attribute] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "builtin.module" and op != program:
            return ir.WalkResult.SKIP
        if op.name == "func.call":
            calls.setdefault(ir.FlatSymbolRefAttr(op.attributes["callee"]).value, []).append(op)
        elif not op.name.startswith("stablehlo.") or op.name in ("stablehlo.composite", "stablehlo.custom_call"):
            attributes = op.attributes
            for name in attributes:
                _add_symbols(attributes[name], named, seen)
        return ir.WalkResult.ADVANCE

    program.walk(visit, ir.WalkOrder.PRE_ORDER)
    functions = {}
    for view in program.regions[0].blocks[0].operations:
        op = view.operation
        if op.name == "func.func":
            symbol = ir.StringAttr(op.attributes["sym_name"]).value
            functions[symbol] = Function(op, calls.get(symbol, []), is_private(op) and symbol not in named)
    return functions


def is_private(op: ir.Operation) -> bool:
    """Whether a function can be called from within the program only."""
    name = "sym_visibility"
    return name in op.attributes and ir.StringAttr(op.attributes[name]).value == "private"


def runs_always(op: ir.Operation, functions: Mapping[ir.Operation, Function]) -> bool:
    """Whether an operation runs whenever the program does: no branch or loop is around it, or around a call of it.

    `functions` are those of the program by their operations.
    """
    waiting, seen = [op], set[ir.Operation]()
    while waiting:
        parent = waiting.pop().parent
        around = parent.operation if parent is not None else None
        function = functions.get(around) if around is not None else None
        if around is None or (function is None and around.name != _MANUAL):
            return False
        if function is None:
            waiting.append(around)
        elif is_private(around) and around not in seen:
            seen.add(around)
            if not function.closed or not function.calls:
                return False
            waiting += function.calls
    return True


def _add_symbols(attribute: ir.Attribute, named: set[str], seen: set[ir.Attribute]) -> None:
    """Adds every symbol the attribute names, however deep: one too many costs precision, one too few the truth.

    Those that were `seen` before are left out: many arguments are sharded alike.
    """
    if attribute in seen:
        return
    seen.add(attribute)
    kind = type(attribute)
    if kind is ir.FlatSymbolRefAttr:
        named.add(ir.FlatSymbolRefAttr(attribute).value)
    elif kind is ir.SymbolRefAttr:
        named.update(ir.SymbolRefAttr(attribute).value)
    elif kind is ir.ArrayAttr:
        for part in ir.ArrayAttr(attribute):
            _add_symbols(part, named, seen)
    elif kind is ir.DictAttr:
        parts = ir.DictAttr(attribute)
        for k in range(len(parts)):
            _add_symbols(parts[k].attr, named, seen)
    elif kind in _OPAQUE:
        named.update(quoted or bare for quoted, bare in _SYMBOL.findall(str(attribute)))


def defining(value: Value) -> tuple[ir.Operation, int]:
    """The operation that `value` is a result of, and which one."""
    result: ir.OpResult[Any] = ir.OpResult(value)
    return result.owner.operation, result.result_number


def operand(op: ir.Operation, k: int) -> Value:
    """The operand number `k`."""
    value: Value = op.operands[k]
    return value


def passed_on(value: Value) -> Value | None:
    """The value of the same function that `value` always equals, if an operation merely passes it on."""
    if isinstance(value, ir.BlockArgument):
        return _argument_source(value)
    op, k = defining(value)
    match op.name:
        case "stablehlo.while":
            return _loop_invariant(op, k)
        case "stablehlo.optimization_barrier":
            return operand(op, k)
        case name if name in _CUSTOM_CALLS:
            identity = ir.StringAttr(op.attributes["call_target_name"]).value in _SHARDINGS
        case name:
            identity = name in _SDY_IDENTITIES
    passes = identity and len(op.operands) == 1 and op.operands[0].type == value.type
    return operand(op, 0) if passes else None


def _argument_source(argument: Argument) -> Value | None:
    op, k = argument.owner.owner.operation, argument.arg_number
    match op.name:
        case "stablehlo.while":
            return _loop_invariant(op, k)
        case name if name == _MANUAL and op.operands[k].type == argument.type:
            # an operand of the same type isn't sharded: every device has it whole
            return operand(op, k)
    return None


def _loop_invariant(loop: ir.Operation, k: int) -> Value | None:
    """The initial value of a loop variable that the body returns as it got it."""
    body = loop.regions[1].blocks[0]
    same = body.operations[-1].operation.operands[k] == body.arguments[k]
    return operand(loop, k) if same else None
