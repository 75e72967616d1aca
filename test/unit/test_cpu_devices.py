"""Which device of a program a number means."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given
from jaxlib.mlir import ir

from mosaic_grid.context import create_context
from mosaic_grid.cpu.devices import is_own

KEPT = {"add": lambda a, b: a + b, "mul": lambda a, b: a * b, "divu": lambda a, b: a // b, "remu": lambda a, b: a % b}
"""What is computed of numbers that aren't negative."""


def asked(lines: list[str], attributes: str) -> bool:
    """Whether the last number that the lines compute is that of the own device."""
    body = "\n".join([*lines, f"%s = tpu.sem_barrier : {SEMAPHORE}", "%one = arith.constant 1 : i32", SIGNAL])
    text = f"module attributes {{{attributes}}} {{ func.func @f(%x: i32) {{ {body}\n return }} }}"
    with create_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        *_, signal, _ = module.body.operations[0].regions[0].blocks[0].operations
        return is_own(signal.operation, signal.operation.operands[2])


SEMAPHORE = "memref<!tpu.semaphore, #tpu.memory_space<semaphore_mem>>"
SIGNAL = f"tpu.sem_signal %s, %one device_id %d : {SEMAPHORE}"
ONE_OF = "mhlo.num_partitions = {} : i32, mhlo.num_replicas = {} : i32"
SELF = "%d = tpu.device_id : i32"


@pytest.mark.parametrize(
    ("lines", "attributes", "own"),
    [
        ([SELF], "", True),
        ([SELF], ONE_OF.format(4, 1), True),
        (["%d = arith.constant 1 : i32"], ONE_OF.format(1, 1), True),
        (["%d = arith.addi %x, %x : i32"], ONE_OF.format(1, 1), True),
        (["%d = arith.constant 0 : i32"], ONE_OF.format(1, 2), False),
        (["%d = arith.constant 0 : i32"], "", False),
        (["%d = arith.addi %x, %x : i32"], ONE_OF.format(2, 1), False),
        (["%m = tpu.device_id : i32", "%z = arith.constant 0 : i32", "%d = arith.remui %m, %z : i32"],
         ONE_OF.format(2, 1), False),
    ],
)  # fmt: skip
def test_devices(lines: list[str], attributes: str, own: bool) -> None:
    """Where it isn't said for how many devices a program is, or a number comes from elsewhere, it may be another's."""
    assert asked(lines, attributes) is own


@given(st.integers(2, 6), st.lists(st.tuples(st.sampled_from(sorted(KEPT)), st.integers(1, 7)), max_size=4))
def test_computed_numbers(count: int, steps: list[tuple[str, int]]) -> None:
    """A number is the own device's if what is computed gives that on each of them."""
    lines, numbers = ["%v0 = tpu.device_id : i32"], list(range(count))
    for place, (name, operand) in enumerate(steps):
        kind = f"arith.{name}i" if name in ("add", "mul") else f"arith.{name[:3]}ui"
        lines += [f"%c{place} = arith.constant {operand} : i32",
                  f"%v{place + 1} = {kind} %v{place}, %c{place} : i32"]  # fmt: skip
        numbers = [KEPT[name](number, operand) for number in numbers]
    lines[-1 if steps else 0] = lines[-1].replace(f"%v{len(steps)} =", "%d =")
    assert asked(lines, ONE_OF.format(count, 1)) is (numbers == list(range(count)))
