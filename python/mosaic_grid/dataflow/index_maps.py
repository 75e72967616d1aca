"""The functions that are index maps, read off the IR once and evaluated for any indices.

Everything has an expression: an operation without a rule is an `Opaque` function of its operands, never an error.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.control import defining
from mosaic_grid.dataflow.kernel_ops import Rule, rule_of, scalar_type
from mosaic_grid.dataflow.listing import in_order
from mosaic_grid.dataflow.tensors import IntType
from mosaic_grid.ir_types import Value

# the values of what is no integer are never looked at
_ANYTHING = sym.type_range(64, True)
# an expression of more nodes than this is of no use to a person
_LARGEST = 200
# attributes that change neither an integer result nor what it depends on
_PLAIN = frozenset({"i32", "index"})
_HINTS = frozenset({"overflowFlags", "fastmath"})
_IF = "scf.if"


@dataclasses.dataclass(frozen=True)
class Opaque(sym.Load):
    """What an operation without a rule gives for the operands `index`; the same for the same operands."""


@dataclasses.dataclass(frozen=True)
class _Line:
    """A value of an index map that is no constant: the result `k` of `op`, from the values at the places `operands`.

    An `scf.if` has for operands its condition and what its branches give. `table` is what a load reads.
    """

    op: ir.Operation
    name: str
    k: int
    operands: tuple[int, ...]
    kind: IntType | None
    rule: Rule | None
    table: str | None


@dataclasses.dataclass(frozen=True)
class IndexMap:
    """An index map read off the IR once, whatever the indices it is asked for.

    Values are told by their places: first `arguments` of the function, then its `lines`. `tables` are the names of its
    prefetch operands. `results` are places; None where the function isn't a single block.
    """

    function: ir.Operation
    arguments: int
    tables: tuple[str, ...]
    lines: tuple[_Line | sym.Expr, ...]
    results: tuple[int, ...] | None


def read_index_map(function: ir.Operation, dimensions: int, prefetch: Sequence[str]) -> IndexMap:
    """Reads what the results of an index map need, each value after its operands.

    Its arguments are the indices of so many dimensions of the grid, then prefetch operands of these names.
    """
    blocks = function.regions[0].blocks
    block = blocks[0] if len(blocks) == 1 else None
    arguments = tuple(blocks[0].arguments)
    named = dict(zip(arguments[dimensions:], prefetch, strict=False))
    places: dict[Value, int] = {argument: place for place, argument in enumerate(arguments)}
    defined: dict[Value, tuple[ir.Operation, int, tuple[Value, ...]]] = {}
    lines: list[_Line | sym.Expr] = []

    def operands(value: Value) -> tuple[Value, ...]:
        if value not in defined:
            op, k = defining(value)
            defined[value] = (op, k, _needed(op, k))
        return defined[value][2]

    results = _given(block) if block is not None else ()
    for value in (value for result in results for value in in_order(result, places, operands)):
        op, k, needed = defined[value]
        name, kind, rule = op.name, scalar_type(value.type), rule_of(op)
        known = rule(op, kind, ()) if name == "arith.constant" and rule is not None and kind is not None else None
        if known is None:
            table = named.get(needed[0]) if name == "memref.load" else None
            lines.append(_Line(op, name, k, tuple(places[each] for each in needed), kind, rule, table))
        else:
            lines.append(known)
        places[value] = len(arguments) + len(lines) - 1
    given = tuple(places[result] for result in results) if block is not None else None
    return IndexMap(function, len(arguments), tuple(named.values()), tuple(lines), given)


def _needed(op: ir.Operation, k: int) -> tuple[Value, ...]:
    """What a result of an operation is computed from; nothing in a region counts but that of an `scf.if`."""
    if op.name == _IF:
        return (op.operands[0], *(_given(region.blocks[0])[k] for region in op.regions))
    return () if len(op.regions) else tuple(op.operands)


def _given(block: ir.Block) -> tuple[Value, ...]:
    """What a block's terminator passes on."""
    return tuple(block.operations[-1].operation.operands)


def evaluate(read: IndexMap, indices: Sequence[sym.Expr], bounds: Sequence[int | None]) -> tuple[sym.Expr, ...]:
    """What an index map returns at a step of a grid of these bounds, `None` for a dynamic one."""
    return _Evaluation(read, indices, bounds).results()


@functools.lru_cache(maxsize=256)
def _whole(table: str) -> sym.Expr:
    """A table as what operations without a rule are given."""
    return sym.parameter(table, _ANYTHING)


class _Evaluation:
    """One index map, evaluated once from the top."""

    def __init__(self, read: IndexMap, indices: Sequence[sym.Expr], bounds: Sequence[int | None]) -> None:
        self._map = read
        self._bounds = bounds
        self._inputs = (*indices, *map(_whole, read.tables))
        self._regions = 0

    def results(self) -> tuple[sym.Expr, ...]:
        """What the function returns."""
        read = self._map
        if read.results is None:
            results = ir.FunctionType(ir.TypeAttr(read.function.attributes["function_type"]).value).results
            return tuple(self._unknown(read.function, k, kind) for k, kind in enumerate(results))
        values = [*self._inputs[: read.arguments]]
        # what the kernel has no operand for may be anything at each step
        values += [Opaque(f"%arg{k}", self._inputs, _ANYTHING) for k in range(len(values), read.arguments)]
        for line in read.lines:
            values.append(self._value(line, values) if isinstance(line, _Line) else line)
        return tuple(values[place] for place in read.results)

    def _value(self, line: _Line, values: Sequence[sym.Expr]) -> sym.Expr:
        args = [values[place] for place in line.operands]
        if line.name == _IF:
            expr = sym.select(*args)
        elif len(line.op.regions):
            return self._unknown(line.op, line.k, line.op.results[line.k].type)
        else:
            expr = self._result(line, args)
        return expr if expr.size <= _LARGEST else self._unknown(line.op, line.k, line.op.results[line.k].type)

    def _result(self, line: _Line, args: list[sym.Expr]) -> sym.Expr:
        kind = line.kind
        if kind is not None and line.table is not None:
            return sym.load(line.table, args[1:], kind.range)
        if kind is not None and line.name == "tpu.iteration_bound":
            return self._bound(ir.IntegerAttr(line.op.attributes["dim"]).value)
        expr = line.rule(line.op, kind, args) if line.rule and kind else None
        return Opaque(_name(line.op, line.k), tuple(args), kind.range if kind else _ANYTHING) if expr is None else expr

    def _bound(self, axis: int) -> sym.Expr:
        bound = self._bounds[axis]
        # whoever asks is at a step, so there is one
        return (
            sym.constant(bound)
            if bound is not None
            else sym.parameter(f"num_programs({axis})", sym.Range(1, 2**31 - 1))
        )

    def _unknown(self, op: ir.Operation, k: int, kind: ir.Type) -> sym.Expr:
        """A result that may depend on everything the index map is given; no two of them are equal."""
        self._regions += 1
        symbol = ir.StringAttr(self._map.function.attributes["sym_name"]).value
        integer = scalar_type(kind)
        name = f"{_name(op, k)}@{symbol}.{self._regions}"
        return Opaque(name, self._inputs, integer.range if integer else _ANYTHING)


def _name(op: ir.Operation, k: int) -> str:
    """The name of the function that the operation computes: results, attributes and types tell functions apart."""
    if op.name == "arith.constant":
        return str(op.attributes["value"])
    told = [f"{key} = {op.attributes[key]}" for key in op.attributes if key not in _HINTS] if not op.regions else []
    kinds = [str(value.type) for value in (*op.operands, *op.results)]
    if not _PLAIN.issuperset(kinds):
        told.append(" -> ".join(kinds))
    short = op.name.rpartition(".")[2] + (f"{{{', '.join(told)}}}" if told else "")
    return f"{short}#{k}" if k else short
