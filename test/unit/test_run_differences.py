"""How arrays differ: against plain Python, element by element."""

from __future__ import annotations

import math
import struct
from typing import Any

import hypothesis.extra.numpy as arrays
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosaic_grid.runner.differences import Tolerance, difference

KINDS = [np.dtype(kind) for kind in (np.float32, np.float64, np.int8, np.int64, np.uint64, np.bool_)]


def bits(value: Any) -> object:
    """What an element is made of; one NaN is as good as another."""
    number = value.item()
    if isinstance(number, float):
        return "nan" if math.isnan(number) else struct.pack("d", number)
    return number


@given(st.data())
def test_exact_comparison(data: st.DataObject) -> None:
    """The count and the first index are those of a comparison bit by bit."""
    kind, shape = data.draw(st.sampled_from(KINDS)), data.draw(st.sampled_from([(), (0,), (3,), (2, 3)]))
    left, right = (data.draw(arrays.arrays(kind, shape)) for _ in range(2))
    unequal = [at for at in np.ndindex(shape) if bits(left[at]) != bits(right[at])]
    found = difference(left, right, Tolerance())
    assert (found.count, found.total) == (len(unequal), left.size)
    assert found.first == (unequal[0] if unequal else None)
    if unequal:
        assert (bits(found.left), bits(found.right)) == (bits(left[unequal[0]]), bits(right[unequal[0]]))
    gaps = [abs(int(left[at]) - int(right[at])) for at in np.ndindex(shape)] if kind.kind in "iub" else []
    if gaps:
        assert found.absolute == float(max(gaps))


@given(arrays.arrays(np.float64, (5,)), arrays.arrays(np.float64, (5,)), st.floats(0, 1), st.floats(0, 1))
def test_tolerance(left: Any, right: Any, relative: float, absolute: float) -> None:
    """With a tolerance the elements that differ are those NumPy says are not close."""
    if relative == absolute == 0:
        return
    with np.errstate(all="ignore"):
        close = np.isclose(left, right, relative, absolute, equal_nan=True)
    # NumPy takes no infinite gap for close, whatever the tolerance
    assert difference(left, right, Tolerance(relative, absolute)).count == np.count_nonzero(~close)


@pytest.mark.parametrize(
    ("left", "right", "count", "absolute", "relative"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0, 0, 0),
        ([1.0, 3.0], [1.0, 2.0], 1, 1, 0.5),
        ([math.nan], [math.nan], 0, 0, 0),
        ([-0.0], [0.0], 1, 0, 0),
        ([math.inf], [math.inf], 0, 0, 0),
        ([math.inf], [1.0], 1, math.inf, math.inf),
        ([1.0], [0.0], 1, 1, math.inf),
    ],
)
def test_cases(left: list[float], right: list[float], count: int, absolute: float, relative: float) -> None:
    """Signs of zero count, NaNs are alike, and a difference to 0 is infinitely large relative to it."""
    found = difference(np.array(left), np.array(right), Tolerance())
    assert (found.count, found.absolute, found.relative) == (count, absolute, relative)


def test_nan_against_a_number() -> None:
    """It differs, whatever the tolerance, and so says the maximum."""
    for tolerance in (Tolerance(), Tolerance(1.0, 1e9)):
        found = difference(np.array([math.nan, 1.0]), np.array([1.0, 1.0]), tolerance)
        assert (found.count, found.first) == (1, (0,))
        assert math.isnan(found.absolute)


@pytest.mark.parametrize("kind", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4, np.complex64])
def test_other_types(kind: Any) -> None:
    """The types that NumPy doesn't have are compared by their numbers."""
    left, right = np.array([[1, 2], [3, 4]]).astype(kind), np.array([[1, 2], [3, 2]]).astype(kind)
    found = difference(left, right, Tolerance())
    assert (found.count, found.first, found.absolute, found.relative) == (1, (1, 1), 2, 1)


def test_large_integers() -> None:
    """Differences of 64-bit integers don't wrap."""
    left, right = np.array([2**63 - 1, 0]), np.array([-(2**63), 0])
    assert difference(left, right, Tolerance()).absolute == 2.0**64
