"""The JSON in a launch's `backend_config`: the kernel's bytes taken out and put back, operand indices renumbered.

The text is kept as it was found, character for character, around the two base64 strings: a field we have never heard
of, or an unusual spelling, survives. Written by `CustomCallBackendConfig.to_json` in JAX's `tpu_custom_call.py`.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any, cast

SECTION = "custom_call_config"
BODY = "body"
DEBUG_LOCATIONS = "debug_locations"


_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]:,]', re.DOTALL)


class ConfigError(ValueError):
    """A backend_config that can't be read as the configuration of a Mosaic kernel; the message says why."""


@dataclasses.dataclass(frozen=True)
class Payload:
    """The two binary parts of a configuration: MLIR bytecode of the kernel, and of its locations (None: not apart)."""

    body: bytes
    debug_locations: bytes | None


def parse(text: str) -> dict[str, Any]:
    """The configuration as a dictionary with a `custom_call_config` dictionary in it.

    Raises `ConfigError` for text that is not JSON or not of this shape.
    """
    try:
        config: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"backend_config is not JSON: {error}") from None
    if not isinstance(config, dict) or not isinstance(config.get(SECTION), dict):
        raise ConfigError(f"backend_config has no '{SECTION}' object")
    return cast(dict[str, Any], config)


def split(text: str) -> tuple[str, Payload]:
    """The configuration with empty strings for its binary parts, and these parts.

    Raises `ConfigError` where there is no kernel body or it is not base64.
    """
    section = parse(text)[SECTION]
    if not isinstance(section.get(BODY), str):
        raise ConfigError(f"backend_config has no '{SECTION}.{BODY}' string: there is no kernel in this call")
    payload = Payload(_decode(section, BODY), _decode(section, DEBUG_LOCATIONS) if DEBUG_LOCATIONS in section else None)
    for key in (BODY, DEBUG_LOCATIONS):
        if section.get(key):
            text = _with_string(text, key, "")
    return text, payload


def join(text: str, payload: Payload) -> str:
    """The inverse of `split`: the binary parts in their places. Raises `ConfigError` where there are no such places."""
    parse(text)
    parts = {BODY: payload.body, DEBUG_LOCATIONS: payload.debug_locations}
    for key, part in parts.items():
        if part is not None:
            text = _with_string(text, key, base64.b64encode(part).decode("ascii"))
    return text


def has_debug_locations(text: str) -> bool:
    """Whether the configuration ships the kernel's locations apart from its body."""
    return DEBUG_LOCATIONS in parse(text)[SECTION]


def renumber_operands(text: str, new_index: Mapping[int, int], operands: int) -> str:
    """The configuration after the operands of its call were renumbered: `new_index` maps old to new for what stays.

    `operands` is the new number of operands. Two fields count operands: `input_memory_space_colors` and
    `allow_input_fusion` (a new operand is not fused). Raises `ConfigError` where they are of another form.
    """
    config = parse(text)
    section = config[SECTION]
    try:
        if "input_memory_space_colors" in section:
            section["input_memory_space_colors"] = [
                {**color, "operand_index": new_index[color["operand_index"]]}
                for color in section["input_memory_space_colors"]
                if color["operand_index"] in new_index
            ]
        if "allow_input_fusion" in section:
            fusion = [False] * operands
            for old, allowed in enumerate(section["allow_input_fusion"]):
                if old in new_index:
                    fusion[new_index[old]] = allowed
            section["allow_input_fusion"] = fusion
    except (KeyError, TypeError):
        raise ConfigError("a field of backend_config that counts operands is not what JAX writes") from None
    return json.dumps(config)


def placed(text: str) -> tuple[frozenset[int], frozenset[int]]:
    """The operands and the results of a launch whose arrays are in another memory than HBM, by their numbers.

    JAX writes their memory as a color, 0 for HBM. Raises `ConfigError` where the fields are of another form.
    """
    section = parse(text)[SECTION]
    try:
        operands = {
            each["operand_index"] for each in section.get("input_memory_space_colors", ()) if each["color"] != 0
        }
        results = {
            (each.get("shape_index") or [0])[0]
            for each in section.get("output_memory_space_colors", ())
            if each["color"] != 0
        }
    except (KeyError, TypeError, AttributeError):
        raise ConfigError("a field of backend_config that places arrays in memory is not what JAX writes") from None
    return frozenset(operands), frozenset(results)


def _decode(section: Mapping[str, Any], key: str) -> bytes:
    try:
        return base64.b64decode(section[key], validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise ConfigError(f"'{SECTION}.{key}' is not base64: {error}") from None


def _with_string(text: str, key: str, value: str) -> str:
    """The configuration with this plain text in one string field of its section, every other character as it was."""
    start, end = _string_at(text, (SECTION, key))
    return f"{text[:start]}{value}{text[end:]}"


def _string_at(text: str, path: tuple[str, ...]) -> tuple[int, int]:
    """Where, in valid JSON, the string at this path of keys stands, without its quotes; of equal keys the last counts.

    Raises `ConfigError` where there is none.
    """
    found: tuple[int, int] | None = None
    keys: list[str | None] = []  # of the objects around; None in an array, which no path goes through
    objects: list[bool] = []
    is_key = False
    for token in _TOKEN.finditer(text):
        match token[0][0]:
            case "{" | "[":
                is_key = token[0] == "{"
                keys.append(None)
                objects.append(is_key)
            case "}" | "]":
                keys.pop()
                objects.pop()
                is_key = False
            case ",":
                is_key = objects[-1]
            case ":":
                is_key = False
            case '"' if is_key:
                keys[-1] = json.loads(token[0])
            case '"' if tuple(keys) == path:
                found = token.start() + 1, token.end() - 1
    if found is None:
        raise ConfigError(f"backend_config has no '{'.'.join(path)}' string")
    return found
