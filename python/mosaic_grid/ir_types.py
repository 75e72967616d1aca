"""Names for the bindings' generic types where their parameter is of no interest."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

type Value = ir.Value[Any]
type Argument = ir.BlockArgument[Any]
