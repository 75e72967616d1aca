"""Diagnostics about cores that idle, and about grids that no device takes as they are."""

from __future__ import annotations

from mosaic_grid.catalogue.entry import Entry
from mosaic_grid.severity import Severity

ENTRIES = (
    Entry(
        "idle-cores",
        Severity.WARNING,
        "a core of the device has nothing to do while the kernel runs",
        """
        Where one device has two cores (v4, v5p), the compiler shares a kernel between them if some parallel or
        core_parallel dimension has a static bound of at least two. It runs the kernel on one core, and says nothing,
        where the bounds of all parallel dimensions are dynamic, where they have one step each, or where no dimension is
        parallel. A grid that is shared leaves a core idle, too, if that core's steps all do nothing, as when
        emit_pipeline splits a dimension of size 1.

        A missing "parallel" is only reported where it is proved that the steps of the dimension are independent.
        """,
        """
        pl.pallas_call(kernel, grid=(n, 8),    # n is traced
                       compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")))
        """,
        "`partition-cores` shares a dynamic dimension, `infer-parallel` finds independent ones; or by hand:",
        """
        pl.pallas_call(kernel, grid=(n, 8),
                       compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel")))
        """,
    ),
    Entry(
        "unbalanced-cores",
        Severity.WARNING,
        "the steps of a parallel dimension can't be shared evenly",
        """
        The cores of a device share whole steps of one dimension. Of three steps one core gets two, and the other idles
        half of that time: the launch takes 1.33 times as long as it would with even shares. The number is the largest
        share divided by the mean; it is told from 1.2 on.
        """,
        """
        pl.pallas_call(kernel, grid=(3, 8),
                       compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")))
        """,
        "Choose blocks that make the steps a multiple of the cores, or many:",
        """
        pl.pallas_call(kernel, grid=(4, 8), ...)
        """,
    ),
    Entry(
        "dynamic-core-parallel",
        Severity.ERROR,
        "a core_parallel dimension has a dynamic bound",
        """
        The bound of a core_parallel dimension is the number of cores, which the compiler has to know. JAX refuses a
        traced one: "must be statically known".
        """,
        """
        pl.pallas_call(kernel, grid=(n, 8),    # n is traced
                       compiler_params=pltpu.CompilerParams(dimension_semantics=("core_parallel", "arbitrary")))
        """,
        "`partition-cores` turns it into a core_parallel dimension of as many steps as there are cores around a loop "
        "over each core's share; by hand that is:",
        """
        pl.pallas_call(kernel, grid=(2, pl.cdiv(n, 2), 8),    # and nothing is done where core * cdiv(n, 2) + k >= n
                       compiler_params=pltpu.CompilerParams(
                           dimension_semantics=("core_parallel", "arbitrary", "arbitrary")))
        """,
    ),
    Entry(
        "core-parallel-exceeds-cores",
        Severity.ERROR,
        "a core_parallel dimension has more steps than the device has cores",
        """
        Each step of a core_parallel dimension is a core, so its bound has to be the number of cores of one device: 2 on
        v4 and v5p, 1 on the others. libtpu refuses a larger one.
        """,
        """
        pl.pallas_call(kernel, grid=(8,),
                       compiler_params=pltpu.CompilerParams(dimension_semantics=("core_parallel",)))
        """,
        "`partition-cores` makes it fit; or say parallel, which has as many steps as you like:",
        """
        pl.pallas_call(kernel, grid=(8,),
                       compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)))
        """,
    ),
    Entry(
        "core-parallel-below-cores",
        Severity.ERROR,
        "a core_parallel dimension has fewer steps than the device has cores",
        """
        Each step of a core_parallel dimension is a core, and libtpu takes no bound but the number of cores: a kernel
        that is written for one core is refused on a device that has two.
        """,
        """
        pl.pallas_call(kernel, grid=(1, 8),    # on v5p
                       compiler_params=pltpu.CompilerParams(dimension_semantics=("core_parallel", "arbitrary")))
        """,
        "`partition-cores` makes an ordinary loop of it; or use the number of cores of the device:",
        """
        pl.pallas_call(kernel, grid=(2, 8),
                       compiler_params=pltpu.CompilerParams(dimension_semantics=("core_parallel", "arbitrary")))
        """,
    ),
    Entry(
        "several-core-parallel",
        Severity.ERROR,
        "more than one dimension is core_parallel",
        """
        The cores of a device are one row, so at most one dimension of a grid can be core_parallel; libtpu refuses
        others.
        """,
        """
        pl.pallas_call(kernel, grid=(2, 2),
                       compiler_params=pltpu.CompilerParams(dimension_semantics=("core_parallel", "core_parallel")))
        """,
        "Make all but one of them parallel:",
        """
        pl.pallas_call(kernel, grid=(2, 2),
                       compiler_params=pltpu.CompilerParams(dimension_semantics=("core_parallel", "parallel")))
        """,
    ),
    Entry(
        "core-count-placeholder",
        Severity.ERROR,
        "the number of cores is a symbolic size, which the export stands a placeholder in for",
        """
        A shape-polymorphic export writes a symbolic grid bound as a placeholder, a number of the last 128 below 2**31.
        JAX takes the placeholder for a static bound, so a symbolic core_parallel dimension passes its checks as one of
        some two thousand million cores.
        """,
        """
        # batch is a symbolic size of jax.export
        pl.pallas_call(kernel, grid=(batch, 8),
                       compiler_params=pltpu.CompilerParams(dimension_semantics=("core_parallel", "arbitrary")))
        """,
        "Keep the number of cores a constant, and loop over the symbolic size in a dimension of its own:",
        """
        pl.pallas_call(kernel, grid=(2, batch // 2, 8),
                       compiler_params=pltpu.CompilerParams(
                           dimension_semantics=("core_parallel", "arbitrary", "arbitrary")))
        """,
    ),
    Entry(
        "parallel-not-prefix",
        Severity.WARNING,
        "a parallel dimension comes after an arbitrary one",
        """
        Parallel dimensions are to be the first of a grid. JAX's TPU interpreter refuses any other order ("Dimensions
        with parallel semantics must form a prefix of the grid"), so such a kernel can't be tested with it. The compiler
        takes it, but each core then goes through all steps of the outer dimension with its share of the inner one, and
        visits a block once for each of them.
        """,
        """
        pl.pallas_call(kernel, grid=(8, 16),
                       compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary", "parallel")))
        """,
        "Swap the dimensions, in the index maps and in `program_id` too:",
        """
        pl.pallas_call(kernel, grid=(16, 8),
                       compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")))
        """,
    ),
    Entry(
        "vmap-became-loop",
        Severity.WARNING,
        "a loop launches the kernel once for each element of a batch",
        """
        jax.vmap adds a dimension to the grid of a pallas_call. It can't where a dynamic bound or a scalar-prefetch
        operand is batched: there it makes an XLA loop that slices the operands, launches the kernel for one element and
        puts the result into the output. The launches follow one another, and nothing is prefetched across them.
        """,
        """
        jax.vmap(lambda n, x: pl.pallas_call(kernel, grid=(n,), ...)(x))(lengths, xs)
        """,
        "`batch-grid` makes one launch of the loop. By hand: make the batch a grid dimension, the largest length the "
        "bound, and skip what is beyond an element's length:",
        """
        def kernel(lengths_ref, x_ref, o_ref):
            @pl.when(pl.program_id(1) < lengths_ref[pl.program_id(0)])
            def _(): ...
        pl.pallas_call(kernel, grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(batch, lengths.max()), ...))(lengths, xs)
        """,
    ),
)
