"""Which contracts each public function checks, and whether it can: decided before anything is changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.control import Function, functions_of
from mosaic_grid.dataflow.promises import InputArgument, arguments_of, named_inputs, promises_of, unknown_of
from mosaic_grid.dataflow.tensors import shape_of
from mosaic_grid.dataflow.unknowns import Unknowns
from mosaic_grid.ir_types import Value
from mosaic_grid.program import ProgramError
from mosaic_grid.symbolic.contracts import Contract
from mosaic_grid.symbolic.quotients import Division

CONTRACTS = "mosaic_grid.contracts"
"""The attribute of the result that says which contract is broken: what its numbers from 1 on mean, as texts."""

_WIDTHS = (32, 64)


@dataclasses.dataclass(frozen=True)
class Check:
    """One contract: `arguments` are the inputs that it speaks of, by name, and `bits` the integers that it takes.

    `shape` is that of the arrays of whose every element it speaks, empty without one.
    """

    contract: Contract
    arguments: dict[str, InputArgument]
    shape: tuple[int, ...]
    bits: int

    @property
    def told(self) -> str:
        """What is said where it is broken."""
        named = [f"argument {each.number} ('{name}')" for name, each in self.arguments.items()]
        return f"contract '{self.contract.text}' is broken by {' or '.join(named)}"


@dataclasses.dataclass(frozen=True)
class Plan:
    """A public function and what it checks."""

    function: ir.Operation
    checks: tuple[Check, ...]


def plans(program: ir.Operation, contracts: Sequence[str]) -> tuple[Plan, ...]:
    """What each public function is to check. Raises `UserError` where a contract can't be checked."""
    functions = functions_of(program)
    arguments = arguments_of(functions.values(), Unknowns())
    promises = promises_of(contracts, named_inputs(arguments))
    by_name = {unknown_of(argument.tensor): argument for argument in arguments}
    checks: dict[ir.Operation, list[Check]] = {}
    for contract in promises.contracts:
        named = {leaf.name: by_name[leaf.name] for leaf in sym.inputs_of(contract.condition)}
        if not named:
            # of what always holds nothing is left
            continue
        owners = {function_of(argument.value) for argument in named.values()}
        function = next(iter(owners))
        if len(owners) > 1:
            raise ProgramError(f"contract '{contract}' speaks of arguments of different functions", function)
        checks.setdefault(function, []).append(_check(contract, named, function))
    for function in checks:
        _check_function(next(each for each in functions.values() if each.op == function))
    return tuple(Plan(function, tuple(each)) for function, each in checks.items())


def function_of(argument: Value) -> ir.Operation:
    """The function that it is an argument of."""
    assert isinstance(argument, ir.BlockArgument)
    return argument.owner.owner.operation


def _check(contract: Contract, named: dict[str, InputArgument], function: ir.Operation) -> Check:
    shapes: dict[tuple[int, ...], str] = {}
    for leaf in sym.leaves_of(contract.condition):
        if not isinstance(leaf, sym.Load):
            continue
        shape = shape_of(named[leaf.name].value.type)
        if shape is None or any(size < 0 for size in shape):
            raise ProgramError(
                f"contract '{contract}' can't be checked: the shape of {leaf.name} isn't known", function
            )
        if not leaf.index:
            shapes[shape] = leaf.name
    if len(shapes) > 1:
        names = " and ".join(shapes.values())
        raise ProgramError(f"contract '{contract}' can't be checked: {names} differ in shape", function)
    bits = next((n for n in _WIDTHS if _fits(contract.condition, n)), None)
    if bits is None:
        raise ProgramError(f"contract '{contract}' can't be checked: it may take more than 64 bits", function)
    return Check(contract, named, next(iter(shapes), ()), bits)


def _fits(expr: sym.Expr, bits: int) -> bool:
    """Whether every part of an expression is in the range of a signed type, intermediate products included."""
    most = sym.type_range(bits, True)
    if not expr.range.within(most):
        return False
    if isinstance(expr, Division) and (-expr.a.range.lo > most.hi or not expr.b.range.within(most)):
        # the least number divided by -1
        return False
    # of a sum the parts lie between 0 and the whole's range, in whatever order they are added
    return all(_fits(part, bits) for part in (expr.args if not isinstance(expr, sym.Total) else (expr.body,)))


def _check_function(function: Function) -> None:
    op = function.op
    name = ir.StringAttr(op.attributes["sym_name"]).value
    results = list(ir.ArrayAttr(op.attributes["res_attrs"])) if "res_attrs" in op.attributes else []
    if any(CONTRACTS in ir.DictAttr(each) for each in results):
        raise ProgramError(f"@{name} checks contracts already", op)
    for value in function.results or ():
        shape = shape_of(value.type)
        if shape is None or any(size < 0 for size in shape):
            raise ProgramError(f"@{name} can't check contracts: it returns a {value.type}, of no static shape", op)
        if not isinstance(ir.RankedTensorType(value.type).element_type, ir.FloatType | ir.IntegerType):
            raise ProgramError(f"@{name} can't check contracts: nothing shows that a {value.type} means nothing", op)
