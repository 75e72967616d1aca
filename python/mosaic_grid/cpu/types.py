"""How Mosaic's types are spelled in StableHLO."""

from __future__ import annotations

from jaxlib.mlir import ir

from mosaic_grid.cpu.build import i32_type, tensor

_SEMAPHORES = ("!tpu.semaphore", "!tpu.dma_semaphore")


def is_semaphore(element: ir.Type) -> bool:
    """Whether memory of this type holds semaphores."""
    return str(element) in _SEMAPHORES


def lowered_element(element: ir.Type) -> ir.Type:
    """`index` and semaphores are i32; numbers stay what they are, signless."""
    if isinstance(element, ir.IndexType) or is_semaphore(element):
        return i32_type()
    return element


def lowered(kind: ir.Type) -> ir.RankedTensorType:
    """The tensor type of a scalar, vector or memref of static shape."""
    if isinstance(kind, ir.VectorType | ir.MemRefType):
        return tensor(kind.shape, lowered_element(kind.element_type))
    return tensor((), lowered_element(kind))


def unsigned(element: ir.Type) -> ir.Type:
    """The unsigned integer type of the same width."""
    return ir.IntegerType.get_unsigned(ir.IntegerType(element).width)
