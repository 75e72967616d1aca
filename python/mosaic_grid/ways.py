"""How a person does what a note advises: with the flags of `mosaic-opt`, or with the options of the JAX hook."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Ways:
    """`promising` is what a list of contracts is given with; `runs` what has a pass run, where its name doesn't say it.

    Neither is about one program: it is how a tool is told.
    """

    promising: str
    runs: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])

    def promise(self, contracts: str) -> str:
        """`--contracts='n <= 8'`."""
        return f"{self.promising}='{contracts}'"

    def passing(self, name: str) -> str:
        """A pass by its name, and by what has it run: `infer-parallel (JAX_MOSAIC_GRID=infer-parallel)`."""
        return f"{name} ({self.runs[name]})" if name in self.runs else name

    def done(self, advice: str) -> str:
        """Advice that begins with the name of a pass and with what it does, with what has it run behind the name."""
        name, _, rest = advice.partition(" ")
        return f"{self.passing(name)} {rest}" if rest.startswith(("shares", "makes")) else advice


BY_FLAGS = Ways("--contracts")
"""Those of `mosaic-opt`, whose passes are flags."""
