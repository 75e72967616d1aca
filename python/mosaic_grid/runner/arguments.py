"""What a program takes: its arguments by name, and which of them decide how far a grid goes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from jaxlib.mlir import ir

from mosaic_grid.cpu.arrays import TensorSpec, spec_of
from mosaic_grid.dataflow.control import functions_of
from mosaic_grid.errors import UserError
from mosaic_grid.location_text import text_of_name
from mosaic_grid.pass_options import nearest
from mosaic_grid.program import Program
from mosaic_grid.runner.programs import Opened
from mosaic_grid.runner.slices import arguments_behind
from mosaic_grid.runner.values import is_integer


@dataclasses.dataclass(frozen=True)
class Argument:
    """An argument of `@main`. `name` is what its author calls it, empty where no location says so.

    `bounds` are the dynamic bounds that may depend on it, in words, where it holds integers.
    """

    number: int
    name: str
    spec: TensorSpec
    bounds: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """How messages call it."""
        return f"argument {self.number} ({self.name})" if self.name else f"argument {self.number}"

    @property
    def key(self) -> str:
        """Its name on a command line."""
        return self.name or f"arg{self.number}"

    @property
    def is_count(self) -> bool:
        """Whether it is one integer, which a bound can be."""
        return math.prod(self.spec.shape) == 1 and is_integer(self.spec.dtype)


def arguments_of(opened: Opened) -> tuple[Argument, ...]:
    """The arguments of `@main`, in order. Raises `UserError` for one that no array can stand for."""
    main = opened.main
    bounds: dict[int, list[str]] = {}
    functions = functions_of(opened.module)
    for launch in Program(opened.module).launches:
        for axis, value in launch.bounds.items():
            for number in arguments_behind(value, main, functions):
                bounds.setdefault(number, []).append(f"dimension {axis} of '{launch.kernel.name}'")
    found = []
    for number, argument in enumerate(main.regions[0].blocks[0].arguments):
        name = text_of_name(argument.location) if isinstance(argument.location, ir.NameLoc) else ""
        spec = spec_of(argument.type, f"argument {number}" + (f" ({name})" if name else ""))
        behind = bounds.get(number, []) if is_integer(spec.dtype) else []
        found.append(Argument(number, name, spec, tuple(dict.fromkeys(behind))))
    return tuple(found)


def find(arguments: Sequence[Argument], wanted: str, flag: str) -> Argument:
    """The argument of this name, number or `argN`; a name goes first. Raises `UserError` where there is none."""
    for argument in arguments:
        if argument.name and argument.name == wanted:
            return argument
    digits = wanted.removeprefix("arg")
    if digits.isascii() and digits.isdigit() and int(digits) < len(arguments):
        return arguments[int(digits)]
    near = nearest(wanted, [argument.key for argument in arguments])
    raise UserError(f"{flag}: the program has no argument '{wanted}'{near}", notes=[listed(arguments)])


def listed(arguments: Sequence[Argument]) -> str:
    """All of them in a line."""
    told = [f"{argument.key} {argument.spec}" for argument in arguments]
    return f"its arguments are {', '.join(told)}" if told else "it takes no arguments"
