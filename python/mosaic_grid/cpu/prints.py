"""What a kernel's author prints: calls of Python from the program, which are run in the order of the kernel's steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxlib.mlir import ir

from mosaic_grid.cpu import build
from mosaic_grid.cpu.bits import width_of
from mosaic_grid.cpu.python_calls import call
from mosaic_grid.cpu.roots import Kind, Root
from mosaic_grid.cpu.touches import nested
from mosaic_grid.ir_types import Value

if TYPE_CHECKING:
    from mosaic_grid.cpu.lowering import Lowering

_SAID = "how many texts have been printed"
_PLACE = re.compile(r"\$([sfu])(\d+)")
_OF_NO_KIND = re.compile(r"\$(\d+)")


class Prints:
    """The calls of a program's kernels; `callbacks` is the list that goes to the compiler, others may be in it."""

    def __init__(self, callbacks: list[Callable[..., Any]]) -> None:
        self.callbacks = callbacks

    def start(self, low: Lowering, body: ir.Operation) -> None:
        """To be called before the kernel's first step: each call takes a number of the one before, for their order."""
        if any(op.name in ("tpu.log", "tpu.log_buffer") for op in nested(body)):
            low.memory.state[Root(_SAID, (), build.i32_type(), Kind.STATE)] = build.i32(0)

    def add(self, low: Lowering, op: ir.Operation) -> None:
        """The call for a `tpu.log` or `tpu.log_buffer`, at the place where the function is being built."""
        text = text_of(op)
        in_memory = [isinstance(each.type, ir.MemRefType) for each in op.operands]
        values = [
            _plain(low.memory.read(low.view(each)) if is_memory else low.value(each))
            for each, is_memory in zip(op.operands, in_memory, strict=True)
        ]

        def show(said: Any, *numbers: Any) -> tuple[Any]:
            arrays = [np.asarray(number) for number in numbers]
            line = "".join([text, *map(str, arrays)]) if any(in_memory) else filled(text, arrays)
            print(f"{line}\n", end="", flush=True)  # in one piece: several devices may print at once
            return (np.asarray(said) + np.int32(1),)

        root = next(root for root in low.memory.state if root.kind is Kind.STATE and root.name == _SAID)
        low.memory.state[root] = call([low.memory.state[root], *values], len(self.callbacks))
        self.callbacks.append(show)


def text_of(op: ir.Operation) -> str:
    """The text of a `tpu.log` or `tpu.log_buffer`, as `filled` takes it: JAX 0.10 has only numbers in its places."""
    text: str = ir.StringAttr(op.attributes["tag"]).value
    has_places = "formatted" in op.attributes and ir.BoolAttr(op.attributes["formatted"]).value
    return _OF_NO_KIND.sub(r"$s\1", text) if has_places else text


def _plain(value: Value) -> Value:
    """Elements of a type that NumPy has by itself."""
    element = build.element_of(value)
    if build.is_float(element):
        return build.convert(value, ir.F32Type.get()) if width_of(element) < 32 else value
    return build.convert(value, build.i32_type()) if 1 < width_of(element) < 8 else value


def filled(text: str, numbers: Sequence[Any]) -> str:
    """The text with the numbers in their places, `$s0`, `$f0` or `$u0` and so on, or else behind it."""
    if not _PLACE.search(text):
        return " ".join([text, *map(str, numbers)])

    def number(match: re.Match[str]) -> str:
        kind, place = match.groups()
        if int(place) >= len(numbers):
            return match.group()
        found = numbers[int(place)]
        return str(int(found) % 2**32) if kind == "u" else str(found)

    return _PLACE.sub(number, text)
