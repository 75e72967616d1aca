"""Fresh unknowns: each has a name of its own, a range, and the place it comes from."""

from __future__ import annotations

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.control import defining
from mosaic_grid.dataflow.tensors import Each, Tensor, Uniform, int_type, shape_of
from mosaic_grid.diagnostics import place_of
from mosaic_grid.ir_types import Value
from mosaic_grid.location_text import text_of_name

# a longer name says nothing to a person
_LONGEST = 60


class Unknowns:
    """Makes unknowns; no two of them have the same name.

    `elements` are those elements of unknown arrays, as loads from them, of which more is known.
    """

    def __init__(self) -> None:
        self.elements: dict[sym.Expr, sym.Expr] = {}
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def of(self, value: Value, hint: str = "", values: sym.Range | None = None, divisor: int = 1) -> Tensor | None:
        """An unknown tensor of the type of `value`, `None` where that isn't an integer tensor.

        It is named after `hint`, else after what defines the value. `values` and `divisor` are what is known of each
        element; without them every value of the type is possible.
        """
        kind = int_type(value.type)
        if kind is None:
            return None
        name, origin = self._unique(hint if 0 < len(hint) <= _LONGEST else name_of(value)), origin_of(value)
        values = values or kind.range
        if shape_of(value.type) == ():
            return Uniform(sym.parameter(name, values, origin, divisor or 1))
        return Each(sym.load(name, (), values, origin)) if values.lo < values.hi else Uniform(sym.constant(values.lo))

    def _unique(self, hint: str) -> str:
        name = hint
        while name in self._taken:
            self._next[hint] = self._next.get(hint, 0) + 1
            name = f"{hint}_{self._next[hint]}"
        self._taken.add(name)
        return name


def name_of(value: Value) -> str:
    """What a person calls a value: an argument by its name in the user's function, a result by its operation."""
    if isinstance(value, ir.BlockArgument):
        location = value.location
        if isinstance(location, ir.NameLoc):
            return text_of_name(location)
        in_function = value.owner.owner.operation.name == "func.func"
        return f"%{'arg' if in_function else 'iter'}{value.arg_number}"
    op, _ = defining(value)
    if "call_target_name" in op.attributes:
        return f"%{ir.StringAttr(op.attributes['call_target_name']).value}"
    if "callee" in op.attributes:
        return f"%{ir.FlatSymbolRefAttr(op.attributes['callee']).value}"
    return f"%{op.name.rpartition('.')[2]}"


def origin_of(value: Value) -> sym.Origin:
    """Where a value is defined: what defines it, and the user's line where the program has it."""
    if isinstance(value, ir.BlockArgument):
        what, location = f"argument {value.arg_number}", value.location
    else:
        op, _ = defining(value)
        what, location = f"result of {op.name}", op.location
    place = place_of(location)
    return sym.Origin(what, place.file, place.line, place.column) if place else sym.Origin(what)
