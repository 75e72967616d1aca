"""The JSON of a launch: its binary parts out and in again, the rest to the character, and operands renumbered."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosaic_grid.backend_config import ConfigError, Payload, has_debug_locations, join, parse, renumber_operands, split

BODY = "TUzvUg=="  # b"ML\xefR"


def test_split_and_join() -> None:
    """The two binary parts come out, empty strings stay in their places, and joining is the inverse."""
    text = '{"custom_call_config": {"body": "TUzvUg==", "x": 1, "debug_locations": "eA=="}}'
    bare, payload = split(text)
    assert bare == '{"custom_call_config": {"body": "", "x": 1, "debug_locations": ""}}'
    assert payload == Payload(b"ML\xefR", b"x")
    assert join(bare, payload) == text
    assert has_debug_locations(text)


def test_no_debug_locations() -> None:
    """A configuration without locations gets none."""
    text = '{"custom_call_config": {"body": "TUzvUg=="}}'
    bare, payload = split(text)
    assert payload == Payload(b"ML\xefR", None)
    assert join(bare, payload) == text
    assert not has_debug_locations(text)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.just("body"), inner, max_size=3)
    ),
    max_leaves=8,
)
BINARY = {"body", "debug_locations", "custom_call_config"}


@given(
    st.dictionaries(st.text(max_size=5), values, max_size=3),
    st.dictionaries(st.text(max_size=5).filter(lambda key: key not in BINARY), values, max_size=3),
    st.sampled_from([None, 0, 2, "\t"]),
    st.sampled_from([(", ", ": "), (",", ":"), (" ,\n", "\r\n : ")]),
    st.booleans(),
)
def test_everything_else_survives(
    outer: dict[str, Any], section: dict[str, Any], indent: Any, separators: tuple[str, str], ascii_only: bool
) -> None:
    """Whatever stands around the binary parts, other fields named like them included, is the same afterwards."""
    around = {"custom_call_config": {**section, "body": "", "debug_locations": ""}, **outer}
    around["custom_call_config"] = {**section, "body": BODY, "debug_locations": "eA=="}
    text = json.dumps(around, indent=indent, separators=separators, ensure_ascii=ascii_only)
    bare, payload = split(text)
    around["custom_call_config"] = {**section, "body": "", "debug_locations": ""}
    assert bare == json.dumps(around, indent=indent, separators=separators, ensure_ascii=ascii_only)
    assert join(bare, payload) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "backend_config is not JSON: Expecting value"),
        ("{", "backend_config is not JSON: "),
        ("[" * 100_000, "backend_config is not JSON: "),
        ("1" * 10_000, "backend_config "),
        ("null", "backend_config has no 'custom_call_config' object"),
        ("{}", "backend_config has no 'custom_call_config' object"),
        ('{"custom_call_config": []}', "backend_config has no 'custom_call_config' object"),
    ],
)
def test_not_a_configuration(text: str, message: str) -> None:
    """Text of another kind is refused with a reason, by everything that reads it."""
    for function in (parse, split, has_debug_locations, lambda text: join(text, Payload(b"", None))):
        with pytest.raises(ConfigError, match=re.escape(message)):
            function(text)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({}, "backend_config has no 'custom_call_config.body' string: there is no kernel in this call"),
        ({"body": None}, "backend_config has no 'custom_call_config.body' string"),
        ({"body": "TUz"}, "'custom_call_config.body' is not base64: Incorrect padding"),
        ({"body": "TU zvUg=="}, "'custom_call_config.body' is not base64: "),
        ({"body": "TUzvUg==", "debug_locations": {}}, "'custom_call_config.debug_locations' is not base64: "),
    ],
)
def test_no_kernel(section: dict[str, Any], message: str) -> None:
    """A configuration whose binary parts are missing or damaged is refused, and says which."""
    with pytest.raises(ConfigError, match=re.escape(message)):
        split(json.dumps({"custom_call_config": section}))


def test_join_without_a_place() -> None:
    """A body can't be put where the configuration has no field for it."""
    with pytest.raises(ConfigError, match=re.escape("backend_config has no 'custom_call_config.body' string")):
        join('{"custom_call_config": {"x": ["body", ""]}, "body": ""}', Payload(b"x", None))


def test_operands_are_renumbered() -> None:
    """Fields that count operands follow them: what went is forgotten, and a new operand is not fused."""
    colors = [{"operand_index": 0, "color": 1}, {"operand_index": 2, "color": 4, "x": "y"}]
    section = {"input_memory_space_colors": colors, "allow_input_fusion": [True, False, True], "other": 1}
    text = json.dumps({"custom_call_config": section, "device_type": "tpu"})
    got = json.loads(renumber_operands(text, {1: 0, 2: 3}, 4))
    assert got == {
        "custom_call_config": {
            "input_memory_space_colors": [{"operand_index": 3, "color": 4, "x": "y"}],
            "allow_input_fusion": [False, False, False, True],
            "other": 1,
        },
        "device_type": "tpu",
    }


def test_nothing_to_renumber() -> None:
    """A configuration without such fields stays what it says."""
    text = '{"custom_call_config": {"body": ""}}'
    assert json.loads(renumber_operands(text, {0: 1}, 2)) == json.loads(text)


@pytest.mark.parametrize(
    "section",
    [
        {"input_memory_space_colors": [{}]},
        {"input_memory_space_colors": None},
        {"input_memory_space_colors": [1]},
        {"allow_input_fusion": None},
        {"allow_input_fusion": 3},
    ],
)
def test_fields_of_another_form_can_not_be_renumbered(section: dict[str, object]) -> None:
    """What JAX doesn't write is an error that says so."""
    with pytest.raises(ConfigError, match="a field of backend_config that counts operands is not what JAX writes"):
        renumber_operands(json.dumps({"custom_call_config": section}), {0: 1}, 2)
