"""Reading from a compiled program whether its loops work on large tensors in place."""

from __future__ import annotations

import math
import re

from mosaic_grid.cpu.execute import Executable

_INSTRUCTION = re.compile(r"\s+(ROOT )?%(?P<name>\S+) = (?P<type>.*?) (?P<opcode>[\w-]+)\((?P<rest>.*)")
_ARRAY = re.compile(r"\w+\[(?P<sizes>[\d,]*)\]")
_FREE = ("parameter", "get-tuple-element", "tuple", "bitcast", "dynamic-update-slice", "while", "conditional", "call")


def whole_tensors_made(executable: Executable, elements: int) -> list[str]:
    """The instructions in loops and branches that make a new tensor of at least so many elements.

    An update of a slice is none of them: XLA makes a copy of the tensor before it where it can't be done in place.
    """
    [module] = executable._loaded.hlo_modules()
    computations = {
        text.split(" ", 2)[1] if text.startswith("ENTRY") else text.split(" ", 1)[0]: text
        for text in map(str.strip, module.to_string().split("\n\n")[1:])
    }
    called = {name for text in computations.values() for name in re.findall(r"calls=(%[^\s,]+)", text)}
    found = []
    for name, text in computations.items():
        if name in called or text.startswith("ENTRY"):
            continue
        for line in text.splitlines():
            match = _INSTRUCTION.match(line)
            if match is None or match["opcode"] in _FREE:
                continue
            sizes = [math.prod(map(int, filter(None, each.split(",")))) for each in _ARRAY.findall(match["type"])]
            if max(sizes, default=0) >= elements and not _updates(match, computations):
                found.append(line.strip())
    return found


def _updates(instruction: re.Match[str], computations: dict[str, str]) -> bool:
    """Whether it is a fusion that ends in the update of a slice."""
    called = re.search(r"calls=(%[^\s,]+)", instruction["rest"])
    return (
        called is not None and re.search(r"ROOT .* dynamic-update-slice\(", computations[called.group(1)]) is not None
    )
