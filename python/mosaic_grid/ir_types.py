"""Names for the bindings' generic types where their parameter is of no interest."""

from __future__ import annotations

from typing import Any, TypeAlias

from jaxlib.mlir import ir

Value: TypeAlias = ir.Value[Any]
Argument: TypeAlias = ir.BlockArgument[Any]
