"""Rules for copies by DMA: what is copied, and the bytes that are counted."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_copies import BLOCK, DMA, HBM, SOME_HBM, SOME_VMEM, VMEM, copy, count, kernel, ramp, wait
from cpu_watched import watched


def test_a_copy_counts_its_bytes_until_it_is_waited_for() -> None:
    """The semaphore has the copy's bytes after its start and none after the wait, and the copy is made."""
    text = kernel(
        f"%h: {HBM}, %v: {VMEM}, %i: i32",
        f"%s = tpu.sem_alloc : {DMA}\n{BLOCK}"
        + copy("%p", "%v", "%s")
        + count("a", "%s")
        + wait("%p", "%v", "%s")
        + count("b", "%s")
        + "return %a, %b : i32, i32",
        "i32, i32",
    )
    (a, b, _, after), faults = watched(text, ramp(16, 8), np.zeros((4, 8), np.int32), np.int32(5))
    assert [int(a), int(b)] == [4 * 8 * 4, 0]
    np.testing.assert_array_equal(after, ramp(16, 8)[5:9])
    assert faults == []


@pytest.mark.parametrize("late", [False, True])
def test_a_copy_of_as_many_rows_as_are_known_at_run_time(late: bool) -> None:
    """So many rows are copied, and as many bytes are counted and waited for, however late."""
    text = kernel(
        f"%h: {HBM}, %v: {VMEM}, %i: i32, %n: i32",
        f"""%s = tpu.sem_alloc : {DMA}
        %p = tpu.memref_slice %h[%i, %k0] <%n> : {HBM} -> {SOME_HBM}
        %q = tpu.memref_slice %v[%k1, %k0] <%n> : {VMEM} -> {SOME_VMEM}
        """
        + copy("%p", "%q", "%s", (SOME_HBM, SOME_VMEM))
        + count("a", "%s")
        + wait("%p", "%q", "%s", (SOME_HBM, SOME_VMEM))
        + count("b", "%s")
        + "return %a, %b : i32, i32",
        "i32, i32",
    )
    for start, n in ((0, 0), (3, 2), (13, 3)):
        old = -ramp(4, 8)
        (a, b, _, after), faults = watched(text, ramp(16, 8), old, np.int32(start), np.int32(n), late=late)
        assert [int(a), int(b)] == [n * 8 * 4, 0]
        np.testing.assert_array_equal(after, np.concatenate([old[:1], ramp(16, 8)[start : start + n], old[1 + n :]]))
        assert faults == []


def test_copies_in_a_loop_are_made_one_after_the_other() -> None:
    """Memory that is only copied to in a loop holds all of it afterwards."""
    row = "memref<1x8xi32, #tpu.memory_space<hbm>>"
    text = kernel(
        f"%h: {HBM}, %g: {HBM}, %n: i32, %s: {DMA}",
        f"""scf.for %i = %k0 to %n step %k1 : i32 {{
          %j = arith.addi %i, %i : i32
          %p = tpu.memref_slice %h[%i, %k0] : {HBM} -> {row}
          %q = tpu.memref_slice %g[%j, %k0] : {HBM} -> {row}
          {copy("%p", "%q", "%s", (row, row))}
          {wait("%p", "%q", "%s", (row, row))}
        }}
        return""",
    )
    zero = np.zeros((), np.int32)
    (_, after, left), _ = watched(text, ramp(16, 8), np.zeros((16, 8), np.int32), np.int32(6), zero)
    expected = np.zeros((16, 8), np.int32)
    expected[:12:2] = ramp(16, 8)[:6]
    np.testing.assert_array_equal(after, expected)
    assert left == 0


INDIRECT = "attributes {tpu.core_type = #tpu.core_type<sc_vector_subcore>}"
OFFSETS = "vector<4xi32>"


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("gathers", [False, True])
def test_rows_are_gathered_and_scattered_by_offsets(gathers: bool, filtered: bool, add: bool) -> None:
    """A row for each offset that isn't the one to be left out is copied or added; all rows' bytes are counted."""
    source, target = ("%h", "%v") if gathers else ("%v", "%h")
    kinds = (HBM, VMEM) if gathers else (VMEM, HBM)
    unwanted, extra = (", %x", ", i32") if filtered else ("", "")
    text = kernel(
        f"%h: {HBM}, %v: {VMEM}, %o: {OFFSETS}, %x: i32",
        f"""%s = tpu.sem_alloc : {DMA}
        "tpu.enqueue_indirect_dma"({source}, {target}, %o, %s{unwanted}) <{{add = {str(add).lower()}}}>
          : ({kinds[0]}, {kinds[1]}, {OFFSETS}, {DMA}{extra}) -> ()
        {count("a", "%s")}
        "tpu.wait_indirect_dma"(%s, {source}, {target}) : ({DMA}, {kinds[0]}, {kinds[1]}) -> ()
        {count("b", "%s")}
        return %a, %b : i32, i32""",
        "i32, i32",
        INDIRECT,
    )
    offsets = np.array([14, 3, -1 if filtered else 0, 9], np.int32)
    hbm, vmem = ramp(16, 8), -10 * ramp(4, 8)
    (a, b, hbm_after, vmem_after), faults = watched(text, hbm, vmem, offsets, np.int32(-1))
    assert [int(a), int(b)] == [128, 0]
    assert faults == []
    kept = [n for n in range(4) if offsets[n] >= 0]
    expected = (hbm.copy(), vmem.copy())
    for n in kept:
        if gathers:
            expected[1][n] = hbm[offsets[n]] + (vmem[n] if add else 0)
        else:
            expected[0][offsets[n]] = vmem[n] + (hbm[offsets[n]] if add else 0)
    np.testing.assert_array_equal(hbm_after, expected[0])
    np.testing.assert_array_equal(vmem_after, expected[1])
