"""Diagnostics of `batch-grid`."""

from __future__ import annotations

from mosaic_grid.catalogue.entry import Entry
from mosaic_grid.severity import Severity

ENTRIES = (
    Entry(
        "not-batched",
        Severity.REMARK,
        "batch-grid leaves a loop that launches a kernel alone, and says why",
        """
        The loop isn't one that jax.vmap makes of a kernel: an iteration may need what another has computed, or its
        operands aren't slices. Or the launches can't be one: scratch isn't proved to be written before it is read in
        each element, the kernel talks to other devices, or an operand has a form that can't be batched.

        Of loops in each other the inner one may become one launch, and the remark says why the loop around it stays.
        """,
        """
        remark: the launches of 'sum' in a loop can't be made one: scratch operand 0 (f32[8,128]) is read before it is
        written
        """,
        "Remove what stands in the way; scratch, for instance, has to be written in the first step of each launch:",
        """
        @pl.when(pl.program_id(0) == 0)
        def _(): acc_ref[...] = jnp.zeros_like(acc_ref)
        """,
    ),
    Entry(
        "nothing-to-batch",
        Severity.REMARK,
        "batch-grid changed nothing, and says why",
        """
        No kernel is launched in a loop. What jax.vmap batches by itself, a kernel with static bounds and no prefetch
        operands that differ, has one launch already.
        """,
        """
        remark: batch-grid changed nothing: it is in no loop ('matmul')
        """,
        "There is nothing to do. A loop that jax.vmap makes looks like this in Python:",
        """
        jax.vmap(lambda n, x: pl.pallas_call(kernel, grid=(n,), ...)(x))(lengths, xs)
        """,
    ),
)
