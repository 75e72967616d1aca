"""Copies that land when they are waited for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from cpu_copies import BLOCK, DMA, DMAS, HBM, ONE, PART, VMEM, copy, kernel, ramp, wait
from cpu_harness import context, lower, run
from cpu_watched import watched
from jaxlib.mlir import ir

from mosaic_grid.context import unknown_location
from mosaic_grid.cpu.execute import compile_program
from mosaic_grid.cpu.late import Late
from mosaic_grid.cpu.lowering import Lowered, Lowering
from mosaic_grid.cpu.rules import RULES
from mosaic_grid.cpu.views import View

TWO = kernel(
    f"%h: {HBM}, %v: {VMEM}, %w: {VMEM}, %i: i32, %z: {DMAS}",
    f"""%s1 = tpu.memref_slice %z[%k2] : {DMAS} -> {ONE}
    %s = tpu.memref_squeeze %s1 : {ONE} -> {DMA}
    %t1 = tpu.memref_slice %z[%i] : {DMAS} -> {ONE}
    %t = tpu.memref_squeeze %t1 : {ONE} -> {DMA}
    {BLOCK}"""
    + copy("%p", "%v", "%s")
    + copy("%p", "%w", "%t")
    + f"%a = vector.load %v[%c0, %c0] : {VMEM}, vector<4x8xi32>\n"
    + wait("%p", "%v", "%s")
    + f"%b = vector.load %v[%c0, %c0] : {VMEM}, vector<4x8xi32>\n"
    + f"%c = vector.load %w[%c0, %c0] : {VMEM}, vector<4x8xi32>\n"
    + "return %a, %b, %c : vector<4x8xi32>, vector<4x8xi32>, vector<4x8xi32>",
    "vector<4x8xi32>, vector<4x8xi32>, vector<4x8xi32>",
)


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_a_late_copy_is_there_once_its_semaphore_is_waited_for(late: bool, same: bool) -> None:
    """Before the wait memory is as it was, after it all that the semaphore brings is there; another's isn't."""
    old = -ramp(4, 8)
    number = np.int32(2 if same else 1)
    values, _ = watched(TWO, ramp(16, 8), old, old, number, np.zeros(3, np.int32), late=late)
    new = ramp(16, 8)[number : number + 4]
    np.testing.assert_array_equal(values[0], old if late else new)
    np.testing.assert_array_equal(values[1], new)
    np.testing.assert_array_equal(values[2], new if same or not late else old)


def test_semaphores_of_two_arrays_are_told_apart() -> None:
    """The first semaphore of one array doesn't land what the first of another brings."""
    text = kernel(
        f"%h: {PART}, %v: {VMEM}, %w: {VMEM}, %s: {DMA}, %t: {DMA}",
        copy("%h", "%v", "%s")
        + copy("%h", "%w", "%t")
        + copy("%h", "%w", "%s")
        + copy("%h", "%v", "%t")
        + wait("%h", "%v", "%t")
        + "return",
    )
    zero = np.zeros((), np.int32)
    (_, v, w, *_), _ = watched(text, ramp(4, 8), -ramp(4, 8), -ramp(4, 8), zero, zero, late=True)
    np.testing.assert_array_equal(v, ramp(4, 8))
    np.testing.assert_array_equal(w, -ramp(4, 8))


def test_a_late_copy_has_what_its_source_held_at_the_start() -> None:
    """Writing the source after the start doesn't change what lands, in a loop over slots that take turns."""
    slots = "memref<2x8xi32, #tpu.memory_space<vmem>>"
    slot, row = "memref<1x8xi32, #tpu.memory_space<vmem>>", "memref<1x8xi32, #tpu.memory_space<hbm>>"
    pair, one = (f"memref<{n}x!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>" for n in (2, 1))

    def at(number: str, name: str) -> str:
        return f"""%slot{name} = arith.remsi {number}, %k2 : i32
        %row{name} = tpu.memref_slice %h[{number}, %k0] : {HBM} -> {row}
        %place{name} = tpu.memref_slice %m[%slot{name}, %k0] : {slots} -> {slot}
        %one{name} = tpu.memref_slice %s[%slot{name}] : {pair} -> {one}
        %sem{name} = tpu.memref_squeeze %one{name} : {one} -> {DMA}
        """

    text = kernel(
        f"%h: {HBM}, %o: {HBM}, %n: i32",
        f"""%m = memref.alloca() : {slots}
        %s = tpu.sem_alloc : {pair}
        {at("%k0", "f")}{copy("%rowf", "%placef", "%semf", (row, slot))}
        scf.for %i = %k0 to %n step %k1 : i32 {{
          %j = arith.addi %i, %k1 : i32
          {at("%j", "j")}{copy("%rowj", "%placej", "%semj", (row, slot))}
          %jx = arith.index_cast %j : i32 to index
          %zero = arith.constant dense<0> : vector<1x8xi32>
          vector.store %zero, %h[%jx, %c0] : {HBM}, vector<1x8xi32>
          {at("%i", "i")}{wait("%rowi", "%placei", "%semi", (row, slot))}
          %sx = arith.index_cast %sloti : i32 to index
          %x = vector.load %m[%sx, %c0] : {slots}, vector<1x8xi32>
          %ix = arith.index_cast %i : i32 to index
          vector.store %x, %o[%ix, %c0] : {HBM}, vector<1x8xi32>
        }}
        return""",
    )
    expected = np.zeros((16, 8), np.int32)
    expected[:9] = ramp(16, 8)[:9]
    for late in (False, True):
        (_, after), faults = watched(text, ramp(16, 8), np.zeros((16, 8), np.int32), np.int32(9), late=late)
        np.testing.assert_array_equal(after, expected)
        assert faults == []


def test_a_late_copy_goes_through_views_of_other_numbers() -> None:
    """Of packed memory just the elements that are copied to land, and they land whole."""
    h, v = "memref<2x128xi32, #tpu.memory_space<hbm>>", "memref<8x128xbf16, #tpu.memory_space<vmem>>"
    w, x = "memref<4x128xi32, #tpu.memory_space<vmem>>", "memref<2x128xi32, #tpu.memory_space<vmem>>"
    text = kernel(
        f"%h: {h}, %v: {v}, %i: i32",
        f"""%s = tpu.sem_alloc : {DMA}
        %w = tpu.memref_bitcast %v : {v} -> {w}
        %x = tpu.memref_slice %w[%i, %k0] : {w} -> {x}
        """
        + copy("%h", "%x", "%s", (h, x))
        + f"%a = vector.load %v[%c0, %c0] : {v}, vector<8x128xbf16>\n"
        + wait("%h", "%x", "%s", (h, x))
        + "return %a : vector<8x128xbf16>",
        "vector<8x128xbf16>",
    )
    rows = np.zeros((8, 128), np.uint16)
    rows[2:6] = np.arange(512).reshape(4, 128)
    packed = rows[2:6:2].astype(np.uint32) | rows[3:7:2].astype(np.uint32) << 16
    old = run(f"func.func @f(%a: {v}) {{ return }}", np.zeros((8, 128), "f4").astype("bfloat16"))[0]
    (before, _, after), _ = watched(text, packed.view(np.int32), old, np.int32(1), late=True)
    assert not before.view(np.uint16).any()
    np.testing.assert_array_equal(after.view(np.uint16), rows)


def test_what_another_core_left_in_flight_is_forgotten() -> None:
    """A copy that was started before a restart never lands, not even if its semaphore is waited for."""
    body = f"scf.if %p {{\n{copy('%h', '%v', '%s')}}}\n{wait('%h', '%v', '%s')}return"
    text = kernel(f"%h: {PART}, %v: {VMEM}, %s: {DMA}, %p: i1", body)
    for restarts in (False, True):

        def start(
            low: Lowering, function: ir.Operation, arguments: Sequence[Lowered], restarts: bool = restarts
        ) -> None:
            low.late = Late(function)
            views = [each for each in arguments if isinstance(each, View)]
            for argument, view in zip(function.regions[0].blocks[0].arguments, views, strict=False):
                low.late.prepare(low.memory, argument, view.root)
            low.late.start(low.memory, views[0].slice([1, 0], [2, 8]), views[1].slice([0, 0], [2, 8]), views[2])
            if restarts:
                low.late.restart(low.memory)

        with context(), unknown_location():
            program = compile_program(lower(text, RULES, None, start)[0].operation)
        _, after, _ = program(ramp(4, 8), -ramp(4, 8), np.zeros((), np.int32), np.zeros((), np.bool_))
        expected = -ramp(4, 8)
        if not restarts:
            expected[:2] = ramp(4, 8)[1:3]
        np.testing.assert_array_equal(after, expected)
