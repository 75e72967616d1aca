"""Cores that take turns, a step at a time, in an order that a seed gives: where they race, the results differ.

Each core's own state is a row of a stack. A turn takes a core that has steps left, unstacks its state, does one step,
and stacks it again; arrays are shared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.grid import Core
from mosaic_grid.cpu.roots import Kind, Root
from mosaic_grid.ir_types import Value


def run_interleaved(core: Core, axes: Sequence[int], counts: Sequence[int], seed: int) -> None:
    """Runs the cores, `counts` of them along each of the grid's dimensions `axes`, in turns."""
    low = core.low
    state = low.memory.state
    number = math.prod(counts)
    core.start([0] * len(low.bounds))
    own = core.carried
    stacks = {root: Root(f"every core's {root.name}", (number, *root.shape), root.element, Kind.GRID) for root in own}
    for root, stack in stacks.items():
        state[stack] = build.broadcast(state[root], stack.shape, range(1, len(stack.shape)))
    shared = [root for root in core.written if root not in stacks]

    def live() -> Value:
        if not core.counters:
            return low.memory.state[done]
        first = low.memory.state[stacks[core.counters[0]]]
        last = build.splat(build.as_value(low.bounds[core.axes[0]]), (number,))
        return build.compare(first, last, "LT")

    done = Root("cores with their one step to do", (number,), build.i1_type(), Kind.GRID)
    if not core.counters:
        state[done] = build.constant(1, (number,), build.i1_type())

    def turn(values: Sequence[Value]) -> list[Value]:
        chosen = _choose(live(), values[0], seed)
        memory = low.memory
        for root, stack in stacks.items():
            row = build.dynamic_slice(memory.state[stack], [chosen, *[0] * len(root.shape)], (1, *root.shape))
            memory.state[root] = build.reshape(row, root.shape)
        fixed: list[build.Index] = [0] * len(low.bounds)
        rest = chosen
        for axis, count in reversed(list(zip(axes, counts, strict=True))):
            fixed[axis] = hlo.remainder(rest, build.i32(count))
            rest = hlo.divide(rest, build.i32(count))
        core.step(fixed)
        if core.counters:
            low.when(hlo.not_(core.more()), core.finish, [*own, *shared])
        else:
            core.finish()
            finished = build.constant(0, (1,), build.i1_type())
            memory.state[done] = build.update(memory.state[done], finished, [chosen])
        for root, stack in stacks.items():
            row = build.reshape(memory.state[root], (1, *root.shape))
            memory.state[stack] = build.update(memory.state[stack], row, [chosen, *[0] * len(root.shape)])
        return [hlo.add(values[0], build.i32(1))]

    def more(_: Sequence[Value]) -> Value:
        return build.reduce(live(), [0], build.constant(0, (), build.i1_type()), hlo.or_)

    low.while_([build.i32(0)], more, turn, [*stacks.values(), *shared, done])


def _choose(live: Value, turn: Value, seed: int) -> Value:
    """One of the cores that are live, by a hash of the turn."""
    (number,) = build.shape_of(live)
    flags = build.convert(live, build.i32_type())
    before = build.compare(build.iota((number, number), 0), build.iota((number, number), 1), "GE")
    spread = build.select(
        before, build.broadcast(flags, (number, number), [1]), build.constant(0, (number, number), build.i32_type())
    )
    ranks = build.reduce(spread, [1], build.i32(0), hlo.add)
    total = build.reduce(flags, [0], build.i32(0), hlo.add)
    pick = hlo.add(hlo.remainder(_hash(turn, seed), total), build.i32(1))
    passed = build.compare(ranks, build.splat(pick, (number,)), "LT")
    return build.reduce(build.convert(passed, build.i32_type()), [0], build.i32(0), hlo.add)


def _hash(turn: Value, seed: int) -> Value:
    """A non-negative number that looks random: the finalizer of MurmurHash3."""
    x = hlo.add(turn, build.i32(_signed(seed * 0x9E3779B9 + 1)))
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        x = hlo.xor(x, hlo.shift_right_logical(x, build.i32(shift)))
        x = hlo.multiply(x, build.i32(_signed(factor)))
    x = hlo.xor(x, hlo.shift_right_logical(x, build.i32(16)))
    result: Value = hlo.and_(x, build.i32(2**31 - 1))
    return result


def _signed(number: int) -> int:
    number %= 2**32
    return number - 2**32 if number >= 2**31 else number
