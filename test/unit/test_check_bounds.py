"""The sanitizer on indices: what is read and written beyond the end of memory, or before its beginning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from checked_kernels import BLOCK, F32, I32, Said, findings, rows
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

X = rows(8)
DMA = pltpu.SemaphoreType.DMA
Body: TypeAlias = Callable[..., None]


def with_numbers(kernel: Body, *scratch: Any, hbm: bool = False) -> Any:
    """A launch of two steps of a kernel that gets a few numbers, and one block in and out, or the input in HBM."""

    def launch(n: Any, x: Any) -> Any:
        whole = pl.BlockSpec(BLOCK, lambda i, n: (0, 0))
        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(2,),
            in_specs=[pl.BlockSpec(memory_space=pl.ANY) if hbm else whole],
            out_specs=whole,
            scratch_shapes=scratch,
        )
        return pl.pallas_call(kernel, grid_spec=spec, out_shape=jax.ShapeDtypeStruct(BLOCK, F32), name="k")(n, x)

    return launch


def numbers(*values: int) -> Any:
    """Numbers for such a kernel."""
    return np.array(values, np.int32)


def outside(kernel: Any, n: Any, x: Any = X) -> list[Said]:
    """What is said of accesses beyond memory, which are errors."""
    found = [each for each in findings(kernel, n, x) if each.name.startswith("out-of-bounds")]
    assert all(each.severity == "error" for each in found)
    return found


def test_reads_and_writes_beyond_memory() -> None:
    """A row that isn't there is an error at the operation that touches it, and so is one before the first."""

    def kernel(n_ref: Any, x_ref: Any, o_ref: Any) -> None:
        o_ref[pl.ds(n_ref[1], 4)] = x_ref[pl.ds(n_ref[0], 4)]
        o_ref[pl.ds(4 - n_ref[1], 4)] = x_ref[pl.ds(0, 4)]

    launch = with_numbers(kernel)
    assert findings(launch, numbers(4, 0), X) == []
    (found,) = findings(launch, numbers(5, 0), X)
    assert (found.name, found.severity) == ("out-of-bounds-read", "error")
    where = "reads elements 5 to 8 of dimension 0 of 'x_ref', which has 8"
    assert found.message == f"'k' {where}, first at grid point (0), 2 times in all"
    assert found.source.startswith("o_ref[pl.ds(n_ref[1], 4)] = x_ref[")
    first, second = findings(launch, numbers(0, 5), X)
    assert first.name == second.name == "out-of-bounds-write"
    assert first.source.startswith("o_ref[pl.ds(n_ref[1], 4)]")
    assert second.source.startswith("o_ref[pl.ds(4 - n_ref[1], 4)]")


def all_rows(n: Any, x: Any, o: Any) -> None:
    """Reads as many rows as there are."""
    o[...] = x[pl.ds(n[0], 8)]


def to_all_rows(n: Any, x: Any, o: Any) -> None:
    """Writes as many rows as there are."""
    o[pl.ds(n[0], 8)] = x[...]


def one_slot(n: Any, x: Any, o: Any, buffer: Any) -> None:
    """Writes one of the slots of a buffer, however many it has."""
    buffer[n[0]] = x[...]
    o[...] = buffer[0]


def one_number(n: Any, x: Any, o: Any) -> None:
    """Reads a number of a table that has one."""
    o[...] = x[...] + n[n[0]].astype(F32)


def to_one_number(n: Any, x: Any, o: Any, cell: Any) -> None:
    """Writes a number in SMEM."""
    cell[0] = 1
    cell[n[0]] = 3
    o[...] = x[...] + cell[0].astype(F32)


def strided(n: Any, x: Any, o: Any) -> None:
    """Reads every other row."""
    o[...] = jnp.concatenate([x[pl.ds(n[0], 4, stride=2)]] * 2)


def strided_store(n: Any, x: Any, o: Any) -> None:
    """Writes every other row."""
    o[...] = x[...]
    o[pl.ds(n[0], 4, stride=2)] = x[:4]


SLOT = pltpu.VMEM((1, *BLOCK), F32)
ACCESSES: dict[str, tuple[Body, tuple[Any, ...], int, str]] = {
    "all rows": (all_rows, (), 1, "reads elements 1 to 8 of dimension 0 of 'x', which has 8"),
    "before all rows": (all_rows, (), -1, "reads elements -1 to 6 of dimension 0 of 'x', which has 8"),
    "to all rows": (to_all_rows, (), 2, "writes elements 2 to 9 of dimension 0 of 'o', which has 8"),
    "one slot": (one_slot, (SLOT,), 1, "writes element 1 of dimension 0 of scratch 'buffer', which has 1"),
    "one number": (one_number, (), 3, "reads element 3 of dimension 0 of prefetch operand 0, which has 1"),
    "to one number": (
        to_one_number, (pltpu.SMEM((1,), I32),), -2, "writes element -2 of dimension 0 of scratch 'cell', which has 1",
    ),
    "strided": (strided, (), 2, "reads elements 2 to 8 of dimension 0 of 'x', which has 8"),
    "strided store": (strided_store, (), 4, "writes elements 4 to 10 of dimension 0 of 'o', which has 8"),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCESSES)
def test_all_that_there_is_from_somewhere_else(name: str) -> None:
    """An index of a dimension of size 1, or a slice as long as its dimension, is looked at like any other."""
    kernel, scratch, start, where = ACCESSES[name]
    launch = with_numbers(kernel, *scratch)
    assert findings(launch, numbers(0), X) == []
    (found,) = outside(launch, numbers(start))
    assert found.message == f"'k' {where}, first at grid point (0), 2 times in all"


def copying(pick: Callable[[Any, Any, Any, Any], tuple[Any, Any, Any]], slots: int = 1, semaphores: int = 1) -> Any:
    """A launch that copies from HBM to a slot of a buffer, and waits; `pick` says what, where to, and the semaphore."""

    def kernel(n: Any, x: Any, o: Any, buffer: Any, sems: Any) -> None:
        buffer[...] = jnp.zeros_like(buffer)
        copy = pltpu.make_async_copy(*pick(n, x, buffer, sems))
        copy.start()
        copy.wait()
        o[...] = buffer[0]

    return with_numbers(kernel, pltpu.VMEM((slots, *BLOCK), F32), DMA((semaphores,)), hbm=True)


@pytest.mark.parametrize("size", [8, 32])
def test_the_source_of_a_copy(size: int) -> None:
    """Rows that an array doesn't have aren't copied, be it all of its rows or some."""
    launch = copying(lambda n, x, buffer, sems: (x.at[pl.ds(n[0], 8)], buffer.at[0], sems.at[0]))
    assert findings(launch, numbers(0), rows(size)) == []
    (found,) = outside(launch, numbers(size - 3), rows(size))
    where = f"reads elements {size - 3} to {size + 4} of dimension 0 of 'x', which has {size}"
    assert found.message == f"'k' {where}, first at grid point (0), 2 times in all"
    assert found.source == "copy.start()"


@pytest.mark.parametrize("slots", [1, 2])
def test_the_target_of_a_copy(slots: int) -> None:
    """A slot that a buffer doesn't have is told with its index."""
    launch = copying(lambda n, x, buffer, sems: (x.at[pl.ds(0, 8)], buffer.at[n[0]], sems.at[0]), slots=slots)
    assert findings(launch, numbers(slots - 1), X) == []
    (found,) = outside(launch, numbers(slots))
    where = f"writes element {slots} of dimension 0 of scratch 'buffer', which has {slots}"
    assert found.message == f"'k' {where}, first at grid point (0), 2 times in all"


@pytest.mark.parametrize("count", [1, 2])
def test_the_semaphore_of_a_copy(count: int) -> None:
    """One that isn't there is told where it is counted up, and where it is waited for."""
    launch = copying(lambda n, x, buffer, sems: (x.at[pl.ds(0, 8)], buffer.at[0], sems.at[n[0]]), semaphores=count)
    assert findings(launch, numbers(count - 1), X) == []
    where = f"element {count} of dimension 0 of semaphore 'sems', which has {count}, first at grid point (0)"
    start, wait = outside(launch, numbers(count))
    assert (start.name, start.source) == ("out-of-bounds-write", "copy.start()")
    assert (wait.name, wait.source) == ("out-of-bounds-read", "copy.wait()")
    assert start.message.startswith(f"'k' writes {where}")
    assert wait.message.startswith(f"'k' reads {where}")


def test_a_regular_semaphore() -> None:
    """One that isn't there is told as well."""

    def kernel(n: Any, x: Any, o: Any, sems: Any) -> None:
        pl.semaphore_signal(sems.at[n[0]], 1)
        pl.semaphore_wait(sems.at[n[0]], 1)
        o[...] = x[...]

    launch = with_numbers(kernel, pltpu.SemaphoreType.REGULAR((1,)))
    assert findings(launch, numbers(0), X) == []
    assert [each.name for each in outside(launch, numbers(-1))] == ["out-of-bounds-write", "out-of-bounds-read"]


DYNAMIC = [
    (8, 0, []),
    (0, 99, []),  # nothing is copied
    (9, 0, ["writes elements 0 to 8 of dimension 0 of scratch 'buffer', which has 8"]),
    (8, 30, ["reads elements 30 to 37 of dimension 0 of 'x', which has 32"]),
    (3, -1, ["reads elements -1 to 1 of dimension 0 of 'x', which has 32"]),
]


@pytest.mark.parametrize(("size", "start", "expected"), DYNAMIC)
def test_a_copy_whose_size_is_dynamic(size: int, start: int, expected: list[str]) -> None:
    """It is compared with what is there, at the source and at the target."""

    def kernel(n: Any, x: Any, o: Any, buffer: Any, sem: Any) -> None:
        buffer[...] = jnp.zeros_like(buffer)
        copy = pltpu.make_async_copy(x.at[pl.ds(n[1], n[0])], buffer.at[pl.ds(0, n[0])], sem)
        copy.start()
        copy.wait()
        o[...] = buffer[...]

    launch = with_numbers(kernel, pltpu.VMEM(BLOCK, F32), DMA(()), hbm=True)
    found = outside(launch, numbers(size, start), rows(32))
    assert [each.message for each in found] == [
        f"'k' {each}, first at grid point (0), 2 times in all" for each in expected
    ]


def test_a_slot_whose_rows_are_dynamic() -> None:
    """A dimension of known size is looked at too where another one isn't known."""

    def kernel(n: Any, x: Any, o: Any, buffer: Any, sem: Any) -> None:
        buffer[...] = jnp.zeros_like(buffer)
        copy = pltpu.make_async_copy(x.at[pl.ds(0, n[1])], buffer.at[n[0], pl.ds(0, n[1])], sem)
        copy.start()
        copy.wait()
        o[...] = buffer[0]

    launch = with_numbers(kernel, pltpu.VMEM((2, *BLOCK), F32), DMA(()), hbm=True)
    assert outside(launch, numbers(1, 5)) == []
    (found,) = outside(launch, numbers(2, 5))
    assert "writes element 2 of dimension 0 of scratch 'buffer', which has 2" in found.message
