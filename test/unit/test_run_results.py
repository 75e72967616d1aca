"""What is said of results, and what is saved of them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from jaxlib.mlir import ir

from mosaic_grid.containers import text as mlir_text
from mosaic_grid.context import create_context
from mosaic_grid.cpu.arrays import DTYPES, TensorSpec
from mosaic_grid.errors import UserError
from mosaic_grid.runner import results, values
from mosaic_grid.runner.results import Result


def result(array: Any, number: int = 0, name: str = "") -> Result:
    """A result of this value."""
    found = np.asarray(array)
    return Result(number, name, TensorSpec(f"result {number}", found.shape, found.dtype), found)


def test_facts_are_of_what_is_no_nan() -> None:
    """Extremes and mean leave NaNs out, and count them."""
    found = results.facts(result(np.array([[1, math.nan], [3, 5]], np.float32), 2, "['a']"))
    del found["sha256"]
    assert found == {
        "result": 2, "name": "['a']", "type": "f32", "shape": [2, 2], "min": 1.0, "max": 5.0, "mean": 3.0, "nan": 1
    }  # fmt: skip


@pytest.mark.parametrize(
    ("array", "least", "most", "mean", "missing"),
    [
        (np.zeros((0, 3), np.float32), None, None, None, 0),
        (np.array([math.nan], np.float32), None, None, None, 1),
        (np.array([2**63 - 1, -(2**63)]), -(2**63), 2**63 - 1, 0.0, 0),
        (np.array([2**64 - 1], np.uint64), 2**64 - 1, 2**64 - 1, 2.0**64, 0),
        (np.array([True, False]), 0, 1, 0.5, 0),
        (np.array([1, -8]).astype(ml_dtypes.int4), -8, 1, -3.5, 0),
        (np.array([1, math.nan]).astype(ml_dtypes.bfloat16), 1.0, 1.0, 1.0, 1),
        (np.array([1j, math.nan]), None, None, None, 1),
        (np.array([math.inf, -math.inf], np.float32), -math.inf, math.inf, math.nan, 0),
    ],
)
def test_facts_of_types(array: Any, least: object, most: object, mean: object, missing: int) -> None:
    """Every kind of number has its facts, exact for integers."""
    found = results.facts(result(array))
    assert (found["min"], found["max"], found["nan"]) == (least, most, missing)
    assert found["mean"] == pytest.approx(mean, nan_ok=True)


def test_checksum_is_of_the_contents_alone() -> None:
    """The order of an array in memory doesn't change it, any element does."""
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    other = array.copy()
    other[1, 2] = -5
    sums = [results.facts(result(each))["sha256"] for each in (array, np.asfortranarray(array), other)]
    assert sums[0] == sums[1] != sums[2]


def test_table() -> None:
    """A line a result, in columns; results without names have their number."""
    lines = results.table([result(np.float32(1.25)), result(np.zeros((12, 3), np.int8), 1, "[1]['long']")]).splitlines()
    assert lines[0].split() == ["result", "type", "min", "max", "mean", "NaN", "sha256"]
    assert lines[1].split()[:6] == ["0", "f32[]", "1.25", "1.25", "1.25", "0"]
    assert lines[2].split()[:7] == ["1", "[1]['long']", "i8[12,3]", "0", "0", "0", "0"]
    assert lines[1].index("f32") == lines[2].index("i8")
    assert results.table([]) == "the program returns nothing\n"


def test_what_json_has_no_word_for() -> None:
    """Infinities and NaN become text, wherever they are."""
    document = results.plain({"a": [math.inf, {"b": (-math.inf, math.nan, 1.5, None, 2)}]})
    assert json.loads(json.dumps(document, allow_nan=False)) == {"a": ["inf", {"b": ["-inf", "nan", 1.5, None, 2]}]}


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_what_is_saved_can_be_read_as_an_input(dtype: Any, tmp_path: Path) -> None:
    """Results of every type are inputs of the same value again."""
    spec = TensorSpec("argument 0", (3, 4), dtype)
    array = values.random(spec, 0, 0)
    results.save([result(array)], str(tmp_path / "a.npy"))
    results.save([result(array), result(np.zeros(2), 1)], str(tmp_path / "a.npz"))
    assert values.parse_value(str(tmp_path / "a.npy"), spec, 0, 0).tobytes() == array.tobytes()
    with np.load(tmp_path / "a.npz") as archive:
        assert archive.files == ["result0", "result1"]
        assert values.from_array(archive["result0"], spec).tobytes() == array.tobytes()
    assert f"result 0 {spec} =\n[[" in results.values([result(array)])


def test_bad_places_for_results(tmp_path: Path) -> None:
    """A name says how arrays are saved, and one file holds one array."""
    with pytest.raises(UserError, match=r"-o writes arrays: 'a\.txt' should end in \.npz, or in \.npy for one array"):
        results.save([], "a.txt")
    with pytest.raises(UserError, match=r"the program returns 2 arrays, and a \.npy file holds one"):
        results.save([result(1.0), result(2.0)], str(tmp_path / "a.npy"))
    assert list(tmp_path.iterdir()) == []


def test_names_come_from_jax() -> None:
    """What JAX says of a result is its name, without the word that all of them begin with."""
    text = """func.func @main() -> (tensor<f32> {jax.result_info = "result['a']"},
                                    tensor<f32> {jax.result_info = "result"}, tensor<f32>) {
      %0 = stablehlo.constant dense<0.0> : tensor<f32>
      return %0, %0, %0 : tensor<f32>, tensor<f32>, tensor<f32>
    }"""
    with create_context() as context:
        main: ir.Operation = mlir_text.parse(text, "a", context).regions[0].blocks[0].operations[0].operation
        specs = [TensorSpec("", (), np.dtype(np.float32))] * 3
        found = results.results_of(main, specs, [np.zeros((), np.float32)] * 3)
    assert [each.label for each in found] == ["result 0 (['a'])", "result 1", "result 2"]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array([1, np.nan], np.float32), True),
        (np.array([1, np.inf], np.float32), False),
        (np.array([np.nan], ml_dtypes.bfloat16), True),
        (np.array([1, -(2**31)], np.int32), True),
        (np.array([1, 1 - 2**31], np.int32), False),
        (np.array([-128], np.int8), False),
        (np.array([0], np.uint32), False),
        (np.array([False]), False),
    ],
)
def test_what_may_be_unwritten(array: Any, expected: bool) -> None:
    """NaN may be, and the least of the wide integers; of narrow ones and bools any number is too common to say."""
    assert results.may_be_unwritten(result(array)) is expected
