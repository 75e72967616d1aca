"""Diagnostics of passes that rewrite programs, and of the compiler."""

from __future__ import annotations

from mosaic_grid.catalogue.entry import Entry
from mosaic_grid.severity import Severity

ENTRIES = (
    Entry(
        "not-partitioned",
        Severity.REMARK,
        "partition-cores leaves a dimension alone, and says why",
        """
        Sharing the dimension between cores would change results, or can't be shown not to: scratch carries a value from
        one step to another, two steps write one block, the kernel talks to other devices or does something that isn't
        followed. The kernel is left as it was, or shared along another dimension. Notes name dimensions that can be
        shared instead, and a way to let copies run ahead that cores can share.
        """,
        """
        remark: the kernel 'sum' can't be shared between cores along dimension 0: scratch operand 0 (f32[8,128]) is
        initialised only where grid index 0 is 0, so its value crosses dimension 0
        """,
        "Remove what stands in the way; the reason is at the operation at fault:",
        """
        @pl.when(pl.program_id(1) == 0)    # not (program_id(0) == 0) & (program_id(1) == 0)
        def _(): acc_ref[...] = jnp.zeros_like(acc_ref)
        """,
    ),
    Entry(
        "parallel-on-trust",
        Severity.REMARK,
        "a dimension is shared whose steps are not proved independent, because it is called parallel",
        """
        The kernel's author said "parallel", and nothing contradicts it; but it isn't proved, because blocks are read
        from a table or the kernel copies places itself. If the word is wrong, the results are. partition-cores says it
        of what it shares, specialize-grid of static variants, which the compiler shares.
        """,
        """
        pl.BlockSpec((8, 128), lambda i, table: (table[i], 0))    # may table hold a number twice?
        """,
        "Make sure of what the message says; where entries may be equal the dimension isn't parallel:",
        """
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary",))
        """,
    ),
    Entry(
        "nothing-to-share",
        Severity.REMARK,
        "partition-cores changed nothing, and says why",
        """
        No kernel has a dynamic parallel dimension or a core_parallel one that doesn't fit: the compiler shares static
        parallel dimensions by itself, and no others may be shared.
        """,
        """
        remark: partition-cores changed nothing: the compiler shares dimension 0 by itself ('matmul')
        """,
        "There is nothing to do; a dimension that could be shared has to be called parallel:",
        """
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary"))
        """,
    ),
    Entry(
        "variants-kept",
        Severity.REMARK,
        "specialize-grid says which variants of a kernel it keeps, and what each gains",
        """
        With `keep=profitable` each variant is compiled like the original, or judged by what folds away where there is
        no libtpu. It gains what its schedule, divided by the cores that run it, is shorter than the original's.
        """,
        """
        remark: specialize-grid keeps 1 of 2 variants of 'copy' for v5p
        """,
        "Those that gain little can be kept all the same:",
        """
        mosaic-opt dump.mlir -p 'specialize-grid{values=8,16 keep=profitable min-gain=0}' --target=v5p
        """,
    ),
    Entry(
        "not-specialized",
        Severity.REMARK,
        "specialize-grid leaves a kernel alone, or some of the values that were asked for, and says why",
        """
        No bound of the kernel is dynamic, too little is known of it to tell which values it takes, the values that are
        asked for can't occur, or there are more of them than the budget allows for.
        """,
        """
        remark: specialize-grid changed nothing: the bound of dimension 0 is n, in [-2147483648, 2147483647]: more
        values than the budget of 8 ('copy')
        """,
        "Say which bounds matter, or how large they can be:",
        """
        mosaic-opt dump.mlir -p 'specialize-grid{values=n=8,16,32}'
        """,
    ),
    Entry(
        "no-such-bound",
        Severity.REMARK,
        "specialize-grid has values for a bound that no kernel of the program has",
        """
        A key of `values` is the number of a dynamic dimension, or the name of an argument that a bound is computed
        from, of a kernel that its pattern matches. The notes say which bounds there are.
        """,
        """
        remark: specialize-grid has values for 'm', but no kernel has such a dynamic bound
        note: 'copy' has dimension 0: ceildiv(n, 128)
        """,
        "Name one of those; where a bound is computed from several arguments each needs values:",
        """
        mosaic-opt dump.mlir -p 'specialize-grid{values=n=1024}'
        """,
    ),
    Entry(
        "does-not-compile",
        Severity.ERROR,
        "libtpu refuses the program",
        """
        What `--compile` was told by the real compiler, its message cut to the sentence that says what is wrong.
        """,
        """
        mosaic-opt dump.mlir --compile=v5p
        """,
        "The place is the operation that it refuses; its dumps of each stage show how far it came:",
        """
        mosaic-opt dump.mlir --compile=v5p --keep-compiler-dumps=dumps/
        """,
    ),
)
