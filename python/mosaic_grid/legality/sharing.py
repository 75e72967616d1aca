"""A kernel whose grid is to be shared, with its arguments by their roles."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from mosaic_grid.dataflow.body import events_in
from mosaic_grid.dataflow.effects import Effect, effect_of
from mosaic_grid.dataflow.events import Event
from mosaic_grid.ir_types import Value
from mosaic_grid.program import Kernel, Launch, Window

_ALIASES = "output_operand_aliases"
# where a buffer belongs to one core; the rest is memory that cores share
_OWN = frozenset({"vmem", "smem", "semaphore_mem"})


@dataclasses.dataclass(frozen=True)
class Alias:
    """An output that is written over an input; `input` is None for an operand that isn't a window."""

    input: int | None
    output: int


@dataclasses.dataclass(frozen=True)
class Sharing:
    """`axes` are the dimensions that are split; the first `inputs` windows are inputs, the others outputs.

    `most` says of dynamic dimensions how many steps they have at most, where that is known.
    """

    kernel: Kernel
    axes: tuple[int, ...]
    inputs: int
    aliases: tuple[Alias, ...]
    most: Mapping[int, int]

    @classmethod
    def of(
        cls, kernel: Kernel, axes: Sequence[int], launches: Sequence[Launch], most: Mapping[int, int] | None = None
    ) -> Sharing:
        """Reads the number of outputs, and the aliases, from the launches; without any, from what the body writes."""
        windows = kernel.windows
        outputs = max(len(launch.op.results) for launch in launches) if launches else _outputs_written(kernel)
        inputs = len(windows) - min(outputs, len(windows))
        aliases = {alias for launch in launches for alias in _aliases(launch, inputs)}
        return cls(kernel, tuple(axes), inputs, tuple(sorted(aliases, key=lambda a: a.output)), most or {})

    @property
    def bounds(self) -> tuple[int | None, ...]:
        """The grid's bounds."""
        return tuple(dimension.bound for dimension in self.kernel.grid)

    @property
    def trusted(self) -> bool:
        """Whether an author has called all split dimensions parallel."""
        return all(self.kernel.grid[axis].is_parallel for axis in self.axes)

    @property
    def outer(self) -> tuple[int, ...]:
        """The dimensions in front of the last split one that aren't split."""
        return tuple(axis for axis in range(max(self.axes) + 1) if axis not in self.axes)

    @property
    def first_window(self) -> int:
        """The argument that is the first window."""
        return len(self.kernel.grid) + self.kernel.prefetch_count

    @property
    def first_scratch(self) -> int:
        """The argument that is the first scratch operand."""
        return len(self.kernel.arguments) - self.kernel.scratch_count

    def race(self, first: Sequence[int], second: Sequence[int]) -> str:
        """How two steps that do what they must not begin a reason."""
        axis = next(a for a in self.axes if first[a] != second[a])
        steps = f"steps {listed(first)} and {listed(second)}"
        dimension = self.kernel.grid[axis]
        return f"{dimension.semantics.value} dimension {axis} is a race: {steps}" if dimension.is_parallel else steps

    def name(self, argument: int) -> str:
        """What a person calls an argument."""
        if argument < self.first_window:
            return f"prefetch operand {argument - len(self.kernel.grid)}"
        window = argument - self.first_window
        if argument >= self.first_scratch:
            return f"scratch operand {argument - self.first_scratch} ({_shape_of(self.kernel.arguments[argument])})"
        return f"input {window}" if window < self.inputs else f"output {window - self.inputs}"


def listed(numbers: Sequence[int | str]) -> str:
    """A step or a block as a person writes it."""
    return f"({', '.join(str(number) for number in numbers)})"


def memory_space(argument: Value) -> str:
    """Where a memref lives: `vmem`, `smem`, `hbm`, `any`, ...; `vmem` where it doesn't say."""
    space = ir.MemRefType(argument.type).memory_space
    return str(space).removeprefix("#tpu.memory_space<").removesuffix(">") if space is not None else "vmem"


def is_own_memory(argument: Value) -> bool:
    """Whether each core has such a buffer for itself."""
    return memory_space(argument) in _OWN


def is_semaphore(argument: Value) -> bool:
    """Whether a memref holds semaphores."""
    return "semaphore" in str(ir.MemRefType(argument.type).element_type)


def has_blocks(window: Window) -> bool:
    """Whether a window is a block that the pipeline moves, chosen by an index map."""
    return "transform_indices" in window.params and is_own_memory(window.argument)


def _shape_of(argument: Value) -> str:
    kind = ir.MemRefType(argument.type)
    sizes = ",".join("?" if size < 0 else str(size) for size in kind.shape)
    return f"{kind.element_type}[{sizes}]"


def _outputs_written(kernel: Kernel) -> int:
    """How many of the last windows there are from the first one that the body writes."""
    written = {target_of(event) for event in events_in(kernel)}
    windows = [window.argument for window in kernel.windows]
    first = next((i for i, argument in enumerate(windows) if argument in written), len(windows))
    return len(windows) - first


def target_of(event: Event) -> Value | None:
    """The buffer that an operation writes, if it does."""
    match event.effect:
        case Effect.WRITE | Effect.WRITE_SCATTERED:
            return behind(event.operands[1])
        case Effect.COPY_START:
            target = event.named("target")
            return behind(target) if target is not None else None
    return None


def behind(value: Value) -> Value:
    """The buffer behind views."""
    while isinstance(value, ir.OpResult) and effect_of(value.owner.operation) is Effect.VIEW:
        value = value.owner.operation.operands[0]
    return value


def _aliases(launch: Launch, inputs: int) -> list[Alias]:
    if _ALIASES not in launch.op.attributes:
        return []
    before = len(launch.kernel.dynamic_dimensions) + launch.kernel.prefetch_count
    found: list[Alias] = []
    for attribute in ir.ArrayAttr(launch.op.attributes[_ALIASES]):
        alias = stablehlo.OutputOperandAlias(attribute)
        window = alias.operand_index - before
        output = next(iter(alias.output_tuple_indices), 0)
        found.append(Alias(window if 0 <= window < inputs else None, inputs + output))
    return found
