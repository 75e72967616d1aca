"""Diagnostics of `infer-parallel`: which dimensions of a grid are parallel, and why others are not."""

from __future__ import annotations

from mosaic_grid.catalogue.entry import Entry
from mosaic_grid.severity import Severity

ENTRIES = (
    Entry(
        "marked-parallel",
        Severity.REMARK,
        "infer-parallel calls dimensions parallel, whose steps are proved independent",
        """
        No two steps that differ in one of these dimensions touch the same place of an output, and none finds in scratch
        or SMEM what another left. Copies that the kernel makes by hand count as well: their places are compared as
        functions of the grid's indices, of loops and of what all steps read alike, and each copy is waited for in the
        step that starts it, or in a later one with the same index. A static dimension of two or more steps is then
        shared by the compiler, a dynamic one by `partition-cores`.
        """,
        """
        pl.pallas_call(matmul, grid=(8, 4, 2), ...)    # no dimension_semantics
        """,
        "Say it in the source, so that every way to compile the kernel knows it:",
        """
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary"))
        """,
    ),
    Entry(
        "not-parallel",
        Severity.REMARK,
        "infer-parallel leaves a dimension arbitrary, and says why",
        """
        Steps that differ in the dimension depend on their order, or can't be shown not to. Two steps may write the same
        block of an output, or one finds what another left in scratch, in SMEM, in a copy under way or in the state of
        the random number generator. A block whose index is read from a table at run time may be any.

        The message has the memory, and two such steps where some are known, with what a table would hold there. Where
        copies run ahead of the steps that use them a note says how to write that so that cores can share it. For a
        reduction this is as it should be.
        """,
        """
        remark: dimension 2 of 'matmul' stays arbitrary: steps (0, 0, 0) and (0, 0, 1) write the same block (0, 0) of
        output 0
        """,
        "If the dimension should be parallel, remove what stands in the way. Scratch, for instance, has to be written "
        "in each step of the dimension before it is read:",
        """
        @pl.when(pl.program_id(1) == 0)    # the next dimension's first step, not that of the whole grid
        def _(): acc_ref[...] = jnp.zeros_like(acc_ref)
        """,
    ),
    Entry(
        "nothing-to-mark",
        Severity.REMARK,
        "infer-parallel found no dimension to look at, and says why",
        """
        No kernel has an arbitrary dimension of two steps or more: it has no grid, all of its dimensions are parallel
        already, or one of them stands for the cores. A kernel that nothing launches isn't looked at either, for only a
        launch says which of its operands share memory.
        """,
        """
        remark: infer-parallel looked at nothing: all dimensions are parallel ('double')
        """,
        "There is nothing to do. A loop inside of a kernel can be shared if it becomes a dimension of the grid:",
        """
        pl.pallas_call(kernel, grid=(batch,), ...)    # instead of fori_loop(0, batch, ...) in the kernel
        """,
    ),
)
