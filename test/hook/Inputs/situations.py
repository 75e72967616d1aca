"""What every test of this folder does with its situations: functions that launch kernels, called under the hook.

`tpu` prints them lowered for a v5p, one program after the other, as `mosaic-opt --split-input-file` takes them. `cpu`
runs them on the CPU and says whether the results are right. `told` prints what each lowering says, by name.
"""

from __future__ import annotations

import dataclasses
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax._src.mesh import AbstractDevice

import mosaic_grid_startup  # noqa: F401  # what a start of Python imports where the package is installed


@dataclasses.dataclass(frozen=True)
class Situation:
    """A function, what it is called with, and what it must give; NaN stands for what nobody writes.

    `expected` is `None` where the hardware leaves open what comes out.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    expected: Any = None
    primitive: bool = False

    @property
    def name(self) -> str:
        """The function's name, which its lowered module has too: `@jit_NAME`."""
        return self.function.__name__

    def lower(self) -> str:
        """StableHLO text, made on whatever machine this is."""
        mesh = jax.sharding.AbstractMesh(
            (1,),
            ("d",),
            axis_types=(jax.sharding.AxisType.Auto,),
            abstract_device=AbstractDevice("TPU v5", 2, "tpu"),
        )
        with jax.sharding.use_abstract_mesh(mesh):
            traced = jax.jit(self.function).trace(*self.arguments)
            return str(traced.lower(lowering_platforms=("tpu",)).as_text())

    def verdict(self) -> str:
        """`is right`, or how far it is off."""
        result = np.asarray(jax.jit(self.function)(*self.arguments))
        if self.expected is None:
            return "runs"
        written = ~np.isnan(self.expected)
        error = float(np.max(np.abs(result[written] - self.expected[written]), initial=0))
        return "is right" if error < 1e-4 else f"is off by {error}"


def main(situations: Sequence[Situation]) -> None:
    """Does what the command line says."""
    parts = []
    for each in situations:
        with (
            warnings.catch_warnings(record=True) as caught,
            jax._src.config.use_emit_pipeline_primitive(each.primitive),
        ):
            warnings.simplefilter("always")
            match sys.argv[1:]:
                case ["tpu"]:
                    parts.append(each.lower())
                case ["cpu"]:
                    parts.append(f"{each.name} {each.verdict()}")
                case ["told", "tpu" | "cpu" as platform]:
                    _ = each.lower() if platform == "tpu" else each.verdict()
                    said = [name for found in caught for name in re.findall(r"\[([a-z-]+)\]\n", f"{found.message}\n")]
                    parts.append(f"{each.name}: {' '.join(dict.fromkeys(said))}")
                case _:
                    raise SystemExit("usage: tpu | cpu | told tpu | told cpu")
    print(("\n// -----\n" if sys.argv[1:] == ["tpu"] else "\n").join(parts))
