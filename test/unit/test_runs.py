"""Steps that hand copies under way to the next ones: what is proved to rely on no others, against running them."""

from __future__ import annotations

import dataclasses
from typing import Literal, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxlib.mlir import ir

from mosaic_grid import legality
from mosaic_grid.context import create_context
from mosaic_grid.program import Program

CONTEXT = create_context()
SEM = "memref<2x!tpu.semaphore, #tpu.memory_space<semaphore_mem>>"
ONE = SEM.replace("<2x", "<1x")
SINGLE = SEM.replace("2x", "")

When: TypeAlias = Literal["always", "first", "not first", "last", "not last", "first of all"]
Slot: TypeAlias = Literal["0", "own", "next"]


@dataclasses.dataclass(frozen=True)
class Act:
    """A signal or a wait on one of two semaphores, at some of the steps of a run of `steps`."""

    waits: bool
    slot: Slot
    when: When

    def at(self, i: int, k: int, steps: int) -> int | None:
        """The semaphore at a step; None where the act isn't run."""
        runs = {
            "always": True,
            "first": k == 0,
            "not first": k > 0,
            "last": k == steps - 1,
            "not last": k + 1 < steps,
            "first of all": k == 0 and i == 0,
        }
        return {"0": 0, "own": k % 2, "next": (k + 1) % 2}[self.slot] if runs[self.when] else None

    def lines(self, number: int) -> list[str]:
        """Its operations; values are named after its number."""
        v = f"%a{number}"
        ahead = {"0": "%c0", "own": "%c0", "next": "%c1"}[self.slot]
        index = "%c0" if self.slot == "0" else "%k"
        lines = [f"{v}s = arith.addi {index}, {ahead} : i32", f"{v}m = arith.remsi {v}s, %c2 : i32"]
        lines += [
            f"{v}v = tpu.memref_slice %q[{v}m] : {SEM} -> {ONE}",
            f"{v}w = tpu.memref_squeeze {v}v : {ONE} -> {SINGLE}",
        ]
        lines += [f"tpu.sem_{'wait' if self.waits else 'signal'} {v}w, %c1 : {SINGLE}"]
        tests = {
            "first": ["eq, %k, %c0"],
            "not first": ["sgt, %k, %c0"],
            "last": ["eq, %k, %last"],
            "not last": ["slt, %k, %last"],
            "first of all": ["eq, %k, %c0", "eq, %i, %c0"],
        }
        for number, test in enumerate(tests.get(self.when, [])):
            lines = [f"{v}t{number} = arith.cmpi {test} : i32", f"scf.if {v}t{number} {{", *lines, "}"]
        return lines


def text(acts: tuple[Act, ...], steps: int) -> str:
    """A kernel of two runs of so many steps."""
    body = "\n".join(line for number, act in enumerate(acts) for line in act.lines(number))
    word = "#tpu.dimension_semantics<arbitrary>"
    return f"""module @kernel attributes {{stable_mosaic.version = 18 : i64}} {{
      func.func @kernel(%i: i32, %k: i32, %q: {SEM}) attributes {{
          dimension_semantics = [{word}, {word}], iteration_bounds = array<i64: 2, {steps}>, scalar_prefetch = 0 : i64,
          scratch_operands = 1 : i64, tpu.core_type = #tpu.core_type<tc>, window_params = []}} {{
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %c2 = arith.constant 2 : i32
        %last = arith.constant {steps - 1} : i32
        {body}
        return
      }}
    }}"""


def is_proved(acts: tuple[Act, ...], steps: int, axis: int) -> bool:
    """Whether the dimension may be shared."""
    with CONTEXT, ir.Location.unknown():
        kernel = Program(ir.Operation.parse(text(acts, steps)).operation).kernels["kernel"]
        return not legality.examine(kernel, (axis,), ()).objections


def is_alone(acts: tuple[Act, ...], i: int, ks: list[int], steps: int) -> bool:
    """Whether some steps, one after the other, wait for what they have signalled, and for all of it."""
    counts = [0, 0]
    for k in ks:
        for act in acts:
            slot = act.at(i, k, steps)
            if slot is not None:
                counts[slot] += -1 if act.waits else 1
                if counts[slot] < 0:
                    return False
    return counts == [0, 0]


def check(acts: tuple[Act, ...], steps: int) -> None:
    """Nothing is proved that isn't so."""
    every = list(range(steps))
    if is_proved(acts, steps, 0):
        assert all(is_alone(acts, i, every, steps) for i in (0, 1))
    if is_proved(acts, steps, 1):
        assert all(is_alone(acts, i, [k], steps) for i in (0, 1) for k in every)


AHEAD = (Act(False, "own", "first"), Act(False, "next", "not last"), Act(True, "own", "always"))


@pytest.mark.parametrize("steps", [2, 3, 64])
def test_signals_ahead_within_a_run(steps: int) -> None:
    """Each step waits for what the one before it began; the first begins for itself, the last for nobody."""
    assert is_proved(AHEAD, steps, 0)
    assert not is_proved(AHEAD, steps, 1)
    check(AHEAD, steps)


@pytest.mark.parametrize(
    "acts",
    [
        (Act(False, "own", "first of all"), *AHEAD[1:]),
        (AHEAD[0], Act(False, "next", "always"), AHEAD[2]),
        (*AHEAD[:2], Act(True, "own", "not first")),
    ],
)
def test_signals_for_another_run(acts: tuple[Act, ...]) -> None:
    """Not so where the very first step of all begins, the last one does, or one isn't waited for."""
    assert not is_proved(acts, 4, 0)
    check(acts, 4)


def test_a_long_run() -> None:
    """A run of more steps than are followed isn't known."""
    assert not is_proved(AHEAD, 65, 0)


ACTS = st.builds(
    Act,
    st.booleans(),
    st.sampled_from(("0", "own", "next")),
    st.sampled_from(("always", "first", "not first", "last", "not last", "first of all")),
)


@settings(max_examples=60)
@given(st.lists(ACTS, min_size=1, max_size=4), st.integers(2, 4))
def test_random_signals(acts: list[Act], steps: int) -> None:
    """Steps that are proved to rely on no others don't."""
    check(tuple(acts), steps)


@pytest.mark.full
@settings(max_examples=3000)
@given(st.lists(ACTS, min_size=1, max_size=5), st.integers(2, 5))
def test_many_random_signals(acts: list[Act], steps: int) -> None:
    """The same with many more."""
    check(tuple(acts), steps)
