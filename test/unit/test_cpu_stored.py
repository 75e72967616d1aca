"""Memory of every type of numbers: it keeps all bits, and is updated in place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from cpu_harness import run
from cpu_in_place import whole_tensors_made
from cpu_memory_programs import program, scalars

from mosaic_grid.cpu import build
from mosaic_grid.cpu.arrays import DTYPES, Array
from mosaic_grid.cpu.build import Index
from mosaic_grid.cpu.memory import Memory
from mosaic_grid.cpu.roots import Root
from mosaic_grid.cpu.views import View
from mosaic_grid.ir_types import Value

SMALL = ["i1", "i2", "i4", "f4E2M1FN", "i8", "f8E4M3FN", "f8E5M2", "f8E8M0FNU", "f8E4M3B11FNUZ", "f8E3M4"]


def moves(memory: Memory, roots: Sequence[Root], indices: Sequence[Index]) -> list[Value]:
    """Row k of the first root goes to row k + 1 of the second, for as many as the index says."""

    def step(index: Value) -> None:
        row = memory.read(View(roots[0]).slice([index, 0], [1, 512]))
        memory.write(View(roots[0]).slice([index, 0], [1, 512]), build.zeros_like(row))
        memory.write(View(roots[1]).slice([build.add_index(index, 1), 0], [1, 512]), row)

    memory.for_each(build.as_value(indices[0]), step, roots)
    return []


@pytest.mark.parametrize("element", [*SMALL, "bf16", "f16", "f32"])
def test_numbers_of_few_bits_are_moved_in_place_and_whole(element: str) -> None:
    """Rows of every bit pattern, those of NaNs included, arrive as they were, at the cost of a row."""
    kind = ((256, 512), element)
    run_ = program([kind, kind], 1, moves)
    assert whole_tensors_made(run_, 256 * 512) == []
    dtype = DTYPES[element]
    bits = {"i1": 1, "i2": 2, "i4": 4, "f4E2M1FN": 4}.get(element, 8)
    patterns = np.arange(256 * 512 * dtype.itemsize).reshape(256, -1) * 73 % 2**bits
    source = patterns.astype(dtype) if element.startswith("i") else patterns.astype(np.uint8).view(dtype)
    first, second = (bits_of(after) for after in run_(source, np.zeros((256, 512), dtype), *scalars(100)))
    np.testing.assert_array_equal(second[1:101], bits_of(source)[:100])
    np.testing.assert_array_equal(first[100:], bits_of(source)[100:])
    assert not second[101:].any()
    assert not first[:100].any()


def bits_of(array: Array) -> Array:
    """What the numbers are made of: bytes, unless they are integers."""
    return array.astype(np.int64) if array.dtype.kind in "biu" else array.view(np.uint8)


def test_memory_of_packed_numbers_is_seen_as_wider_ones() -> None:
    """Eight rows of 4 bits each are one of 32, the first of them in its low bits, and can be written as such."""
    m, w = "memref<16x128xi4, #tpu.memory_space<vmem>>", "memref<2x128xi32, #tpu.memory_space<vmem>>"
    text = f"""func.func @f(%m: {m}) -> vector<1x128xi32> {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %w = tpu.memref_bitcast %m : {m} -> {w}
        %a = vector.load %w[%c1, %c0] : {w}, vector<1x128xi32>
        vector.store %a, %w[%c0, %c0] : {w}, vector<1x128xi32>
        return %a : vector<1x128xi32> }}"""
    numbers = (np.arange(16 * 128) * 5 % 16 - 8).reshape(16, 128)
    read, after = run(text, numbers.astype(DTYPES["i4"]))
    packed = sum((numbers[8 + k] & 15).astype(np.uint32) << np.uint32(4 * k) for k in range(8))
    np.testing.assert_array_equal(read.view(np.uint32)[0], packed)
    np.testing.assert_array_equal(after.astype(np.int32), np.concatenate([numbers[8:], numbers[8:]]))
