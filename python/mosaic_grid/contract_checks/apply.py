"""Writes the checks of a function: it runs what it was only where all contracts are kept, and says which one isn't."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.contract_checks.emit import kept
from mosaic_grid.contract_checks.plan import CONTRACTS, Check, Plan
from mosaic_grid.cpu import build
from mosaic_grid.cpu.fill import uninitialized
from mosaic_grid.cpu.options import Options
from mosaic_grid.ir_types import Value
from mosaic_grid.program import block_of, symbol_of
from mosaic_grid.unpack import unique_symbol


def apply(program: ir.Operation, plan: Plan) -> None:
    """Makes the function a private one that a new function of its name calls."""
    old = plan.function
    symbol = symbol_of(old) or ""
    taken = {symbol_of(op.operation) or "" for op in block_of(program)}
    inner = unique_symbol(f"{symbol}_unchecked", taken)
    kind = ir.FunctionType(ir.TypeAttr(old.attributes["function_type"]).value)
    results = [*kind.results, build.tensor((), build.i32_type())]
    with ir.InsertionPoint(old), old.location:
        new = func.FuncOp(symbol, ir.FunctionType.get(kind.inputs, results))
        for name in [name for name in old.attributes if name not in ("sym_name", "function_type", "res_attrs")]:
            new.attributes[name] = old.attributes[name]
        new.attributes["res_attrs"] = ir.ArrayAttr.get([*_result_attributes(old), _flag_attributes(plan.checks)])
        entry = new.add_entry_block([argument.location for argument in old.regions[0].blocks[0].arguments])
    old.attributes["sym_name"] = ir.StringAttr.get(inner)
    old.attributes["sym_visibility"] = ir.StringAttr.get("private")
    for name in ("arg_attrs", "res_attrs"):
        if name in old.attributes:
            del old.attributes[name]
    with ir.InsertionPoint(entry), old.location:
        broken = _broken(plan.checks, list(entry.arguments))
        good = build.compare(broken, build.i32(0), "EQ")
        func.ReturnOp([*_guarded(good, inner, list(kind.results), list(entry.arguments)), broken])


def _result_attributes(function: ir.Operation) -> Sequence[ir.Attribute]:
    if "res_attrs" in function.attributes:
        return list(ir.ArrayAttr(function.attributes["res_attrs"]))
    count = len(ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).results)
    return [ir.DictAttr.get({})] * count


def _flag_attributes(checks: Sequence[Check]) -> ir.Attribute:
    texts = ir.ArrayAttr.get([ir.StringAttr.get(check.told) for check in checks])
    return ir.DictAttr.get({"jax.result_info": ir.StringAttr.get("broken_contract"), CONTRACTS: texts})


def _broken(checks: Sequence[Check], arguments: Sequence[Value]) -> Value:
    """The number of the first contract that is broken, from 1 on; 0 where none is."""
    broken = build.i32(0)
    for number, check in reversed(list(enumerate(checks, 1))):
        values = {name: arguments[each.number] for name, each in check.arguments.items()}
        broken = hlo.select(kept(check, values), broken, build.i32(number))
    return broken


def _guarded(good: Value, callee: str, results: Sequence[ir.Type], arguments: Sequence[Value]) -> Sequence[Value]:
    """The results of the call where `good`, else what shows that it is none."""
    chosen = hlo.IfOp(results, good)
    with ir.InsertionPoint(chosen.true_branch.blocks.append()):
        hlo.return_(func.CallOp(results, ir.FlatSymbolRefAttr.get(callee), arguments).results)
    with ir.InsertionPoint(chosen.false_branch.blocks.append()):
        kinds = [ir.RankedTensorType(kind) for kind in results]
        hlo.return_([uninitialized(tuple(kind.shape), kind.element_type, Options()) for kind in kinds])
    return list(chosen.results)
