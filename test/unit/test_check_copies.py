"""The sanitizer on copies by DMA and on semaphores."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from checked_kernels import BLOCK, F32, Said, call, findings, lowered, rows, run_checked
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import mosaic_grid
from mosaic_grid.cpu.options import Options
from mosaic_grid.errors import UserError

X = rows(32)
BUFFERS = (pltpu.VMEM((2, *BLOCK), F32), pltpu.SemaphoreType.DMA((2,)))
STEP = (None, lambda i: (i, 0))


def block_of(x_ref: Any, index: Any) -> Any:
    """A block of rows of an array."""
    return x_ref.at[pl.ds(8 * index, 8)]


def buffered(wait: Any) -> Any:
    """A kernel with two buffers that copies a block for the next step while it works on this one.

    `wait` is given the copy that has to be waited for.
    """

    def kernel(x_ref: Any, o_ref: Any, buf: Any, sem: Any) -> None:
        i = pl.program_id(0)

        def start(k: Any) -> Any:
            slot = jax.lax.rem(k, 2)
            return pltpu.make_async_copy(block_of(x_ref, k), buf.at[slot], sem.at[slot])

        @pl.when(i == 0)
        def _() -> None:
            start(i).start()

        @pl.when(i < 3)
        def _() -> None:
            start(i + 1).start()

        wait(start(i))
        o_ref[...] = buf[jax.lax.rem(i, 2)]

    return call(kernel, (32, 128), (4,), maps=STEP, scratch=BUFFERS)


def test_a_pipeline_by_hand() -> None:
    """Nothing is said of copies that are waited for before what they bring is used."""
    assert findings(buffered(lambda copy: copy.wait()), X) == []


def test_copies_that_nobody_waits_for() -> None:
    """Both copies are named where they are started, and the read that comes too early; data moves all the same."""
    found = findings(buffered(lambda copy: None), X)
    assert [(each.name, each.severity) for each in found] == [("dma-in-flight", "error")] * 2 + [
        ("unwaited-dma", "error")
    ]
    read = next(each for each in found if "reads" in each.message)
    assert read == Said(
        "dma-in-flight",
        "error",
        "'kernel' reads elements of scratch 'buf' that a copy may still be writing: semaphore 'sem' hasn't been waited "
        "for, first at grid point (0), 4 times in all",
        "o_ref[...] = buf[jax.lax.rem(i, 2)]",
    )
    assert "starts a copy that nobody waits for: semaphore 'sem' still counts" in found[2].message


def test_a_copy_that_is_started_twice() -> None:
    """What is left over in the end is told with its bytes, its place and its step."""

    def kernel(x_ref: Any, o_ref: Any, buf: Any, sem: Any) -> None:
        i = pl.program_id(0)
        copy = pltpu.make_async_copy(block_of(x_ref, i), buf.at[0], sem.at[0])
        copy.start()
        copy.wait()

        @pl.when(i == 2)
        def _() -> None:
            pltpu.make_async_copy(block_of(x_ref, i), buf.at[1], sem.at[1]).start()

        o_ref[...] = buf[0]

    (found,) = findings(call(kernel, (32, 128), (4,), maps=STEP, scratch=BUFFERS), X)
    assert found == Said(
        "unwaited-dma",
        "error",
        "'kernel' starts a copy that nobody waits for: semaphore 'sem' still counts 4096 bytes at its end, "
        "at grid point (2)",
        "pltpu.make_async_copy(block_of(x_ref, i), buf.at[1], sem.at[1]).start()",
    )


def test_a_semaphore_that_ends_before_the_kernel() -> None:
    """A semaphore of a scope is looked at where the scope ends."""

    def kernel(x_ref: Any, o_ref: Any, *, forget: bool) -> None:
        def scope(buf: Any, sem: Any) -> None:
            copy = pltpu.make_async_copy(block_of(x_ref, pl.program_id(0)), buf, sem)
            copy.start()
            if not forget:
                copy.wait()
            o_ref[...] = buf[...]

        pl.run_scoped(scope, pltpu.VMEM(BLOCK, F32), pltpu.SemaphoreType.DMA(()))

    def launch(forget: bool) -> Any:
        def body(x_ref: Any, o_ref: Any) -> None:
            kernel(x_ref, o_ref, forget=forget)

        return call(body, (32, 128), (4,), maps=STEP)

    assert findings(launch(False), X) == []
    early, unwaited = findings(launch(True), X)
    assert (early.name, unwaited.name) == ("dma-in-flight", "unwaited-dma")
    assert "first at grid point (0), 4 times in all" in unwaited.message
    assert unwaited.source == "copy.start()"


@pytest.mark.parametrize(("early", "names"), [(True, ["dma-in-flight"]), (False, [])])
def test_memory_that_a_copy_still_reads(early: bool, names: list[str]) -> None:
    """What a copy takes must not change before it has been waited for; reading it is allowed."""

    def kernel(x_ref: Any, o_ref: Any, buf: Any, sem: Any) -> None:
        buf[0] = x_ref[...]
        copy = pltpu.make_async_copy(buf.at[0], block_of(o_ref, pl.program_id(0)), sem.at[0])
        copy.start()
        buf[1] = buf[0]
        if early:
            buf[0, 3:4] = jnp.ones((1, 128))
        copy.wait()
        buf[0, 4:5] = jnp.ones((1, 128))

    found = findings(call(kernel, (32, 128), (4,), maps=(lambda i: (i, 0), None), scratch=BUFFERS), X)
    assert [each.name for each in found] == names
    if early:
        assert "writes elements of scratch 'buf' that a copy may still be reading" in found[0].message
        assert found[0].source == "buf[0, 3:4] = jnp.ones((1, 128))"


def waiting(signals: int) -> Any:
    """A kernel that waits for two at each step but the last, after so many signals."""

    def kernel(x_ref: Any, o_ref: Any, sem: Any) -> None:
        @pl.when(pl.program_id(0) < 3)
        def _() -> None:
            pl.semaphore_signal(sem, signals)
            pl.semaphore_wait(sem, 2)

        o_ref[...] = x_ref[...]

    maps = (lambda i: (i, 0), lambda i: (i, 0))
    return call(kernel, (32, 128), (4,), maps=maps, scratch=(pltpu.SemaphoreType.REGULAR(()),))


def test_a_wait_in_vain() -> None:
    """It is an error that names the semaphore in every run, and in a checked one too."""
    message = (
        "'kernel' waits for semaphore 'sem' in vain: it counts 1, and 2 are waited for, first at grid point (0), "
        "3 times in all"
    )
    (found,) = findings(waiting(1), X)
    assert found == Said("stuck-wait", "error", message, "pl.semaphore_wait(sem, 2)")
    with pytest.raises(UserError) as caught:
        mosaic_grid.run(lowered(waiting(1), X), X)
    assert caught.value.message == message
    assert caught.value.place is not None
    assert caught.value.place.file == __file__


def test_a_wait_that_is_met() -> None:
    """Nothing is said of it, and the results are those of the kernel."""
    (result,) = mosaic_grid.run(lowered(waiting(2), X), X)
    np.testing.assert_array_equal(result, X)
    assert findings(waiting(2), X) == []


def test_a_wait_in_vain_for_a_copy() -> None:
    """A wait for more than was copied is never met."""

    def kernel(x_ref: Any, o_ref: Any, buf: Any, sem: Any) -> None:
        pltpu.make_async_copy(x_ref.at[pl.ds(0, 4)], buf.at[0, pl.ds(0, 4)], sem.at[1]).start()
        pltpu.make_async_copy(x_ref.at[pl.ds(0, 8)], buf.at[0], sem.at[1]).wait()
        o_ref[...] = x_ref[...]

    launch = call(kernel, (8, 128), maps=(lambda: (0, 0),) * 2, scratch=BUFFERS)
    with pytest.raises(UserError, match="semaphore 'sem' in vain: it counts 2048, and 4096 are waited for"):
        mosaic_grid.run(lowered(launch, X[:8]), X[:8])


def test_signals_that_nobody_waits_for() -> None:
    """What is left of them in the end is an error at the last signal, of copies and of signals alike."""
    (found,) = findings(waiting(3), X)
    assert found == Said(
        "unwaited-signal",
        "error",
        "'kernel' signals what nobody waits for: semaphore 'sem' still counts 3 at its end, at grid point (2)",
        "pl.semaphore_signal(sem, signals)",
    )


def test_two_copies_and_one_wait() -> None:
    """A wait of one copy's size leaves the other one on the semaphore that both count on."""

    def kernel(x_ref: Any, o_ref: Any, buf: Any, sem: Any) -> None:
        copies = [pltpu.make_async_copy(x_ref, buf.at[slot], sem.at[0]) for slot in range(2)]
        for copy in copies:
            copy.start()
        copies[0].wait()
        o_ref[...] = buf[0]

    (found,) = findings(call(kernel, (8, 128), maps=(None, lambda: (0, 0)), scratch=BUFFERS), X[:8])
    assert found.name == "unwaited-dma"
    assert "semaphore 'sem' still counts 4096 bytes at its end" in found.message


def test_copies_that_are_late() -> None:
    """A checked kernel copies at once, and says that it does."""
    with pytest.raises(UserError, match="where kernels are checked, copies land at once"):
        run_checked(lowered(waiting(2), X), X, options=Options(dma="late"))
