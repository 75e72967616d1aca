"""An operation on memory, or with regions, with what walks ask of it, read off the IR when it is first asked for."""

from __future__ import annotations

import dataclasses
import functools

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.effects import Effect, named
from mosaic_grid.ir_types import Value


@dataclasses.dataclass(frozen=True)
class Touch:
    """A load's or a store's place in a view: `indices`, and an extent of numbers for each dimension.

    A `complete` write leaves no element of its box as it was.
    """

    indices: tuple[Value, ...]
    extents: tuple[sym.Expr, ...]
    complete: bool


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
    def sizes(self) -> tuple[sym.Expr | None, ...]:
        """Of the memref that a view is: its shape, None for a dynamic size."""
        shape = ir.MemRefType(self.results[0].type).shape
        return tuple(sym.constant(size) if size >= 0 else None for size in shape)

    @functools.cached_property
    def touch(self) -> Touch:
        """Of a load or a store of a box: which."""
        op, operands = self.op, self.operands
        first = 2 if self.effect is Effect.WRITE else 1
        rank = ir.MemRefType(operands[first - 1].type).rank
        moved = (operands[0] if first == 2 else self.results[0]).type
        lengths = tuple(ir.VectorType(moved).shape) if isinstance(moved, ir.VectorType) else ()
        lengths = (*(1,) * (rank - len(lengths)), *lengths)
        attributes = op.attributes
        strides = (tuple(ir.DenseI32ArrayAttr(attributes["strides"])) if "strides" in attributes else ()) or (1,) * rank
        # n elements, s apart, lie within (n - 1) * s + 1
        extents = tuple(sym.constant((n - 1) * s + 1) for n, s in zip(lengths, strides, strict=True))
        masked = len(operands) > first + rank
        complete = not masked and not self.adds and all(s == 1 for s in strides)
        return Touch(operands[first : first + rank], extents, complete)

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
