"""What memory holds at one point of the program, and how the parts of the program that may or may not run change it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.roots import Root
from mosaic_grid.cpu.stored import stored
from mosaic_grid.ir_types import Value


class State(dict[Root, Value]):
    """What each root holds, in the form of `stored.py`; what is put in is brought into that form."""

    def __setitem__(self, root: Root, value: Value) -> None:
        super().__setitem__(root, stored(value) if build.element_of(value) == root.element else value)


class Contents:
    """The contents of each root are the tensor that `state` has for it, in the form in which its numbers are kept.

    A root may have `shadows`, roots that change with it.
    """

    def __init__(self) -> None:
        self._state = State()
        self.shadows: dict[Root, tuple[Root, ...]] = {}

    @property
    def state(self) -> State:
        """What each root holds at this point."""
        return self._state

    @state.setter
    def state(self, contents: Mapping[Root, Value]) -> None:  # what another state held, or became in a region
        self._state = State(contents)

    def with_shadows(self, roots: Sequence[Root]) -> list[Root]:
        """These roots and their shadows, each once."""
        return list(dict.fromkeys(each for root in roots for each in (root, *self.shadows.get(root, ()))))

    def choose(
        self, predicate: Value, then: Callable[[], None], other: Callable[[], None], written: Sequence[Root]
    ) -> None:
        """Does one of two things, which may write the roots `written`."""
        before, written = dict(self.state), self.with_shadows(written)

        def branch(act: Callable[[], None]) -> list[Value]:
            self.state = dict(before)
            act()
            return [self.state[root] for root in written]

        types = [before[root].type for root in written]
        results = build.if_(predicate, types, lambda: branch(then), lambda: branch(other))
        self.state = before | dict(zip(written, results, strict=True))

    def for_each(self, count: Value, act: Callable[[Value], None], written: Sequence[Root]) -> None:
        """Does something for each index below `count`; it may write the roots `written`."""
        before, written = dict(self.state), self.with_shadows(written)

        def body(values: Sequence[Value]) -> list[Value]:
            index, *contents = values
            self.state = before | dict(zip(written, contents, strict=True))
            act(index)
            return [hlo.add(index, build.i32(1)), *(self.state[root] for root in written)]

        initial = [build.i32(0), *(before[root] for root in written)]
        results = build.while_(initial, lambda values: build.compare(values[0], count, "LT"), body)
        self.state = before | dict(zip(written, results[1:], strict=True))
