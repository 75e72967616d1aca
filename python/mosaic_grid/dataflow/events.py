"""An operation on memory, or with regions, with what walks ask of it, read off the IR when it is first asked for."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable
from typing import NamedTuple

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.definitions import constant_of_value
from mosaic_grid.dataflow.effects import Effect, is_memory, named
from mosaic_grid.dataflow.kernel_ops import scalar_type
from mosaic_grid.dataflow.memory import ONE
from mosaic_grid.ir_types import Value

# neither strides nor masks, and nothing is added
_PLAIN = frozenset({"memref.load", "memref.store", "vector.load", "vector.store"})


class Touch(NamedTuple):
    """A load's or a store's place in a view: `indices`, and an extent of numbers for each dimension.

    `starts` are the indices if all are written as constants. A `complete` write leaves no element of its box as it was.
    """

    indices: tuple[Value, ...]
    starts: tuple[sym.Expr, ...] | None
    extents: tuple[sym.Expr, ...]
    complete: bool


def _constants(values: Iterable[Value]) -> tuple[sym.Expr, ...] | None:
    """What values are if all are written as constants."""
    found: list[sym.Expr] = []
    for value in values:
        known = constant_of_value(value)
        if known is None:
            return None
        found.append(known)
    return tuple(found)


@dataclasses.dataclass(frozen=True, eq=False)
class Event:
    """Such an operation."""

    op: ir.Operation
    effect: Effect

    @functools.cached_property
    def name(self) -> str:
        """The operation's name."""
        return self.op.name

    @functools.cached_property
    def operands(self) -> tuple[Value, ...]:
        """All of its operands."""
        return tuple(self.op.operands)

    @functools.cached_property
    def results(self) -> tuple[Value, ...]:
        """All of its results."""
        return tuple(self.op.results)

    @functools.cached_property
    def blocks(self) -> tuple[ir.Block | None, ...] | None:
        """The block of each region, None for an empty one; None where a region has several."""
        regions = [list(region.blocks) for region in self.op.regions]
        several = any(len(blocks) > 1 for blocks in regions)
        return None if several else tuple(blocks[0] if blocks else None for blocks in regions)

    @functools.cached_property
    def scalars(self) -> frozenset[int]:
        """The numbers of the results that are integer scalars."""
        return frozenset(k for k, result in enumerate(self.results) if scalar_type(result.type) is not None)

    @functools.cached_property
    def buffers(self) -> frozenset[int]:
        """The numbers of the results that are buffers or semaphores."""
        return frozenset(k for k, result in enumerate(self.results) if is_memory(result))

    @functools.cached_property
    def sizes(self) -> tuple[sym.Expr | None, ...]:
        """Of the memref that a view is: its shape, None for a dynamic size."""
        shape = ir.MemRefType(self.results[0].type).shape
        return tuple(sym.constant(size) if size >= 0 else None for size in shape)

    @functools.cached_property
    def shape(self) -> tuple[sym.Expr, ...] | None:
        """The same where it is static."""
        known = tuple(size for size in self.sizes if size is not None)
        return known if len(known) == len(self.sizes) else None

    @functools.cached_property
    def touch(self) -> Touch:
        """Of a load or a store of a box: which."""
        operands = self.operands
        first = 2 if self.effect is Effect.WRITE else 1
        moved = (operands[0] if first == 2 else self.results[0]).type
        lengths = tuple(moved.shape) if isinstance(moved, ir.VectorType) else ()
        if self.name in _PLAIN:
            indices = operands[first:]
            extents = (*(ONE,) * (len(indices) - len(lengths)), *map(sym.constant, lengths))
            return Touch(indices, _constants(indices), extents, True)
        rank = ir.MemRefType(operands[first - 1].type).rank
        lengths = (*(1,) * (rank - len(lengths)), *lengths)
        attributes = self.op.attributes
        strides = (tuple(ir.DenseI32ArrayAttr(attributes["strides"])) if "strides" in attributes else ()) or (1,) * rank
        # n elements, s apart, lie within (n - 1) * s + 1
        extents = tuple(sym.constant((n - 1) * s + 1) for n, s in zip(lengths, strides, strict=True))
        masked = len(operands) > first + rank
        complete = not masked and not self.adds and all(s == 1 for s in strides)
        indices = operands[first : first + rank]
        return Touch(indices, _constants(indices), extents, complete)

    @functools.cached_property
    def adds(self) -> bool:
        """Whether a store or a copy adds to what is there."""
        attributes = self.op.attributes
        return "add" in attributes and bool(ir.BoolAttr(attributes["add"]).value)

    @functools.cached_property
    def _named(self) -> dict[str, Value | None]:
        return {}

    def named(self, name: str) -> Value | None:
        """The operand that the operation's declaration calls `name`; None where it is left out or there is none."""
        if name not in self._named:
            self._named[name] = named(self.op, name)
        return self._named[name]

    @functools.cached_property
    def element(self) -> str:
        """The element type of what a copy moves."""
        moved = self.named("target") or self.named("dst")
        assert moved is not None  # asked of copies whose target is known
        return str(ir.MemRefType(moved.type).element_type)
