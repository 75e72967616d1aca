"""What there is to say of a kernel's windows and other buffers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import cast

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from mosaic_grid import memory
from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.kernel import Opaque, index_map, moves
from mosaic_grid.ir_types import Argument
from mosaic_grid.location_text import text_of_name
from mosaic_grid.program import Kernel, Launch, Window
from mosaic_grid.summary.facts import Array, Buffer, WindowSummary

ALIASES = "output_operand_aliases"
# an index of more nodes than this isn't read but skipped
_READABLE = 24


def window_summary(kernel: Kernel, window: Window, number: int, indices: Sequence[sym.Expr] | None) -> WindowSummary:
    """A window as its kernel has it, the `number`th; its index map is written with `indices`, or left out."""
    seen = array_of(kernel, window.type)
    whole = window.shape is None
    return WindowSummary(
        role="window",
        number=number,
        name=name_of(window.argument, f"arg{number}"),
        block=seen if window.shape is None else Array(seen.element, window.shape),
        seen=seen,
        space=memory.space_of(window.type),
        whole=whole,
        operand=None,
        index_map=() if whole or indices is None else _index_texts(index_map(kernel, window, indices)),
        padding=None if window.kind is None else str(window.kind).partition("<")[2].removesuffix(">"),
        buffers=memory.buffers_of(window, not whole and moves(kernel, window)),
        alias="",
    )


def with_operands(windows: tuple[WindowSummary, ...], launch: Launch) -> tuple[WindowSummary, ...]:
    """The windows as inputs and outputs of a launch; as they are where the numbers don't fit."""
    first = len(launch.bounds) + launch.kernel.prefetch_count
    inputs, outputs = list(launch.op.operands)[first:], list(launch.op.results)
    if len(inputs) + len(outputs) != len(windows):
        return windows
    roles = [("in", k, value, "") for k, value in enumerate(inputs)]
    aliases = _aliases(launch.op)
    for k, value in enumerate(outputs):
        operand = aliases.get(k)
        # the operands are bounds, then prefetch operands, then inputs
        alias = "" if operand is None else f"in {operand - first}" if operand >= first else f"operand {operand}"
        roles.append(("out", k, value, alias))
    return tuple(
        dataclasses.replace(window, role=role, number=number, operand=array_of(launch.kernel, value.type), alias=alias)
        for window, (role, number, value, alias) in zip(windows, roles, strict=True)
    )


def _aliases(call: ir.Operation) -> dict[int, int]:
    """The operand whose memory each output reuses, by number of output."""
    listed = list(ir.ArrayAttr(call.attributes[ALIASES])) if ALIASES in call.attributes else []
    aliases = [stablehlo.OutputOperandAlias(alias) for alias in listed]
    return {next(iter(alias.output_tuple_indices), 0): alias.operand_index for alias in aliases}


def buffer_of(kernel: Kernel, argument: Argument, name: str) -> Buffer:
    """A prefetch operand, a scratch buffer or a semaphore array."""
    kind = ir.MemRefType(argument.type)
    return Buffer(name, array_of(kernel, kind), memory.space_of(kind))


def array_of(kernel: Kernel, kind: ir.Type) -> Array:
    """An array of this type. Most types of a kernel are those of several arrays, and to ask one takes long."""
    key = (Array, kind)
    if key not in kernel.memo:
        kernel.memo[key] = _array(kind)
    return cast("Array", kernel.memo[key])


def _array(kind: ir.Type) -> Array:
    if not isinstance(kind, ir.ShapedType):
        return Array(str(kind), ())
    sizes: tuple[int | None, ...] = tuple(kind.shape)
    if not kind.has_static_shape:
        sizes = tuple(None if kind.is_dynamic_dim(axis) else size for axis, size in enumerate(sizes))
    return Array(str(kind.element_type).removeprefix("!tpu."), sizes)


def name_of(argument: Argument, otherwise: str) -> str:
    """The argument's name in the user's function."""
    location = argument.location
    return (text_of_name(location) if isinstance(location, ir.NameLoc) else "") or otherwise


def _index_texts(blocks: tuple[sym.Expr, ...] | None) -> tuple[str, ...]:
    return tuple(map(_index_text, blocks or ()))


def _index_text(index: sym.Expr) -> str:
    """An index as text; `f(i, table[j])` for a function of these that can't be told, or is too long to be read."""
    if index.size <= _READABLE and not any(isinstance(node, Opaque) for node in _nodes(index)):
        return str(index)
    return f"f({', '.join(dict.fromkeys(map(str, _sources(index))))})"


def _nodes(expr: sym.Expr) -> Iterator[sym.Expr]:
    yield expr
    for arg in expr.args:
        yield from _nodes(arg)


def _sources(expr: sym.Expr) -> Iterator[sym.Expr]:
    """The grid indices and loads that an expression is made of."""
    if isinstance(expr, sym.Param) or (isinstance(expr, sym.Load) and not isinstance(expr, Opaque)):
        yield expr
        return
    for arg in expr.args:
        yield from _sources(arg)
