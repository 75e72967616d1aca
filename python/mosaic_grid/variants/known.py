"""Entries of scalar-prefetch operands that are constants where a variant runs: what a kernel loads is then one, too.

A kernel often gets its bound a second time as an operand, for a loop inside: that loop's trip count becomes static.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

from jaxlib.mlir import ir

from mosaic_grid import symbolic
from mosaic_grid.dataflow.outer import OuterScalars
from mosaic_grid.ir_types import Argument, Value
from mosaic_grid.program import Kernel, Launch

MOST_ENTRIES = 64
"""Operands with more entries are tables of data."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """Element `index` (row-major) of scalar-prefetch operand `operand` is `value`."""

    operand: int
    index: int
    value: int


def known_entries(launch: Launch, bounds: Mapping[int, int], scalars: OuterScalars) -> tuple[Entry, ...]:
    """What is known where the bounds of these dimensions have these values."""
    known = [(scalars.evaluate(launch.bounds[axis]), value) for axis, value in bounds.items()]
    values = {bound: value for bound, value in known if all(map(_is_one_number, symbolic.leaves_of(bound)))}

    def replaced(part: symbolic.Expr) -> symbolic.Expr | None:
        return symbolic.constant(values[part]) if part in values else None

    found: list[Entry] = []
    start = len(launch.bounds)
    for number, operand in enumerate(list(launch.op.operands)[start : start + launch.kernel.prefetch_count]):
        if math.prod(ir.RankedTensorType(operand.type).shape) > MOST_ENTRIES:
            continue
        for index, entry in enumerate(scalars.elements(operand) or ()):
            value = symbolic.constant_of(symbolic.substitute(entry, replaced))
            if value is not None:
                found.append(Entry(number, index, value))
    return tuple(found)


def _is_one_number(leaf: symbolic.Expr) -> bool:
    """Whether an unknown is the same wherever it stands: not the element of an array that is meant just there."""
    return not isinstance(leaf, symbolic.Load) or bool(leaf.args)


def replace_loads(kernel: Kernel, entries: Iterable[Entry]) -> bool:
    """Writes constants for loads of these entries, in place; says whether there was one.

    An operand that the kernel does anything else with than to load from it may change while it runs: it is left alone.
    """
    values = {(entry.operand, entry.index): entry.value for entry in entries}
    constant = {operand for operand, _ in values if _is_only_loaded(kernel.prefetch[operand])}
    maps = {window.transform for window in kernel.windows}
    loads = [
        (load, values[operand, index])
        for symbol, function in kernel.functions.items()
        if symbol in maps or function == kernel.body
        for operand in constant
        for load in _loads(function.regions[0].blocks[0].arguments[len(kernel.grid) + operand])
        if (index := _index(load)) is not None and (operand, index) in values
    ]
    for load, value in loads:
        kind = load.results[0].type
        made = ir.Operation.create(
            "arith.constant",
            results=[kind],
            attributes={"value": ir.IntegerAttr.get(kind, value)},
            loc=load.location,
            ip=ir.InsertionPoint(load),
        )
        load.results[0].replace_all_uses_with(made.result)
        load.erase()
    return bool(loads)


def _is_only_loaded(argument: Argument) -> bool:
    return all(use.owner.operation.name == "memref.load" for use in argument.uses)


def _loads(argument: Argument) -> list[ir.Operation]:
    owners = [use.owner.operation for use in argument.uses]
    return [op for op in owners if op.name == "memref.load"]


def _index(load: ir.Operation) -> int | None:
    """The row-major index of the element that is loaded, where it is a constant within the operand."""
    places = [_constant(place) for place in load.operands[1:]]
    return _flat([place for place in places if place is not None], ir.MemRefType(load.operands[0].type).shape)


def _flat(places: Sequence[int], shape: Sequence[int]) -> int | None:
    if len(places) != len(shape) or not all(0 <= place < size for place, size in zip(places, shape, strict=True)):
        return None
    index = 0
    for place, size in zip(places, shape, strict=True):
        index = index * size + place
    return index


def _constant(value: Value) -> int | None:
    if not isinstance(value, ir.OpResult) or value.owner.name != "arith.constant":
        return None
    attribute = value.owner.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None
