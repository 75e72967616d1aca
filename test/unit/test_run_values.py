"""Arrays from texts, numbers and files: what a program is run on."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as arrays
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosaic_grid.cpu.arrays import DTYPES, TensorSpec
from mosaic_grid.errors import UserError
from mosaic_grid.runner import values

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)
BF16 = np.dtype(ml_dtypes.bfloat16)
# the exponents alone: it has no zero and no sign
REAL = {name: dtype for name, dtype in DTYPES.items() if dtype.kind != "c" and name != "f8E8M0FNU"}


def spec(shape: tuple[int, ...] = (), dtype: np.dtype[Any] = F32) -> TensorSpec:
    """An argument number 1 with a name."""
    return TensorSpec("argument 1 (x)", shape, dtype)


def parsed(text: str, kind: TensorSpec) -> Any:
    """The value as argument 1, with seed 0."""
    return values.parse_value(text, kind, 1, 0)


@pytest.mark.parametrize(
    ("text", "dtype", "expected"),
    [
        ("5", I32, 5),
        ("-5", I32, -5),
        ("0.1", F32, np.float32(0.1)),
        ("0.1", BF16, BF16.type(0.1)),
        ("1e3", F32, 1000),
        ("inf", F32, np.inf),
        ("-inf", F32, -np.inf),
        ("true", np.dtype(np.bool_), True),
        ("0", np.dtype(np.bool_), False),
        ("-8", np.dtype(ml_dtypes.int4), -8),
        ("18446744073709551615", np.dtype(np.uint64), 2**64 - 1),
    ],
)
def test_numbers(text: str, dtype: np.dtype[Any], expected: object) -> None:
    """A number is rounded to a float type, and exact in an integer type; it fills an array of any shape."""
    for shape in ((), (2, 3)):
        found = parsed(text, spec(shape, dtype))
        assert (found.shape, found.dtype) == (shape, dtype)
        assert (found == expected).all()


def test_nan() -> None:
    """NaN has a name too."""
    assert np.isnan(parsed("nan", spec((2,)))).all()


def test_lists() -> None:
    """Nested lists have the shape of the argument."""
    np.testing.assert_array_equal(parsed("[[1, 2.5], [3, 4]]", spec((2, 2))), np.array([[1, 2.5], [3, 4]], np.float32))
    assert parsed("[]", spec((0,))).shape == (0,)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("foo", spec(), "argument 1 (x): 'foo' is no value"),
        ("[1, 2]", spec((3,)), "argument 1 (x) is f32[3]; it got a list of shape [2]"),
        ("[[1], [2, 3]]", spec((2, 2)), "argument 1 (x) is f32[2,2]; the lists that it got differ in length"),
        ('["a"]', spec((1,)), "argument 1 (x) is f32[1]; it got \"['a']\", which is not numbers"),
        ("null", spec(), "argument 1 (x) is f32[]; it got 'None', which is not numbers"),
        ("1.5", spec((), I32),
         "argument 1 (x) is i32[]: it takes integers from -2147483648 to 2147483647, and got 1.5"),
        ("2147483648", spec((), I32),
         "argument 1 (x) is i32[]: it takes integers from -2147483648 to 2147483647, and got 2147483648"),
        ("8", spec((), np.dtype(ml_dtypes.int4)), "argument 1 (x) is i4[]: it takes integers from -8 to 7, and got 8"),
        ("2", spec((), np.dtype(np.bool_)), "argument 1 (x) is i1[]: it takes integers from 0 to 1, and got 2"),
        ("random:x", spec(), "argument 1 (x): 'random:x' is no value"),
        ("1e40", spec(), "argument 1 (x) is f32[]: it takes numbers from -3.40282e+38 to 3.40282e+38, and got 1e+40"),
        ("[1, -70000]", spec((2,), np.dtype(np.float16)),
         "argument 1 (x) is f16[2]: it takes numbers from -65504 to 65504, and got -70000"),
        ("100", spec((), np.dtype(ml_dtypes.float4_e2m1fn)),
         "argument 1 (x) is f4E2M1FN[]: it takes numbers from -6 to 6, and got 100"),
        ("1e40", spec((), np.dtype(np.complex64)),
         "argument 1 (x) is complex<f32>[]: it takes numbers from -3.40282e+38 to 3.40282e+38, and got 1e+40"),
    ],
)  # fmt: skip
def test_bad_values(text: str, kind: TensorSpec, message: str) -> None:
    """What doesn't fit is said with the argument, its type and what it got."""
    with pytest.raises(UserError) as caught:
        parsed(text, kind)
    assert caught.value.message == message


@pytest.mark.parametrize("dtype", REAL.values(), ids=REAL)
def test_random_values_are_of_the_type_and_repeatable(dtype: np.dtype[Any]) -> None:
    """Random values are those of their seed and position, and in the documented range."""
    kind = spec((8, 16), dtype)
    found = parsed("random", kind)
    assert (found.shape, found.dtype) == ((8, 16), dtype)
    assert found.tobytes() == parsed("random:0", kind).tobytes() == values.random(kind, 1, 0).tobytes()
    assert found.tobytes() != parsed("random:1", kind).tobytes() != values.random(kind, 2, 1).tobytes()
    if values.is_integer(dtype):
        assert set(found.astype(int).ravel()) == set(range(min(4, int(ml_dtypes.iinfo(dtype).max) + 1)))
    elif dtype != np.bool_:
        assert np.isfinite(found.astype(np.float64)).all()
        assert abs(found.astype(np.float64).mean()) < 0.5


@pytest.mark.parametrize("dtype", REAL.values(), ids=REAL)
def test_iota_counts_as_far_as_the_type_tells_numbers_apart(dtype: np.dtype[Any]) -> None:
    """Neighbours differ by one, or the count starts again from 0; no number is rounded."""
    found = parsed("iota", spec((5, 100), dtype)).astype(np.float64).ravel()
    steps = set(np.diff(found))
    assert found[0] == 0
    assert found[1] == 1
    assert steps <= {1.0, -found.max()}
    assert steps == {1.0} or found.max() < 499


@pytest.mark.parametrize("dtype", REAL.values(), ids=REAL)
def test_zeros_and_ones(dtype: np.dtype[Any]) -> None:
    """They are what they say in every type that has them."""
    assert (parsed("zeros", spec((3,), dtype)).astype(int) == 0).all()
    # in two bits with a sign there is 1, and so there is in all others
    assert (parsed("ones", spec((3,), dtype)).astype(int) == 1).all()


def test_random_values_do_not_depend_on_other_arguments() -> None:
    """Each argument has a stream of its own."""
    assert values.random(spec((4,)), 0, 0).tobytes() != values.random(spec((4,)), 1, 0).tobytes()
    assert values.random(spec((2,)), 1, 0).tobytes() == values.random(spec((4,)), 1, 0)[:2].tobytes()


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_files_hold_every_type(dtype: np.dtype[Any], tmp_path: Path) -> None:
    """What NumPy writes of an array is read as the same array, types of ml_dtypes included."""
    kind = spec((4, 4), dtype)
    array = values.random(kind, 0, 3)
    # of one of them NumPy writes what it can't read
    stored = array.view("V1") if dtype == ml_dtypes.float8_e5m2 else array
    np.save(tmp_path / "a.npy", stored)
    np.savez(tmp_path / "a.npz", x=stored, other=np.zeros(3))
    for name in ("a.npy", "a.npz"):
        assert parsed(str(tmp_path / name), kind).tobytes() == array.tobytes()


def test_archives_are_searched_by_name_and_number(tmp_path: Path) -> None:
    """Of several arrays the one is taken that is named like the argument, or after its number; a single one anyway."""
    for key in ("x", "arg1", "1"):
        named: Any = {key: np.float32(7), "y": np.float32(8)}
        np.savez(tmp_path / "a.npz", **named)
        assert parsed(str(tmp_path / "a.npz"), spec()) == 7
    np.savez(tmp_path / "a.npz", whatever=np.float32(9))
    assert parsed(str(tmp_path / "a.npz"), spec()) == 9
    np.savez(tmp_path / "a.npz", y=np.float32(8), z=np.float32(9))
    with pytest.raises(UserError, match=r"there is no array for argument 1 \(x\) in it\nnote: it has y, z"):
        parsed(str(tmp_path / "a.npz"), spec())


@pytest.mark.filterwarnings("error")
def test_complex_numbers_are_not_made_real() -> None:
    """Where an argument is real, an array of complex numbers is refused, and no warning is left to NumPy."""
    for dtype in (F32, I32, BF16, np.dtype(np.bool_)):
        with pytest.raises(UserError, match="it got complex128, and complex numbers are none of that type"):
            values.from_array(np.ones(2, np.complex128), spec((2,), dtype))
    assert values.from_array(np.ones(2, np.complex128), spec((2,), np.dtype(np.complex64))).dtype == np.complex64


def test_next_step_for_other_files(tmp_path: Path) -> None:
    """A table is to be converted; an empty archive and a file of something else are called what they are."""
    with pytest.raises(UserError, match=r"'x\.csv' is no value\nnote: a value is .*\nnote: convert the file to \.npy"):
        parsed("x.csv", spec())
    np.savez(tmp_path / "a.npz")
    with pytest.raises(UserError, match="note: it has no arrays at all"):
        parsed(str(tmp_path / "a.npz"), spec())
    (tmp_path / "a.npy").write_bytes(b"garbage")
    with pytest.raises(UserError, match=r"error: this is no array of NumPy: it doesn't begin as one$"):
        parsed(str(tmp_path / "a.npy"), spec())
    np.save(tmp_path / "a.npy", np.array([None]), allow_pickle=True)
    with pytest.raises(UserError, match=r"error: this is no array of NumPy: it holds objects of Python$"):
        parsed(str(tmp_path / "a.npy"), spec())


def test_bad_files(tmp_path: Path) -> None:
    """Files that are missing, damaged or no arrays are errors at the file."""
    path = tmp_path / "a.npy"
    with pytest.raises(UserError, match=r"a\.npy: error: can't read the array: no such file or directory"):
        parsed(str(path), spec())
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(100))
    for content in (b"", b"foo", buffer.getvalue()[:-5], buffer.getvalue()[:20]):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"a\.npy: error: this is no array of NumPy: "):
            parsed(str(path), spec())
    np.save(path, np.array([None]), allow_pickle=True)
    with pytest.raises(UserError, match=r"a\.npy: error: this is no array of NumPy: "):
        parsed(str(path), spec())
    np.savez(tmp_path / "a.npz", np.zeros(100))
    damaged = bytearray((tmp_path / "a.npz").read_bytes())
    damaged[100] ^= 0xFF
    (tmp_path / "a.npz").write_bytes(damaged)
    with pytest.raises(UserError, match=r"a\.npz: error: the array 'arr_0' can't be read: "):
        parsed(str(tmp_path / "a.npz"), spec((100,), np.dtype(np.float64)))


KINDS: list[np.dtype[Any]] = [
    *(np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.int32), np.dtype(np.float16), F32, np.dtype(np.float64)),
    *(np.dtype(np.int64), np.dtype(np.uint64), np.dtype(np.bool_), BF16),
]


@given(st.data())
def test_an_array_is_converted_exactly_or_not_at_all(data: st.DataObject) -> None:
    """Against Python's own numbers: every element keeps its value, or the whole array is refused."""
    source, target = (data.draw(st.sampled_from(KINDS)) for _ in range(2))
    elements = arrays.arrays(source if source != BF16 else F32, (3,))
    array = data.draw(elements).astype(source)
    numbers = [element.item() for element in array]
    if all(is_one_of(number, target) for number in numbers):
        found = values.from_array(array, spec((3,), target))
        assert found.dtype == target
        assert all(same(a, b.item()) for a, b in zip(numbers, found, strict=True))
    else:
        with pytest.raises(UserError, match="not all of its numbers are the same in that type"):
            values.from_array(array, spec((3,), target))


def is_one_of(number: float, kind: np.dtype[Any]) -> bool:
    """Whether a type has this number of Python's."""
    if kind == np.bool_:
        return number in (0, 1)
    if kind.kind in "iu":
        return math.isfinite(number) and int(number) == number and np.iinfo(kind).min <= number <= np.iinfo(kind).max
    with np.errstate(all="ignore"):
        rounded: float = np.array([number]).astype(kind)[0].item()
    return same(rounded, number)


def same(left: float, right: float) -> bool:
    """Whether two numbers of Python, which compares them exactly, are equal or both no number."""
    return left == right or (left != left and right != right)


def test_types_of_one_size_are_not_mixed_up() -> None:
    """Bytes without a type are taken as they are; a number of another type of that size isn't."""
    kind = spec((2,), np.dtype(np.float16))
    raw = np.array([1.5, 2.5], np.float16)
    assert values.from_array(raw.view("V2"), kind).tobytes() == raw.tobytes()
    assert (values.from_array(np.array([1.5, 2.5], BF16), kind) == raw).all()
    with pytest.raises(UserError, match="not all of its numbers"):
        values.from_array(np.array([1e30, 0], BF16), kind)
    with pytest.raises(UserError, match=r"argument 1 \(x\) is f16\[2\]; it got float32 of shape \[3\]"):
        values.from_array(np.zeros(3, np.float32), kind)
