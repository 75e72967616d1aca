"""Making the kernels of variants: each once for all launches that would get the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from jaxlib.mlir import ir

from mosaic_grid.diagnostics import Diagnostic
from mosaic_grid.grid import Dimension
from mosaic_grid.kernel_edit import set_grid
from mosaic_grid.native_passes import run_native
from mosaic_grid.partition import kernel_scalars as scalars
from mosaic_grid.partition.kernel import partition_kernel
from mosaic_grid.program import Kernel, Program, block_of, symbol_of
from mosaic_grid.resolve import make_static
from mosaic_grid.unpack import unique_symbol
from mosaic_grid.variants.guarded import guard
from mosaic_grid.variants.known import replace_loads
from mosaic_grid.variants.plan import Variant

FOLDS = "sccp,canonicalize"
"""MLIR's passes that work out what follows from a constant bound: guards, selections, trip counts."""


def specialize(module: ir.Operation, variant: Variant) -> None:
    """Rewrites a kernel module in place: its grid, whatever asks for a bound, and what follows from it.

    A guarded variant takes the last steps of its guarded dimensions as its last scalar-prefetch operands. Behind them
    are, for one that it shares between cores, the table of `partition_kernel` and the last step of the longest share.
    """
    original = Kernel(module).grid
    grid, split = variant.grid(original), variant.split(original)
    for steps in variant.guarded:
        if steps != variant.shared:
            guard(module, steps.axis)
    # the static dimensions of the original too: it may ask for their bounds all the same
    guarded = {steps.axis for steps in variant.guarded}
    bounds = {axis: dimension.bound for axis, dimension in enumerate(grid) if axis not in guarded}
    make_static(module, {axis: bound for axis, bound in bounds.items() if bound is not None})
    kernel = Kernel(module)
    set_grid(kernel.body, grid)
    _replace_known_indices(kernel, grid)
    if split is not None:
        # before folding: the table has an entry for each bound that the original asks for, of use or not
        partition_kernel(module, split)
        guard(module, split.counted)
        shares = list(split.partitioned_grid)
        shares[split.counted] = dataclasses.replace(shares[split.counted], bound=variant.longest_share(split))
        set_grid(Kernel(module).body, shares)
    fold(module)
    # loads are told from constant indices, which folding makes
    if replace_loads(Kernel(module), variant.known):
        fold(module)


def _replace_known_indices(kernel: Kernel, grid: Sequence[Dimension]) -> None:
    """Writes 0 for the index of each dimension of one step, which MLIR has no way to know."""
    maps = {window.transform for window in kernel.windows}
    for symbol, function in kernel.functions.items():
        if symbol not in maps and function != kernel.body:
            continue
        block = function.regions[0].blocks[0]
        for axis, dimension in enumerate(grid):
            if dimension.bound == 1:
                with function.location, ir.InsertionPoint.at_block_begin(block):
                    block.arguments[axis].replace_all_uses_with(scalars.constant(0))


def fold(module: ir.Operation) -> None:
    """Works out what is constant in a kernel module, in place."""

    def ignore(_: Diagnostic) -> None:
        """What MLIR has to remark about a kernel was so before."""

    run_native(FOLDS, module, True, ignore)


@dataclasses.dataclass
class Kernels:
    """The kernels made so far in a program, each under a symbol of its own."""

    program: Program

    def __post_init__(self) -> None:
        """Notes which symbols are taken."""
        self._taken = {name for op in block_of(self.program.module) if (name := symbol_of(op.operation))}
        self._made: dict[tuple[str, Variant], str] = {}
        self._same: dict[str, str] = {}

    @property
    def symbols(self) -> frozenset[str]:
        """What has been made."""
        return frozenset(self._made.values())

    def symbol(self, kernel: Kernel, variant: Variant) -> str:
        """The kernel of a variant; kernels that differ in source locations only are one, as to the compiler."""
        key = (kernel.symbol, variant)
        if key not in self._made:
            block = self.program.module.regions[0].blocks[0]
            clone = kernel.module.clone(ip=ir.InsertionPoint(block)).operation
            specialize(clone, variant)
            clone.attributes["sym_name"] = ir.StringAttr.get("variant")
            text = str(clone)
            if text in self._same:
                clone.erase()
            else:
                bounds = "".join(f"_d{steps.axis}_{steps.bound}" for steps in variant.steps)
                self._same[text] = unique_symbol(f"{kernel.symbol}{bounds}", self._taken)
                self._taken.add(self._same[text])
                clone.attributes["sym_name"] = ir.StringAttr.get(self._same[text])
            self._made[key] = self._same[text]
        return self._made[key]
