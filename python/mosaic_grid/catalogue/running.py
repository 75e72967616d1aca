"""Diagnostics of `mosaic-run --check` and `mosaic_grid.run`: what kernels did wrong on the inputs of a run."""

from __future__ import annotations

from mosaic_grid.catalogue.entry import Entry
from mosaic_grid.severity import Severity

ENTRIES = (
    Entry(
        "broken-contract",
        Severity.ERROR,
        "an argument breaks a contract that the program checks",
        """
        The pass insert-contract-checks had the program check the contracts it was made for. An argument breaks one, so
        that no kernel was launched. The message has the contract and the argument.
        """,
        """
        mosaic-opt program.mlir -p insert-contract-checks --contracts='n <= 8' -o checked.mlir
        mosaic-run checked.mlir --input n=9
        """,
        "Keep the contract, or make the program for another one:",
        """
        mosaic-run checked.mlir --input n=8
        """,
    ),
    Entry(
        "out-of-bounds-write",
        Severity.ERROR,
        "a store or copy writes beyond the end of a buffer",
        """
        The indices, which the message has, lie outside of the buffer. A TPU writes to whatever lies there.
        """,
        """
        o_ref[pl.ds(start, 8), :] = x    # start is 60, o_ref has 64 rows
        """,
        "Keep the start within what fits:",
        """
        o_ref[pl.ds(jnp.minimum(start, 56), 8), :] = x
        """,
    ),
    Entry(
        "out-of-bounds-read",
        Severity.ERROR,
        "a load or copy reads beyond the end of a buffer",
        """
        The indices, which the message has, lie outside of the buffer. A TPU reads whatever lies there.
        """,
        """
        x = x_ref[pl.ds(start, 8), :]    # start is 60, x_ref has 64 rows
        """,
        "Keep the start within what fits:",
        """
        x = x_ref[pl.ds(jnp.minimum(start, 56), 8), :]
        """,
    ),
    Entry(
        "unwritten-read",
        Severity.ERROR,
        "the kernel reads memory that nobody wrote, and results depend on it",
        """
        Scratch and output blocks begin with undefined contents, and scratch is not handed from core to core. Where no
        result was seen to depend on what was read it is a remark only.
        """,
        """
        acc_ref[...] += x_ref[...]    # in the first step too
        """,
        "Write before you read:",
        """
        @pl.when(pl.program_id(0) == 0)
        def _(): acc_ref[...] = jnp.zeros_like(acc_ref)
        """,
    ),
    Entry(
        "padding-read",
        Severity.ERROR,
        "the kernel reads a block beyond the end of its array, and results depend on it",
        """
        The last block of an array may be a partial one. What lies beyond the array's end is undefined.
        """,
        """
        o_ref[...] = x_ref[...].sum(0, keepdims=True)    # blocks of 128 rows, the array has 1000
        """,
        "Mask what is beyond the end:",
        """
        row = pl.program_id(0) * 128 + jax.lax.broadcasted_iota(jnp.int32, x_ref.shape, 0)
        o_ref[...] = jnp.where(row < 1000, x_ref[...], 0).sum(0, keepdims=True)
        """,
    ),
    Entry(
        "output-not-written",
        Severity.ERROR,
        "elements of an output were never written",
        """
        They hold whatever was in memory. All of an output is an error, a part of it a warning, and a remark where no
        result of the program was seen to depend on them.
        """,
        """
        pl.pallas_call(kernel, grid=(4,), out_specs=pl.BlockSpec((128, 1024), lambda i: (2 * i, 0)), ...)
        """,
        "Visit every block, or write over an input that has the values to keep:",
        """
        pl.pallas_call(kernel, ..., input_output_aliases={0: 0})
        """,
    ),
    Entry(
        "core-race",
        Severity.ERROR,
        "two steps that may run on different cores touched the same elements, and one wrote them",
        """
        Seen in a run: steps that differ in a parallel dimension may run on different cores, in any order. What
        `parallel-race` proves of all inputs, this shows for these.
        """,
        """
        pl.BlockSpec((8, 128), lambda i, table: (table[i], 0))    # table holds 3 twice, and dimension 0 is parallel
        """,
        "Make the dimension arbitrary, or see to it that the steps' blocks differ:",
        """
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary",))
        """,
    ),
    Entry(
        "dma-in-flight",
        Severity.ERROR,
        "the kernel touches memory that a copy may still be reading or writing",
        """
        A copy lands some time between its start and its wait. What is read of its target before the wait, or written to
        its source, is chance.
        """,
        """
        copy = pltpu.make_async_copy(x_hbm, buffer, sem); copy.start(); y = buffer[...]
        """,
        "Wait first:",
        """
        copy.start(); copy.wait(); y = buffer[...]
        """,
    ),
    Entry(
        "unwaited-dma",
        Severity.ERROR,
        "the kernel ends with a copy that nobody waited for",
        """
        The copy may land after the kernel's end, in memory that is somebody else's by then, and its semaphore keeps a
        count that confuses the next wait.
        """,
        """
        pltpu.make_async_copy(buffer, o_hbm, sem).start()
        """,
        "Wait for every copy:",
        """
        copy = pltpu.make_async_copy(buffer, o_hbm, sem); copy.start(); copy.wait()
        """,
    ),
    Entry(
        "unwaited-signal",
        Severity.ERROR,
        "the kernel ends with a semaphore that still counts a signal",
        """
        A semaphore has to be at 0 when its memory ends: what is left is what the next kernel begins with.
        """,
        """
        pl.semaphore_signal(sem, 2); pl.semaphore_wait(sem, 1)
        """,
        "Wait for all that is signalled:",
        """
        pl.semaphore_signal(sem, 2); pl.semaphore_wait(sem, 2)
        """,
    ),
    Entry(
        "failed-check",
        Severity.ERROR,
        "a check that the kernel's author put into it fails",
        """
        Such checks, of `pl.debug_check`, are in a kernel that is lowered under `pl.enable_debug_checks()`. Nothing is
        stopped: what follows may be a consequence.
        """,
        """
        pl.debug_check(n_ref[0] < 8, "n is too large")    # n is 8
        """,
        "Call the kernel as its author wants it, or say what is meant:",
        """
        pl.debug_check(n_ref[0] <= 8, "n is too large")
        """,
    ),
    Entry(
        "kernel-print",
        Severity.REMARK,
        "what the kernel prints",
        """
        `pl.debug_print` prints on a TPU. Here the first time of each is told, with its numbers where they are scalars,
        and how often it was in all.
        """,
        """
        pl.debug_print("n is {}", n_ref[0])
        """,
        "Nothing has to be done. A kernel prints at one step alone if it is told to:",
        """
        @pl.when(pl.program_id(0) == 3)
        def _(): pl.debug_print("n is {}", n_ref[0])
        """,
    ),
    Entry(
        "stuck-wait",
        Severity.ERROR,
        "a wait is never met: the kernel would hang",
        """
        The semaphore counts less than what is waited for, and nothing that could add to it is left.
        """,
        """
        pltpu.semaphore_wait(sem, 2)    # signalled once
        """,
        "Signal as often as you wait:",
        """
        pltpu.semaphore_signal(sem, 2); pltpu.semaphore_wait(sem, 2)
        """,
    ),
    Entry(
        "not-checked",
        Severity.WARNING,
        "a launch was run without being checked",
        """
        The launch stands where no record of what it does can be handed on to the program's end, as in the decomposition
        of a composite.
        """,
        """
        @jax.lax.composite(name="my.op")
        def op(x): return launch(x)
        """,
        "Run the function without the composite around it:",
        """
        def op(x): return launch(x)
        """,
    ),
)
