"""Records on their way out of the program: from the launches, through loops, branches and calls, to `@main`.

A function that launches something, by itself or by what it calls, returns the records of it behind its own results;
loops carry them, and branches return them. Of what is launched more than once the records are joined. The codes of
unwritten memory (`poison.py`), one more argument, go the other way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from jaxlib.mlir import ir

from mosaic_grid.cpu import build
from mosaic_grid.cpu.faults import joined
from mosaic_grid.cpu.poison import codes_type
from mosaic_grid.dataflow.control import functions_of
from mosaic_grid.ir_types import Value

Records: TypeAlias = dict[str, Value]

_CALLEE = "mosaic.callee"
"""An attribute of a launch that is about to become a call: of which function."""

_SHARDINGS = ("mhlo.sharding", "sdy.sharding")


@dataclasses.dataclass(frozen=True)
class Callee:
    """The function that a launch becomes a call of. `record` is the type of its last result, `None` without one.

    `takes_codes` says that its last argument is for codes.
    """

    symbol: str
    record: ir.RankedTensorType | None
    takes_codes: bool


class OuterRecords:
    """The way of the records through one program; it has no functions of launches yet."""

    def __init__(self, program: ir.Operation) -> None:
        self.lost: list[ir.Location] = []
        self._callees: dict[str, Callee] = {}
        self._functions = functions_of(program)
        self._inside: dict[str, dict[str, Callee]] = {}

    def thread(self, callees: Mapping[ir.Operation, Callee]) -> list[str]:
        """Turns launches into calls; `callees` are by the operations. Returns whose records `@main` returns, in order.

        What is launched where no record can be handed on, as in the decomposition of a composite, is `lost`.
        """
        self._callees = {callee.symbol: callee for callee in callees.values()}
        for op, callee in callees.items():  # an operation's hash changes with its operands: no key while they change
            op.attributes[_CALLEE] = ir.StringAttr.get(callee.symbol)
        for symbol, function in self._functions.items():
            inside = self._in_function(symbol)
            for block in function.op.regions[0].blocks:
                if inside:
                    self._returning(function.op, block, inside)
                else:
                    self._block(block, None, lost=True)
        return list(self._in_function("main"))

    def _returning(self, function: ir.Operation, block: ir.Block, inside: Mapping[str, Callee]) -> None:
        """Has a function of this one block return the records of what is launched inside."""
        with function.location:
            takes_codes = any(callee.takes_codes for callee in inside.values())
            codes = block.add_argument(codes_type(), ir.Location.unknown()) if takes_codes else None
            records = self._block(block, codes)
            _return_more(block, [records[symbol] for symbol in inside])
            inputs, results = ([each.type for each in values] for values in (block.arguments, _end(block).operands))
            function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
            for name, values in (("arg_attrs", inputs), ("res_attrs", results)):
                if name in function.attributes:
                    known = list(ir.ArrayAttr(function.attributes[name]))
                    more = [ir.DictAttr.get({})] * (len(values) - len(known))
                    function.attributes[name] = ir.ArrayAttr.get([*known, *more])

    def _in_function(self, symbol: str) -> dict[str, Callee]:
        """What a function launches whose records it can hand on, by symbol."""
        if symbol not in self._inside:
            self._inside[symbol] = {}  # for a function that calls itself, which XLA will refuse
            function = self._functions.get(symbol)
            blocks = list(function.op.regions[0].blocks) if function is not None else []
            open_ = function is not None and (function.closed or symbol == "main") and len(blocks) == 1
            self._inside[symbol] = self._in_block(blocks[0]) if open_ else {}
        return self._inside[symbol]

    def _in_block(self, block: ir.Block) -> dict[str, Callee]:
        found: dict[str, Callee] = {}
        for view in block.operations:
            found |= self._in_operation(view.operation)
        return found

    def _launched(self, op: ir.Operation) -> Callee | None:
        """What an operation becomes a call of, if it is a launch that was lowered."""
        return self._callees[ir.StringAttr(op.attributes[_CALLEE]).value] if _CALLEE in op.attributes else None

    def _in_operation(self, op: ir.Operation) -> dict[str, Callee]:
        callee = self._launched(op)
        if callee is not None:
            return {callee.symbol: callee} if callee.record is not None else {}
        if op.name == "func.call":
            return self._in_function(_callee(op))
        found: dict[str, Callee] = {}
        for region in _carrying(op):
            found |= self._in_block(region.blocks[0])
        return found

    def _block(self, block: ir.Block, codes: Value | None, *, lost: bool = False) -> Records:
        """The records of what is launched in a block, at its end."""
        *operations, end = [view.operation for view in block.operations]
        records: Records = {}
        for op in operations:
            for symbol, record in self._operation(op, codes, lost=lost).items():
                with ir.InsertionPoint(end), end.location:
                    records[symbol] = joined(records[symbol], record) if symbol in records else record
        return records

    def _operation(self, op: ir.Operation, codes: Value | None, *, lost: bool) -> Records:
        callee = self._launched(op)
        if callee is not None:
            if lost and callee.record is not None:
                self.lost.append(op.location)
            return self._launch(op, callee, codes)
        if op.name == "func.call":
            inside = self._in_function(_callee(op))
            return self._call(op, inside, codes) if inside else {}
        carrying = _carrying(op)
        inside = self._in_operation(op)
        for region in op.regions:
            if not inside or region not in carrying:
                for block in region.blocks:
                    self._block(block, None, lost=True)
        if not inside:
            return {}
        return self._loop(op, inside, codes) if op.name == "stablehlo.while" else self._branches(op, inside, codes)

    def _launch(self, op: ir.Operation, callee: Callee, codes: Value | None) -> Records:
        with op.location, ir.InsertionPoint(op):
            operands = list(op.operands)
            if callee.takes_codes:
                operands.append(build.constant(0, *_shape(codes_type())) if codes is None else codes)
            extra = [] if callee.record is None else [callee.record]
            types = [*(result.type for result in op.results), *extra]
            attributes: dict[str, ir.Attribute] = {"callee": ir.FlatSymbolRefAttr.get(callee.symbol)}
            call = ir.Operation.create("func.call", types, operands, attributes)
        for old, new in zip(op.results, call.results, strict=False):
            old.replace_all_uses_with(new)
        op.erase()
        return {callee.symbol: call.results[-1]} if extra else {}

    def _call(self, op: ir.Operation, inside: Mapping[str, Callee], codes: Value | None) -> Records:
        operands = list(op.operands)
        with op.location, ir.InsertionPoint(op):
            if any(callee.takes_codes for callee in inside.values()):
                operands.append(build.constant(0, *_shape(codes_type())) if codes is None else codes)
        return dict(zip(inside, _rebuilt(op, operands, _types(inside)), strict=True))

    def _loop(self, op: ir.Operation, inside: Mapping[str, Callee], codes: Value | None) -> Records:
        types = _types(inside)
        condition, body = (region.blocks[0] for region in op.regions)
        for kind in types:
            condition.add_argument(kind, ir.Location.unknown())
        carried = [body.add_argument(kind, ir.Location.unknown()) for kind in types]
        records = self._block(body, codes)
        end = _end(body)
        with ir.InsertionPoint(end), end.location:
            after = [joined(before, records[symbol]) for symbol, before in zip(inside, carried, strict=True)]
        _return_more(body, after)
        with op.location, ir.InsertionPoint(op):
            initial = [build.constant(0, *_shape(kind)) for kind in types]
        return dict(zip(inside, _rebuilt(op, [*op.operands, *initial], types), strict=True))

    def _branches(self, op: ir.Operation, inside: Mapping[str, Callee], codes: Value | None) -> Records:
        types = _types(inside)
        for region in op.regions:
            block = region.blocks[0]
            end = _end(block)
            with ir.InsertionPoint(end), end.location:
                nothing = {s: build.constant(0, *_shape(kind)) for s, kind in zip(inside, types, strict=True)}
            records = nothing | self._block(block, codes)
            _return_more(block, [records[symbol] for symbol in inside])
        return dict(zip(inside, _rebuilt(op, list(op.operands), types), strict=True))


def _carrying(op: ir.Operation) -> list[ir.Region]:
    """The regions of an operation from which records can be handed on."""
    if op.name == "stablehlo.while":
        return [op.regions[1]]
    return list(op.regions) if op.name in ("stablehlo.if", "stablehlo.case") else []


def _rebuilt(op: ir.Operation, operands: Sequence[Value], more: Sequence[ir.Type]) -> list[Value]:
    """Makes the operation anew, with its regions, these operands and more results; returns what it has more."""
    count = len(op.results)
    attributes = {name: op.attributes[name] for name in op.attributes if name not in _SHARDINGS}
    types = [*(result.type for result in op.results), *more]
    with op.location, ir.InsertionPoint(op):
        new = ir.Operation.create(op.name, types, operands, attributes, regions=len(op.regions))
    for before, after in zip(op.regions, new.regions, strict=True):
        for block in list(before.blocks):
            block.append_to(after)
    for old, result in zip(op.results, new.results, strict=False):
        old.replace_all_uses_with(result)
    op.erase()
    return [result for number, result in enumerate(new.results) if number >= count]


def _return_more(block: ir.Block, values: Sequence[Value]) -> None:
    end = _end(block)
    with end.location, ir.InsertionPoint(end):
        ir.Operation.create(end.name, operands=[*end.operands, *values])
    end.erase()


def _end(block: ir.Block) -> ir.Operation:
    *_, end = block.operations
    return end.operation


def _callee(call: ir.Operation) -> str:
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


def _types(inside: Mapping[str, Callee]) -> list[ir.RankedTensorType]:
    return [callee.record for callee in inside.values() if callee.record is not None]


def _shape(kind: ir.Type) -> tuple[Sequence[int], ir.Type]:
    tensor = ir.RankedTensorType(kind)
    return tensor.shape, tensor.element_type
