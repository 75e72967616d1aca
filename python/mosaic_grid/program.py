"""Thin typed views over the unpacked program: no second copy of the IR, only names for its parts.

A program is one `builtin.module` with the outer functions and, nested in it, a module for each kernel. A *launch* is a
`tpu_custom_call` that names its kernel in the attribute `mosaic.kernel`. A bare kernel is a program without launches.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

from jaxlib.mlir import ir

from mosaic_grid.diagnostics import place_of
from mosaic_grid.errors import UserError
from mosaic_grid.grid import DYNAMIC, Dimension, Semantics
from mosaic_grid.ir_types import Argument, Value

_Attribute = TypeVar("_Attribute", bound=ir.Attribute)

KERNEL = "mosaic.kernel"
BACKEND_CONFIG = "backend_config"
TARGET = "tpu_custom_call"
VERSION = "stable_mosaic.version"
CUSTOM_CALLS = frozenset({"stablehlo.custom_call", "mhlo.custom_call"})


class ProgramError(UserError):
    """A program whose parts do not fit together, at `op`; the message says how."""

    def __init__(self, message: str, op: ir.Operation, notes: Sequence[str] = ()) -> None:
        super().__init__(message, place_of(op.location), notes)
        self.op = op


@dataclasses.dataclass(frozen=True)
class Window:
    """A block of an operand that the pipeline brings in, or writes back, at each grid step.

    `shape` is the block's; `transform` names the index map, from grid indices and prefetch operands to block indices
    (to element indices where `kind` is an element window). Both are `None` for an operand that is handed over whole.
    """

    argument: Argument
    params: ir.DictAttr

    @cached_property
    def type(self) -> ir.MemRefType:
        """The window's buffer in the kernel."""
        return ir.MemRefType(self.argument.type)

    @cached_property
    def shape(self) -> tuple[int, ...] | None:
        """The block's shape, with the squeezed dimensions that the buffer's type lacks."""
        bounds = self._param("window_bounds")
        return tuple(ir.DenseI64ArrayAttr(bounds)) if bounds is not None else None

    @cached_property
    def transform(self) -> str | None:
        """The symbol of the index map, where it is a function."""
        named = self._param("transform_indices")
        return named.value if isinstance(named, ir.FlatSymbolRefAttr) else None

    @cached_property
    def affine_map(self) -> ir.AffineMap | None:
        """The index map where it is an attribute: JAX writes a constant one for an operand handed over whole."""
        attribute = self._param("transform_indices")
        return attribute.value if isinstance(attribute, ir.AffineMapAttr) else None

    @cached_property
    def kind(self) -> ir.Attribute | None:
        """`#tpu.element_window<[low], [high]>` where blocks are counted in elements, else `None`."""
        return self._param("window_kind")

    @cached_property
    def restores(self) -> bool:
        """Whether an output's block is brought in again when it is revisited, at whatever step."""
        mode = self._param("revisit_mode")
        return mode is not None and "any" in str(mode)

    def _param(self, name: str) -> ir.Attribute | None:
        return self.params[name] if name in self.params else None  # noqa: SIM401 (MLIR's `get` makes a new attribute)


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A Mosaic kernel: the module it stands in, whose first function is its body; the others are index maps."""

    module: ir.Operation

    @cached_property
    def memo(self) -> dict[object, Any]:
        """What analyses have found, by keys of their own; as all properties, good while nothing changes the kernel."""
        return {}

    @cached_property
    def symbol(self) -> str:
        """The name that launches use; empty for a bare module without a name."""
        return symbol_of(self.module) or ""

    @cached_property
    def body(self) -> ir.Operation:
        """The kernel's function. Raises `ProgramError` where there is none."""
        for function in block_of(self.module):
            if function.operation.name == "func.func":
                return function.operation
        raise ProgramError(f"the kernel @{self.symbol} has no function", self.module)

    @cached_property
    def name(self) -> str:
        """The name its author gave it."""
        return symbol_of(self.body) or self.symbol

    @cached_property
    def on_tensor_core(self) -> bool:
        """Whether it runs on TensorCores: not on the SparseCores, whose dimensions are shared by other rules."""
        attributes = self.body.attributes
        return "tpu.core_type" not in attributes or str(attributes["tpu.core_type"]) == "#tpu.core_type<tc>"

    @cached_property
    def functions(self) -> dict[str, ir.Operation]:
        """Every function of the module by its symbol."""
        functions = (op.operation for op in block_of(self.module) if op.operation.name == "func.func")
        return {symbol_of(function) or "": function for function in functions}

    @cached_property
    def grid(self) -> tuple[Dimension, ...]:
        """The dimensions of the grid, outermost first; a kernel without `iteration_bounds` has none."""
        bounds = list(attribute_of(self.body, "iteration_bounds", ir.DenseI64ArrayAttr) or [])
        words = self._semantics() or [Semantics.ARBITRARY] * len(bounds)
        if len(words) != len(bounds):
            raise ProgramError("iteration_bounds and dimension_semantics differ in length", self.body)
        return tuple(Dimension(None if n == DYNAMIC else n, word) for n, word in zip(bounds, words, strict=True))

    def _semantics(self) -> list[Semantics]:
        words = list(attribute_of(self.body, "dimension_semantics", ir.ArrayAttr) or [])
        try:
            meanings = {word: Semantics.of(word) for word in set(words)}
            return [meanings[word] for word in words]
        except ValueError as error:
            raise ProgramError(f"dimension_semantics can't be read: {error}", self.body) from None

    @cached_property
    def dynamic_dimensions(self) -> tuple[int, ...]:
        """The dimensions whose bound is an operand of the launch, in the order of these operands."""
        return tuple(axis for axis, dimension in enumerate(self.grid) if dimension.bound is None)

    @cached_property
    def prefetch_count(self) -> int:
        """How many scalar-prefetch operands there are."""
        return _integer(self.body, "scalar_prefetch")

    @cached_property
    def scratch_count(self) -> int:
        """How many scratch buffers and semaphores the kernel's last arguments are."""
        return _integer(self.body, "scratch_operands")

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        """Grid indices, then prefetch operands, then windows (inputs before outputs), then scratch."""
        return tuple(self.body.regions[0].blocks[0].arguments)

    @cached_property
    def prefetch(self) -> tuple[Argument, ...]:
        """The scalar-prefetch operands, in SMEM."""
        start = len(self.grid)
        return self.arguments[start : start + self.prefetch_count]

    @cached_property
    def scratch(self) -> tuple[Argument, ...]:
        """Scratch buffers and semaphores."""
        arguments = self.arguments
        return arguments[len(arguments) - self.scratch_count :]

    @cached_property
    def windows(self) -> tuple[Window, ...]:
        """Inputs, then outputs; a kernel without `window_params` gets every operand whole."""
        arguments = self.arguments
        start = len(self.grid) + self.prefetch_count
        operands = arguments[start : len(arguments) - self.scratch_count]
        listed = attribute_of(self.body, "window_params", ir.ArrayAttr)
        if listed is None:
            return tuple(Window(argument, ir.DictAttr.get({})) for argument in operands)
        params = [param for param in listed if isinstance(param, ir.DictAttr)]
        if len(params) != len(listed):
            raise ProgramError("window_params has an entry that is no dictionary", self.body)
        for param in params:
            if "window_bounds" in param and not isinstance(param["window_bounds"], ir.DenseI64ArrayAttr):
                raise ProgramError(f"window_bounds can't be {param['window_bounds']}", self.body)
        if len(params) != len(operands):
            raise ProgramError("window_params and the kernel's arguments differ in number", self.body)
        return tuple(Window(argument, param) for argument, param in zip(operands, params, strict=True))


@dataclasses.dataclass(frozen=True)
class Launch:
    """A `tpu_custom_call` of the outer program together with its kernel.

    Its operands are one i32 scalar for each dynamic bound, in order, then scalar-prefetch operands, then inputs.
    """

    op: ir.Operation
    kernel: Kernel

    @cached_property
    def bounds(self) -> dict[int, Value]:
        """The operand that holds the bound of each dynamic dimension."""
        return dict(zip(self.kernel.dynamic_dimensions, self.op.operands, strict=False))

    @cached_property
    def config(self) -> str:
        """The launch's backend_config, without the kernel. Raises `ProgramError` where it has none."""
        found = attribute_of(self.op, BACKEND_CONFIG, ir.StringAttr)
        if found is None:
            raise ProgramError("this launch has no backend_config string", self.op)
        return str(found.value)


@dataclasses.dataclass(frozen=True)
class Program:
    """An unpacked program."""

    module: ir.Operation

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """The kernels by symbol, in the order in which they stand; a bare kernel is its own program."""
        if is_kernel(self.module):
            return {symbol_of(self.module) or "": Kernel(self.module)}
        nested = (op.operation for op in block_of(self.module))
        return {symbol_of(op) or "": Kernel(op) for op in nested if is_kernel(op)}

    @cached_property
    def launches(self) -> tuple[Launch, ...]:
        """The launches in walk order. Raises `ProgramError` where one names a kernel that is not there."""
        return tuple(self._launches())

    def _launches(self) -> Iterator[Launch]:
        for op in custom_calls(self.module):
            if KERNEL not in op.attributes:
                continue
            reference = attribute_of(op, KERNEL, ir.FlatSymbolRefAttr)
            symbol = reference.value if reference else ""
            if symbol not in self.kernels:
                kernels = ", ".join(f"@{name}" for name in self.kernels)
                known = [f"the kernels are {kernels}" if kernels else "there is no kernel in it"]
                raise ProgramError(f"this launch names the kernel @{symbol}, which is not in the program", op, known)
            kernel = self.kernels[symbol]
            if len(op.operands) < len(kernel.dynamic_dimensions) + kernel.prefetch_count:
                raise ProgramError(
                    f"this launch has fewer operands than @{symbol} has bounds and prefetch operands", op
                )
            yield Launch(op, kernel)


def allocates(op: ir.Operation) -> bool:
    """Whether an operation of the outer program gives an array that nobody fills, as `jax.lax.empty` becomes."""
    return op.name in CUSTOM_CALLS and ir.StringAttr(op.attributes["call_target_name"]).value == "AllocateBuffer"


def custom_calls(program: ir.Operation) -> list[ir.Operation]:
    """Every `tpu_custom_call` of the outer functions, packed or not, in walk order; kernels are not looked into."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "builtin.module" and op.parent is not None and is_kernel(op):
            return ir.WalkResult.SKIP
        if op.name in CUSTOM_CALLS and ir.StringAttr(op.attributes["call_target_name"]).value == TARGET:
            found.append(op)
        return ir.WalkResult.ADVANCE

    if not is_kernel(program):
        program.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def is_kernel(op: ir.Operation) -> bool:
    """Whether a module is a Mosaic kernel: it carries its version, or its first function says which core it is for."""
    if op.name != "builtin.module":
        return False
    if VERSION in op.attributes:
        return True
    first = next(iter(block_of(op)), None)
    return first is not None and any(key in first.operation.attributes for key in ("tpu.core_type", "iteration_bounds"))


def symbol_of(op: ir.Operation) -> str | None:
    """The symbol an op defines."""
    return ir.StringAttr(op.attributes["sym_name"]).value if "sym_name" in op.attributes else None


def block_of(module: ir.Operation) -> ir.OperationList:
    """The ops of a module's only block."""
    operations: ir.OperationList = module.regions[0].blocks[0].operations
    return operations


def attribute_of(op: ir.Operation, name: str, kind: type[_Attribute]) -> _Attribute | None:
    """The attribute of this name, `None` where there is none. Raises `ProgramError` where it is of another kind."""
    if name not in op.attributes:
        return None
    found = op.attributes[name]
    if not isinstance(found, kind):
        raise ProgramError(f"'{name}' is not what it should be: {str(found)[:80]}", op)
    return found


def _integer(op: ir.Operation, name: str) -> int:
    found = attribute_of(op, name, ir.IntegerAttr)
    return found.value if found is not None else 0
