"""Diagnostics about grids, windows and memory."""

from __future__ import annotations

from mosaic_grid.catalogue.entry import Entry
from mosaic_grid.severity import Severity

ENTRIES = (
    Entry(
        "zero-trip-grid",
        Severity.ERROR,
        "a dimension of the grid has no step, so the kernel never runs",
        """
        With a bound of 0 no step runs and no output is written: the results hold whatever was in memory. It comes from
        rounding down where an array is smaller than a block. Outputs that are written over an input keep its values,
        and an output without elements has none to write.
        """,
        """
        pl.pallas_call(kernel, grid=(x.shape[0] // 2048,), ...)(x)    # x has 1024 rows
        """,
        "Round up, which makes the last block a partial one, or choose a block that is no larger than the array:",
        """
        pl.pallas_call(kernel, grid=(pl.cdiv(x.shape[0], 2048),), ...)(x)
        """,
    ),
    Entry(
        "grid-overflow",
        Severity.ERROR,
        "the grid has more steps than 32 bits count",
        """
        Grid indices are i32, and so is the count of all steps: libtpu fails on static bounds whose product is 2**31 - 1
        or more, and no index reaches a bound beyond 2**31 - 1.
        """,
        """
        pl.pallas_call(kernel, grid=(65536, 65536), ...)
        """,
        "Use larger blocks, or loop in the kernel over some of what a dimension counts:",
        """
        pl.pallas_call(kernel, grid=(8192, 8192), ...)    # blocks of 8 times the size in both directions
        """,
    ),
    Entry(
        "index-map-in-elements",
        Severity.ERROR,
        "an index map gives the index of an element where that of a block is wanted",
        """
        An index map returns block indices: block i of size 128 begins at element 128 * i. One that multiplies by the
        block's size itself lies beyond the end of the array from the second block on, where windows read garbage, and
        writes are lost or hit other arrays. Nobody checks it.
        """,
        """
        pl.BlockSpec((128, 1024), lambda i: (i * 128, 0))
        """,
        "Leave the multiplication out:",
        """
        pl.BlockSpec((128, 1024), lambda i: (i, 0))
        """,
    ),
    Entry(
        "window-out-of-bounds",
        Severity.ERROR,
        "a window lies wholly outside of its array",
        """
        A block whose first element is beyond the end of the array, or whose index is negative, holds nothing of it:
        reading it gives garbage and writing it is lost or hits other arrays. The last block of an array may be a
        partial one; that is legal.

        It is an error where it happens whenever the kernel runs, and a warning where it takes certain inputs, which the
        message has. `--contracts` says what inputs there are; what a table holds that an index map reads is looked at
        only where a contract speaks of it.
        """,
        """
        pl.BlockSpec((128, 1024), lambda i: (i + 1, 0))    # as many steps as there are blocks
        """,
        "Keep the index within the array:",
        """
        pl.BlockSpec((128, 1024), lambda i: (jnp.minimum(i + 1, blocks - 1), 0))
        """,
    ),
    Entry(
        "output-not-covered",
        Severity.WARNING,
        "no step writes some block of an output",
        """
        A block of an output that is no step's window keeps what was in memory, which is no result. That may be meant: a
        program may cut off what wasn't written. Where it takes certain inputs it is told with `--strict` only, as many
        kernels with a dynamic grid leave a part unwritten on purpose. An output that is written over an input has the
        input's values there.
        """,
        """
        pl.pallas_call(kernel, grid=(4,), out_specs=pl.BlockSpec((128, 128), lambda i: (2 * i, 0)), ...)
        """,
        "Let the grid and the index map reach each block, or give the rest its values by an alias:",
        """
        pl.pallas_call(kernel, ..., input_output_aliases={0: 0})    # the first input has them
        """,
    ),
    Entry(
        "vmem-overflow",
        Severity.ERROR,
        "the kernel's buffers are larger than a core's vector memory",
        """
        Windows that move are there twice, so that one is transferred while the kernel works on the other; with scratch
        they have to fit into the VMEM of one core (64 MiB on v5p, 128 MiB on v5e and v6e). The number is a lower bound:
        elements packed without a gap, and nothing that the compiler needs for itself.
        """,
        """
        pl.BlockSpec((4096, 4096), lambda i: (i, 0))    # float32: 64 MiB, twice
        """,
        "Use smaller blocks, and more steps; or leave the operand in HBM and copy what you need:",
        """
        pl.BlockSpec((512, 4096), lambda i: (i, 0))
        """,
    ),
    Entry(
        "smem-overflow",
        Severity.ERROR,
        "the kernel's scalars are larger than a core's scalar memory",
        """
        Scalar-prefetch operands are copied whole into SMEM before the first step; with windows and scratch there they
        have to fit into the SMEM of one core (1 MiB since v4, 16 KiB before). The number is a lower bound.
        """,
        """
        # a page table of int32[2048, 1024] as scalar-prefetch operand: 8 MiB
        """,
        "Prefetch what a step needs only, as an operand with blocks in SMEM, or keep the table in HBM and copy rows:",
        """
        pl.BlockSpec((1, 1024), lambda i: (i, 0), memory_space=pltpu.SMEM)
        """,
    ),
    Entry(
        "unproven-alignment",
        Severity.ERROR,
        "a slice begins at an index that the compiler can't prove to be aligned",
        """
        Vectors are in tiles of 8 rows and 128 lanes. The compiler refuses a load or a store in VMEM whose first row
        isn't provably a multiple of 8, and one whose first lane isn't of 128: "cannot statically prove that index in
        dimension 0 is a multiple of 8". Only a single row of 32-bit elements may be anywhere. Rows of 8-bit elements
        come in 32 where these fill the buffer, and a buffer of 2 or 4 rows is one tile.

        It looks at operations: constants, pl.multiple_of, products with constants, sums, differences, minima,
        selections, quotients and remainders of multiples. It sees neither shifts, masks and maxima nor contracts, and
        nothing of grid indices and numbers that are read. The note says where the index isn't a multiple, or that it
        always is one.
        """,
        """
        def kernel(start_ref, x_ref, o_ref):
            o_ref[...] = x_ref[pl.ds(start_ref[0], 8), :]
        """,
        "Say what you know, or keep a number of tiles in the table instead of one of rows:",
        """
        o_ref[...] = x_ref[pl.ds(pl.multiple_of(start_ref[0], 8), 8), :]
        o_ref[...] = x_ref[pl.ds(tile_ref[0] * 8, 8), :]
        """,
    ),
)
