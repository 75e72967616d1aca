"""The arrays of a launch: operands and results as roots. A result that aliases an operand is the same root."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable, Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid import backend_config
from mosaic_grid.cpu import build
from mosaic_grid.cpu.fill import uninitialized
from mosaic_grid.cpu.memory import Memory
from mosaic_grid.cpu.options import Options
from mosaic_grid.cpu.roots import Kind, Root
from mosaic_grid.cpu.types import is_semaphore, lowered_element
from mosaic_grid.cpu.windows import Block
from mosaic_grid.ir_types import Value
from mosaic_grid.program import BACKEND_CONFIG, Launch, attribute_of

ALIASES = "output_operand_aliases"


@dataclasses.dataclass(frozen=True)
class Array:
    """A root and where its contents come from: an operand of the launch, or nowhere.

    The array lies in the root at `low`, with padding around it that makes every block whole. `counts` says that it
    holds semaphores, which count from 0 where the launch makes them.
    """

    root: Root
    shape: tuple[int, ...]
    low: tuple[int, ...]
    operand: int | None
    counts: bool = False

    def origin(self, block: Block | None) -> tuple[int, ...]:
        """Where in the root the block of index 0 begins, or the array where there is no block."""
        return tuple(map(operator.sub, self.low, block.low)) if block is not None else self.low

    def bring_in(self, memory: Memory, operands: Sequence[Value], options: Options) -> None:
        """Makes the root's first contents."""
        if self.operand is None:
            shape, element = self.root.shape, self.root.element
            first = build.constant(0, shape, element) if self.counts else uninitialized(shape, element, options)
            memory.state[self.root] = first
            return
        value = build.bitcast(operands[self.operand], self.root.element)
        sides = zip(self.root.shape, self.shape, self.low, strict=True)
        high = [padded - size - low for padded, size, low in sides]
        memory.state[self.root] = build.pad(value, self.low, high, uninitialized((), self.root.element, options))

    def take_out(self, memory: Memory, element: ir.Type) -> Value:
        """The array without its padding, as the launch's result has it."""
        return build.bitcast(build.slice_(memory.whole(self.root), self.low, self.shape), element)


def aliases_of(launch: ir.Operation) -> dict[int, int]:
    """The operand whose buffer a result takes over, by the result's number."""
    found = attribute_of(launch, ALIASES, ir.ArrayAttr)
    pairs = [hlo.OutputOperandAlias(alias) for alias in found or []]
    return {(list(pair.output_tuple_indices) or [0])[0]: pair.operand_index for pair in pairs}


def placed(launch: Launch) -> tuple[frozenset[int], frozenset[int]]:
    """The operands and results, by number, that are in another memory than HBM before and after the launch.

    None of a launch whose configuration doesn't say it, or in no way that is known.
    """
    if BACKEND_CONFIG not in launch.op.attributes:
        return frozenset(), frozenset()
    try:
        return backend_config.placed(launch.config)
    except backend_config.ConfigError:
        return frozenset(), frozenset()


def array_for(
    name: str,
    kind: ir.RankedTensorType,
    blocks: Iterable[Block | None],
    operand: int | None,
    element: ir.Type,
    location: ir.Location | None = None,
) -> Array:
    """The array of a launch's operand or result, padded so that each block that is one of its windows is whole.

    `element` is the kernel's element type, which has no sign; `location` names the array.
    """
    shape = tuple(kind.shape)
    low, high = (0,) * len(shape), (0,) * len(shape)
    for block in blocks:
        if block is not None:
            low, high = tuple(map(max, low, block.low)), tuple(map(max, high, block.overhang(shape)))
    padded = tuple(map(sum, zip(low, shape, high, strict=True)))
    root = Root(name, padded, lowered_element(element), Kind.ARRAY, location)
    return Array(root, shape, low, operand, is_semaphore(element))
