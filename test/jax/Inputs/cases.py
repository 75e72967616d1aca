"""What every test of this folder does with its kernels.

`tpu` prints them lowered for TPU, one program after the other, as `mosaic-opt --split-input-file` takes them. `cpu`
lowers them for the CPU, interpreted, and runs them: a label, the lowering, and whether the results are right.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np


@dataclasses.dataclass(frozen=True)
class Case:
    """A function that launches a kernel, what it is called with, and the first rows of what it must give.

    `function` takes the arguments, and `interpret` as a keyword. What lies behind the rows of `expected` isn't written.
    """

    function: Callable[..., jax.Array]
    arguments: tuple[Any, ...]
    expected: np.ndarray[Any, Any]

    @property
    def name(self) -> str:
        """The function's name, which its lowered module has too: `@jit_NAME`."""
        return self.function.__name__


def main(cases: Sequence[Case]) -> None:
    """Does what the command line says, `tpu` or `cpu`."""
    match sys.argv[1:]:
        case ["tpu"]:
            print("\n// -----\n".join(lowered_for_tpu(case) for case in cases))
        case ["cpu"]:
            for case in cases:
                print(f"TEST: {case.name}")
                print(lowered_for_cpu(case))
                print(f"{case.name} {verdict(case)}")
        case _:
            raise SystemExit("usage: tpu|cpu")


def lowered_for_tpu(case: Case) -> str:
    """StableHLO text, made on whatever machine this is."""
    traced = jax.jit(case.function).trace(*case.arguments)
    return str(traced.lower(lowering_platforms=("tpu",)).as_text())


def lowered_for_cpu(case: Case) -> str:
    """StableHLO text of the kernel interpreted: ops of its own, and no launch."""
    return str(jax.jit(case.function, static_argnames="interpret").lower(*case.arguments, interpret=True).as_text())


def verdict(case: Case) -> str:
    """`is right`, or how far it is off."""
    result = np.asarray(case.function(*case.arguments, interpret=True))[: len(case.expected)]
    error = float(np.max(np.abs(result - case.expected)))
    return "is right" if error < 1e-4 else f"is off by {error}"
