"""What `certify` says, and of contracts."""

from __future__ import annotations

from mosaic_grid.catalogue.entry import Entry
from mosaic_grid.severity import Severity

ENTRIES = (
    Entry(
        "memory-certificate",
        Severity.REMARK,
        "how much of a launch is proved to stay within memory, and under which contracts",
        """
        Each window has to show a part of its array at every step, and each load, store and copy of a step has to stay
        within its buffer, whatever the arguments are that the contracts allow. A kernel that is compiled with
        disable_bounds_checks needs that: nothing looks at its indices while it runs. Only what is proved is counted.
        Semaphores and other devices' memory aren't looked at.
        """,
        """
        pl.pallas_call(kernel, grid_spec=pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(n,), ...),
                       compiler_params=pltpu.CompilerParams(disable_bounds_checks=True))
        """,
        "Promise what the arguments can be, with --contracts, and have it checked where the program begins:",
        """
        mosaic-opt program.mlir -p certify,insert-contract-checks --contracts='n <= 8, 0 <= table[*] < 16'
        """,
    ),
    Entry(
        "not-certified",
        Severity.ERROR,
        "a window, or an access of a step, isn't proved to stay within memory",
        """
        It leaves its array or buffer whenever the kernel runs, which is an error; or with the arguments that the
        message has; or nobody knows, as where an index is computed from what the kernel loads. The note says which fact
        would prove it.
        """,
        """
        x = x_ref[pl.ds(pl.multiple_of(start_ref[0], 8), 8), :]    # x_ref has 64 rows
        """,
        "Keep the index within what fits, in the kernel or with a contract such as 0 <= starts[*] <= 56:",
        """
        x = x_ref[pl.ds(pl.multiple_of(jnp.clip(start_ref[0], 0, 56), 8), 8), :]
        """,
    ),
    Entry(
        "unused-contract",
        Severity.WARNING,
        "a contract of the JAX hook names an argument that the program doesn't have",
        """
        JAX_MOSAIC_GRID_CONTRACTS is for all programs that a process lowers, and each takes the contracts of which it
        has all arguments. So a misspelt name would be a promise that nobody hears. It is told once: while a program is
        lowered that has an argument of a similar name, else at the end of the process, if no program with kernels has
        had the argument. An argument goes by its name in the function that jax.jit is given.
        """,
        """
        JAX_MOSAIC_GRID=check JAX_MOSAIC_GRID_CONTRACTS='0 <= lenghts[*] <= 1024' python train.py
        """,
        "Write the name as the function has it, or %arg2 for its third argument:",
        """
        JAX_MOSAIC_GRID=check JAX_MOSAIC_GRID_CONTRACTS='0 <= lengths[*] <= 1024' python train.py
        """,
    ),
)
