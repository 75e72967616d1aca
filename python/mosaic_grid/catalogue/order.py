"""Diagnostics about steps that depend on one another."""

from __future__ import annotations

from mosaic_grid.catalogue.entry import Entry
from mosaic_grid.severity import Severity

ENTRIES = (
    Entry(
        "parallel-race",
        Severity.ERROR,
        "two steps that may run on different cores write, or read and write, the same place",
        """
        The steps of a parallel dimension may run on different cores, in any order. Two of them that differ in it must
        not write the same block of an output, nor may one read what another writes through an alias or a copy of its
        own: which of them comes last is chance. The compiler doesn't check it.

        The message has two such steps and the block. On a device of one core the steps run in order, and this is only a
        warning.
        """,
        """
        pl.pallas_call(accumulate, grid=(8, 8), out_specs=pl.BlockSpec((128, 128), lambda b, i: (0, 0)), ...,
                       compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")))
        """,
        "Make the dimension arbitrary, or give each of its steps a block of its own and add them up afterwards:",
        """
        partial = pl.pallas_call(accumulate, grid=(8, 8), out_specs=pl.BlockSpec((None, 128, 128),
                                                                                 lambda b, i: (b, 0, 0)), ...)
        result = partial(x).sum(0)
        """,
    ),
    Entry(
        "carried-scratch",
        Severity.ERROR,
        "a value in scratch crosses a parallel dimension",
        """
        Each core has scratch memory of its own. A value that one step of a parallel dimension leaves there for another
        is lost where that other step runs on another core, which sees what nobody wrote.

        Something that is initialised in the first step of the whole grid, and added to in all the others, is the usual
        case. On a device of one core the steps run in order, and this is only a warning.
        """,
        """
        @pl.when((pl.program_id(0) == 0) & (pl.program_id(1) == 0))
        def _(): acc_ref[...] = jnp.zeros_like(acc_ref)
        acc_ref[...] += x_ref[...]    # dimension 0 is parallel
        """,
        "Initialise it at the beginning of each step of the parallel dimension, or make the dimension arbitrary:",
        """
        @pl.when(pl.program_id(1) == 0)
        def _(): acc_ref[...] = jnp.zeros_like(acc_ref)
        """,
    ),
    Entry(
        "nonconsecutive-revisit",
        Severity.ERROR,
        "an output block is left, come back to, and read back",
        """
        The pipeline writes an output block out when the grid moves on to another one. When a later step is at that
        block again, its buffer is not filled with what was written: a kernel that adds to the block then adds to what
        happens to be there. Steps that are at one block have to follow each other, in the order in which the last
        dimension runs fastest.

        A kernel that writes the whole block each time it is there, before it reads it, may come back; the last visit
        counts.
        """,
        """
        def kernel(x_ref, o_ref):
            @pl.when(pl.program_id(0) == 0)
            def _(): o_ref[...] = jnp.zeros_like(o_ref)
            o_ref[...] += x_ref[...]
        pl.pallas_call(kernel, grid=(k, j), out_specs=pl.BlockSpec((128, 128), lambda k, j: (j, 0)), ...)
        """,
        "Let the dimensions that choose the block come first, in the grid, in the index maps and in `program_id`:",
        """
        pl.pallas_call(kernel, grid=(j, k), out_specs=pl.BlockSpec((128, 128), lambda j, k: (j, 0)), ...)
        """,
    ),
    Entry(
        "stale-bound-constant",
        Severity.ERROR,
        "a guard compares a grid index with a number that fits one bound only",
        """
        An output that is written only where a grid index has a certain value isn't written at all where the grid is too
        small for that value. A "last step" that is spelt as a number is like that once the bound is dynamic, or once
        the block size has changed. It is an error where it happens for every input, and a warning with such an input
        otherwise.
        """,
        """
        @pl.when(pl.program_id(0) == 7)    # the grid is (n,), and n is traced
        def _(): o_ref[...] = acc_ref[...]
        """,
        "Ask for the bound:",
        """
        @pl.when(pl.program_id(0) == pl.num_programs(0) - 1)
        def _(): o_ref[...] = acc_ref[...]
        """,
    ),
    Entry(
        "prefetch-operand-written",
        Severity.WARNING,
        "the kernel changes a scalar-prefetch operand that an index map reads",
        """
        Index maps are evaluated ahead of the body: the block of the next step is on its way while a step runs. A step
        that changes the table which they read changes some blocks that come after it and not others, as the pipeline's
        depth has it. A prefetch operand that only the body reads may be changed; many kernels keep state there.
        """,
        """
        def kernel(table_ref, x_ref, o_ref):
            table_ref[pl.program_id(0) + 1] = 0    # in_specs: lambda i, table: (table[i], 0)
        """,
        "Compute the table before the launch, or keep what changes in scratch in SMEM:",
        """
        grid_spec = pltpu.PrefetchScalarGridSpec(..., scratch_shapes=[pltpu.SMEM((1,), jnp.int32)])
        """,
    ),
)
