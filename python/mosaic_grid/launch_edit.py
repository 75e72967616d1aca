"""Changing a launch's operands: everything that counts operands follows.

A custom call counts its operands in five places: layouts, output aliases, shape operands, and two fields of the
backend_config (memory-space colours and input fusion).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TypeAlias

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from mosaic_grid import backend_config
from mosaic_grid.ir_types import Value
from mosaic_grid.program import BACKEND_CONFIG, KERNEL, Launch, ProgramError

LAYOUTS = "operand_layouts"
ALIASES = "output_operand_aliases"
SHAPE_OPERANDS = "indices_of_shape_operands"
BOUNDS = "mosaic.bounds"
"""A launch's attribute: its dynamic bounds in words, as `resolve-grid` leaves them; of no other launch."""


@dataclasses.dataclass(frozen=True)
class Kept:
    """An operand of the old launch, by its index."""

    index: int


def pinned_operands(launch: Launch) -> frozenset[int]:
    """The operands that something else of the launch refers to, so that they can't go: output aliases and shapes."""
    attributes = launch.op.attributes
    aliases = list(ir.ArrayAttr(attributes[ALIASES])) if ALIASES in attributes else []
    shapes = list(ir.DenseI64ArrayAttr(attributes[SHAPE_OPERANDS])) if SHAPE_OPERANDS in attributes else []
    return frozenset([*shapes, *(stablehlo.OutputOperandAlias(alias).operand_index for alias in aliases)])


def replace_kernel(
    launch: Launch, kernel: str, operands: Sequence[Kept | Value], ip: ir.InsertionPoint | None = None
) -> ir.Operation:
    """A new launch of `@kernel` with these operands, before `launch` or at `ip`; the old launch is left in place.

    New operands have no layout constraint but the default one, row-major. `pinned_operands` have to be kept.
    """
    old = launch.op
    values = [old.operands[operand.index] if isinstance(operand, Kept) else operand for operand in operands]
    renumbered = {operand.index: new for new, operand in enumerate(operands) if isinstance(operand, Kept)}
    attributes = {name: old.attributes[name] for name in old.attributes if name != BOUNDS}
    attributes[KERNEL] = ir.FlatSymbolRefAttr.get(kernel)
    try:
        config = backend_config.renumber_operands(launch.config, renumbered, len(values))
    except backend_config.ConfigError as error:
        raise ProgramError(str(error), old) from None
    attributes[BACKEND_CONFIG] = ir.StringAttr.get(config)
    if LAYOUTS in attributes:
        layouts = list(ir.ArrayAttr(attributes[LAYOUTS]))
        kept = [layouts[o.index] if isinstance(o, Kept) else _row_major(o) for o in operands]
        attributes[LAYOUTS] = ir.ArrayAttr.get(kept)
    if ALIASES in attributes:
        attributes[ALIASES] = ir.ArrayAttr.get(
            [_renumber_alias(a, renumbered) for a in ir.ArrayAttr(attributes[ALIASES])]
        )
    if SHAPE_OPERANDS in attributes:
        shapes = [renumbered[index] for index in ir.DenseI64ArrayAttr(attributes[SHAPE_OPERANDS])]
        attributes[SHAPE_OPERANDS] = ir.DenseI64ArrayAttr.get(shapes)
    return ir.Operation.create(
        old.name,
        results=[result.type for result in old.results],
        operands=values,
        attributes=attributes,
        loc=old.location,
        ip=ip or ir.InsertionPoint(old),
    )


Branch: TypeAlias = Callable[[ir.InsertionPoint], ir.Operation]
"""Makes a launch at an insertion point, with the results of the one it stands for."""


def choose_launch(launch: Launch, index: Value, branches: Sequence[Branch]) -> ir.Operation:
    """A `stablehlo.case` at the current insertion point whose branches are launches; an index that is out of range
    takes the last.
    """
    case = ir.Operation.create(
        "stablehlo.case",
        results=[result.type for result in launch.op.results],
        operands=[index],
        regions=len(branches),
    )
    for region, branch in zip(case.regions, branches, strict=True):
        ip = ir.InsertionPoint(ir.Block.create_at_start(region, []))
        with ip:
            stablehlo.return_(list(branch(ip).results))
    return case


def substitute_launch(launch: Launch, new: ir.Operation) -> None:
    """Makes everything use the new launch, or the choice between several, and removes the old one."""
    for old_result, new_result in zip(launch.op.results, new.results, strict=True):
        old_result.replace_all_uses_with(new_result)
    launch.op.erase()


def _row_major(value: Value) -> ir.Attribute:
    rank = ir.RankedTensorType(value.type).rank
    layout = ", ".join(str(axis) for axis in reversed(range(rank)))
    return ir.Attribute.parse(f"dense<[{layout}]> : tensor<{rank}xindex>" if rank else "dense<> : tensor<0xindex>")


def _renumber_alias(attribute: ir.Attribute, renumbered: dict[int, int]) -> ir.Attribute:
    alias = stablehlo.OutputOperandAlias(attribute)
    return stablehlo.OutputOperandAlias.get(
        output_tuple_indices=alias.output_tuple_indices,
        operand_index=renumbered[alias.operand_index],
        operand_tuple_indices=alias.operand_tuple_indices,
    )
