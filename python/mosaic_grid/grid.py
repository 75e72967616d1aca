"""A grid's dimensions: how many steps, and what their order may be."""

from __future__ import annotations

import dataclasses
import enum

from jaxlib.mlir import ir

DYNAMIC = -(2**63)
"""How `iteration_bounds` spells a bound that is an operand of the launch."""

I32_MAX = 2**31 - 1
"""The largest bound: grid indices and dynamic bounds are i32."""


_PLACEHOLDERS = 128
"""How many of the last i32 numbers an export with symbolic shapes uses for sizes (JAX's `lowering.py`)."""


def is_placeholder(size: int) -> bool:
    """Whether a size stands for one that a shape-polymorphic export knows by a symbol only."""
    return I32_MAX - _PLACEHOLDERS <= size <= I32_MAX


class Semantics(enum.Enum):
    """`#tpu.dimension_semantics`: what the steps of a dimension may assume of each other."""

    PARALLEL = "parallel"
    ARBITRARY = "arbitrary"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"

    @classmethod
    def of(cls, attribute: ir.Attribute) -> Semantics:
        """Reads the attribute; the bindings have no accessor for it but its text."""
        return cls(str(attribute).removeprefix("#tpu.dimension_semantics<").removesuffix(">"))

    @property
    def attribute(self) -> ir.Attribute:
        """The attribute, in the current context."""
        return ir.Attribute.parse(f"#tpu.dimension_semantics<{self.value}>")


@dataclasses.dataclass(frozen=True)
class Dimension:
    """One dimension of a grid; a bound of `None` is only known when the kernel is launched."""

    bound: int | None
    semantics: Semantics

    @property
    def is_parallel(self) -> bool:
        """Whether the steps may run in any order, on any core."""
        return self.semantics in (Semantics.PARALLEL, Semantics.CORE_PARALLEL)

    def __str__(self) -> str:
        return "?" if self.bound is None else str(self.bound)
