"""How a launch runs: how many cores there are, and in which order they take their steps."""

from __future__ import annotations

import collections
import dataclasses
import random
from collections.abc import Iterator, Sequence
from typing import Literal

from oracle.values import Array

type Order = Literal["sequential", "reversed", "interleaved"]


class OracleError(Exception):
    """A program did what a correct one never does; the message says what."""


@dataclasses.dataclass(frozen=True)
class Launched:
    """One launch that happened: the kernel's symbol, and its operands."""

    kernel: str
    operands: tuple[Array, ...]


@dataclasses.dataclass
class Machine:
    """A chip with `cores` cores that share HBM and nothing else.

    Without `cores` a `core_parallel` dimension is a loop like any other: the meaning of a kernel before it is mapped to
    a chip. With them, one with any other bound is an error, as it is to libtpu.

    A machine that is `dry` takes no steps: outputs stay poison. `launches` lists what was launched, `traffic` counts
    the blocks moved by kind, `busy` is the most cores that took part in a launch.
    """

    cores: int | None = None
    order: Order = "sequential"
    seed: int = 0
    dry: bool = False
    launches: list[Launched] = dataclasses.field(default_factory=list[Launched])
    traffic: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter[str])
    busy: int = 0

    def run(self, cores: Sequence[Iterator[None]]) -> None:
        """Runs the cores to their ends; each pauses before and after a step's body."""
        self.busy = max(self.busy, len(cores))
        match self.order:
            case "sequential":
                self._in_turn(cores)
            case "reversed":
                self._in_turn(cores[::-1])
            case "interleaved":
                self._interleaved(list(cores))

    def _in_turn(self, cores: Sequence[Iterator[None]]) -> None:
        for core in cores:
            collections.deque(core, maxlen=0)

    def _interleaved(self, running: list[Iterator[None]]) -> None:
        dice = random.Random(self.seed)
        done = object()
        while running:
            core = dice.choice(running)
            if next(core, done) is done:
                running.remove(core)
