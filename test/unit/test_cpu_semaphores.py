"""Rules for semaphores, and what is recorded of waits in vain and of accesses that go astray."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_copies import BLOCK, DMA, HBM, SEM, SOME_HBM, VMEM, copy, count, kernel, ramp, wait
from cpu_harness import refusals
from cpu_watched import watched

from mosaic_grid.cpu.faults import What

LOOP = kernel(
    f"%n: i32, %m: i32, %s: {SEM}, %place: i32",
    f"""scf.for %i = %k0 to %n step %k1 : i32 {{
      "tpu.sem_signal"(%s, %k2) <{{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}}> : ({SEM}, i32) -> ()
    }}
    scf.for %i = %k0 to %m step %k1 : i32 {{
      "tpu.sem_wait"(%s, %k3) : ({SEM}, i32) -> ()
    }}
    {count("left", "%s", SEM)}
    return %left : i32""",
    "i32",
)


@pytest.mark.parametrize(
    ("signals", "waits", "left", "faults"), [(6, 4, 0, 0), (6, 3, 3, 0), (6, 6, 0, 2), (1, 2, 0, 2)]
)
def test_semaphores_count_and_a_wait_in_vain_is_a_fault(signals: int, waits: int, left: int, faults: int) -> None:
    """Signals add and waits take; what isn't there is noted with how often, where in the grid, and on which line."""
    results, found = watched(LOOP, np.int32(signals), np.int32(waits), np.int32(0), np.int32(7), places=[3])
    assert results[0] == left
    assert [(f.site.what, f.site.op, f.count, f.indices) for f in found] == (
        [(What.STUCK, "tpu.sem_wait", faults, (7,))] if faults else []
    )
    assert all("memref 2" in f.site.memory and "-" in str(f.site.location) for f in found)


def test_a_copy_that_was_never_started_is_waited_for_in_vain() -> None:
    """Waiting for more bytes than were copied is a fault of the wait."""
    text = kernel(f"%h: {HBM}, %v: {VMEM}, %i: i32, %s: {DMA}", f"{BLOCK}{wait('%p', '%v', '%s')}return")
    for bytes_, faults in ((128, 0), (127, 1)):
        _, found = watched(text, ramp(16, 8), ramp(4, 8), np.int32(0), np.int32(bytes_))
        assert [fault.site.op for fault in found] == ["tpu.wait_dma"] * faults


def test_the_record_keeps_the_first_place_and_counts_all() -> None:
    """Of a fault that comes at many steps the first one's indices are kept; a fault that never comes isn't listed."""
    text = kernel(
        f"%n: i32, %h: {HBM}, %s: {SEM}",
        f"""scf.for %i = %k0 to %n step %k1 : i32 {{
          %ix = arith.index_cast %i : i32 to index
          %x = vector.load %h[%ix, %c0] : {HBM}, vector<4x8xi32>
        }}
        return""",
    )
    for n, times in ((13, 0), (14, 1), (20, 7)):
        _, found = watched(text, np.int32(n), ramp(16, 8), np.int32(0), places=[0])
        assert [(fault.site.what, fault.count, fault.indices) for fault in found] == (
            [(What.OUTSIDE, times, (n,))] if times else []
        )


@pytest.mark.parametrize(("start", "n", "outside"), [(3, 13, 0), (3, 14, 1), (17, 1, 1), (17, 0, 0), (-1, 1, 1)])
def test_a_copy_beyond_the_end_of_memory_is_a_fault(start: int, n: int, outside: int) -> None:
    """A copy of dynamic size is checked against what there is from its start on; one of nothing touches nothing."""
    text = kernel(
        f"%h: {HBM}, %g: {HBM}, %s: {DMA}, %i: i32, %n: i32",
        f"""%p = tpu.memref_slice %h[%i, %k0] <%n> : {HBM} -> {SOME_HBM}
        %q = tpu.memref_slice %g[%k0, %k0] <%n> : {HBM} -> {SOME_HBM}
        """
        + copy("%p", "%q", "%s", (SOME_HBM, SOME_HBM))
        + "return",
    )
    _, found = watched(text, ramp(16, 8), ramp(16, 8), np.int32(0), np.int32(start), np.int32(n))
    assert [fault.site.what for fault in found] == [What.OUTSIDE] * outside


@pytest.mark.parametrize(
    ("slot", "start", "n", "outside"), [(1, 3, 13, 0), (1, 3, 14, 1), (2, 3, 13, 1), (1, 17, 0, 0), (0, -1, 1, 1)]
)
def test_a_slice_of_a_slice_of_dynamic_size(slot: int, start: int, n: int, outside: int) -> None:
    """The room that the first one leaves counts, and not how many rows it may have at most."""
    deep, square = HBM.replace("16x8", "2x16x8"), HBM.replace("16x8", "1x?x8")
    text = kernel(
        f"%h: {deep}, %g: {HBM}, %s: {DMA}, %slot: i32, %i: i32, %n: i32",
        f"""%p = tpu.memref_slice %h[%slot, %k0, %k0] <%n> : {deep} -> {square}
        %q = tpu.memref_squeeze %p : {square} -> {SOME_HBM}
        %r = tpu.memref_slice %q[%i, %k0] <%n> : {SOME_HBM} -> {SOME_HBM}
        %t = tpu.memref_slice %g[%k0, %k0] <%n> : {HBM} -> {SOME_HBM}
        """
        + copy("%r", "%t", "%s", (SOME_HBM, SOME_HBM))
        + "return",
    )
    numbers = [np.int32(number) for number in (0, slot, start, n)]
    _, found = watched(text, ramp(2, 16, 8), ramp(16, 8), *numbers)
    assert [fault.site.what for fault in found] == [What.OUTSIDE] * outside


def test_the_barrier_semaphore_is_one() -> None:
    """Whoever asks for the barrier semaphore gets the same one, wherever it is asked."""
    ask = f"%s = tpu.sem_barrier : {SEM}"
    text = kernel(
        "%n: i32",
        f"""scf.for %i = %k0 to %n step %k1 : i32 {{
          {ask}
          "tpu.sem_signal"(%s, %k2) <{{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}}> : ({SEM}, i32) -> ()
        }}
        {ask}
        {count("a", "%s", SEM)}
        return %a : i32""",
        "i32",
    )
    assert watched(text, np.int32(5))[0][0] == 10


def signal(operands: str, sizes: str) -> str:
    """Signals the semaphore `%s`, with operands behind it of which `sizes` says which there are."""
    kinds = ", ".join(["i32"] * (operands.count(",") + 1))
    return (
        f'"tpu.sem_signal"(%s, {operands}) <{{operandSegmentSizes = array<i32: 1, {sizes}>}}> : ({SEM}, {kinds}) -> ()'
    )


@pytest.mark.parametrize(
    ("body", "reasons"),
    [
        (signal("%k1, %i", "1, 1, 0, 0"), ["tpu.sem_signal: a signal to another device"]),
        (signal("%k1, %i", "1, 0, 1, 0"), ["tpu.sem_signal: a signal to another core"]),
        (f"%me = tpu.device_id : i32\n{signal('%k1, %me', '1, 1, 0, 0')}", []),
        (
            f'"tpu.enqueue_dma"(%v, %d, %v, %d, %i) <{{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0>}}> '
            f": ({VMEM}, {DMA}, {VMEM}, {DMA}, i32) -> ()",
            ["tpu.enqueue_dma: a copy to another device"],
        ),
    ],
)
def test_what_reaches_out_is_refused(body: str, reasons: list[str]) -> None:
    """A signal or copy to another device or core is refused, unless it is certainly this very one."""
    assert refusals(kernel(f"%s: {SEM}, %d: {DMA}, %v: {VMEM}, %i: i32", f"{body}\nreturn")) == reasons
