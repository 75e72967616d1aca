"""What memory there is: a root is a buffer, whose contents the lowering threads through the program as one tensor."""

from __future__ import annotations

import dataclasses
import enum

from jaxlib.mlir import ir

from mosaic_grid.diagnostics import place_of
from mosaic_grid.location_text import text_of_name


class Kind(enum.Enum):
    """Where a root comes from, which says who may see it and what it holds at first."""

    ARRAY = "an array of the launch"
    WINDOW = "a window's buffer"
    SCRATCH = "scratch"
    SEMAPHORE = "a semaphore"
    STATE = "what operations keep beside memory"
    REGISTER = "what the operations of a core keep beside memory"
    GRID = "what the grid keeps for itself"


@dataclasses.dataclass(frozen=True, eq=False)
class Root:
    """A buffer of static shape. Two roots are the same if they are the same object."""

    name: str
    shape: tuple[int, ...]
    element: ir.Type
    kind: Kind
    location: ir.Location | None = None

    def __repr__(self) -> str:
        return f"<{self.kind.value} {self.name}>"


def title(root: Root) -> str:
    """What messages call a root: by its author's name where it is an argument that has one."""
    location = root.location
    if not isinstance(location, ir.NameLoc):
        return root.name
    with location.context:
        name = text_of_name(location) if place_of(location) is None else ""
    kinds = {Kind.SCRATCH: "scratch ", Kind.SEMAPHORE: "semaphore "}
    return f"{kinds.get(root.kind, '')}'{name}'" if name else root.name
