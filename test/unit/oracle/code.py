"""Blocks of ops made into Python closures, once, and then run many times.

A rule turns one op into a step: a function of the frame, which holds the values computed so far by slot.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxlib.mlir import ir

from oracle.values import Array


@dataclasses.dataclass
class Frame:
    """The values of one run of a function, and the bounds of the grid it runs on."""

    values: dict[int, Array]
    bounds: tuple[int, ...] = ()


type Step = Callable[[Frame], None]
type Function = Callable[..., Array]
type Rule = Callable[[ir.Operation, Compiler], Step]


@dataclasses.dataclass(frozen=True)
class Code:
    """A block: where its arguments go, its steps, and where the operands of its terminator are."""

    arguments: tuple[int, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]

    def run(self, frame: Frame, arguments: Sequence[Array] = ()) -> tuple[Array, ...]:
        """Runs the block in a frame; returns what it yields or returns."""
        frame.values.update(zip(self.arguments, arguments, strict=True))
        for step in self.steps:
            step(frame)
        return tuple(frame.values[slot] for slot in self.results)


@dataclasses.dataclass
class Compiler:
    """Compiles blocks with a table of rules, op name -> rule; slots are numbered across all of them."""

    rules: Mapping[str, Rule]
    _slots: dict[ir.Value[Any], int] = dataclasses.field(default_factory=dict[ir.Value[Any], int])

    def block(self, block: ir.Block) -> Code:
        """Compiles a block. Raises `NotImplementedError` for an op without a rule."""
        *ops, terminator = [op.operation for op in block.operations]
        arguments = self.slots(list(block.arguments))
        steps = tuple(self._step(op) for op in ops)
        return Code(arguments, steps, self.slots(list(terminator.operands)))

    def slots(self, values: Sequence[ir.Value[Any]]) -> tuple[int, ...]:
        """Where values are in the frame."""
        return tuple(self._slots.setdefault(value, len(self._slots)) for value in values)

    def _step(self, op: ir.Operation) -> Step:
        if op.name not in self.rules:
            raise NotImplementedError(f"the oracle has no op {op.name}")
        return self.rules[op.name](op, self)


def pure(make: Callable[[ir.Operation], Callable[..., Array]]) -> Rule:
    """The rule of an op with one result: `make` reads its attributes and gives a function of its operands."""

    def rule(op: ir.Operation, compiler: Compiler) -> Step:
        function, operands = make(op), compiler.slots(list(op.operands))
        (result,) = compiler.slots(list(op.results))

        def step(frame: Frame) -> None:
            values = frame.values
            values[result] = function(*[values[slot] for slot in operands])

        return step

    return rule


def procedure(make: Callable[[ir.Operation], Callable[..., Sequence[Array]]]) -> Rule:
    """The same for an op with any number of results: the function gives as many, none for a store."""

    def rule(op: ir.Operation, compiler: Compiler) -> Step:
        function, operands = make(op), compiler.slots(list(op.operands))
        results = compiler.slots(list(op.results))

        def step(frame: Frame) -> None:
            store(frame, results, function(*[frame.values[slot] for slot in operands]))

        return step

    return rule


def store(frame: Frame, slots: tuple[int, ...], values: Sequence[Array]) -> None:
    """Puts an op's results into the frame."""
    frame.values.update(zip(slots, values, strict=True))
