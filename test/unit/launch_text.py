"""One launch of a kernel, written as MLIR text from its parts, for what `grid_kernels.py` has no form of."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

VMEM = "#tpu.memory_space<vmem>"
SMEM = "#tpu.memory_space<smem>"
ANY = "#tpu.memory_space<any>"


@dataclasses.dataclass(frozen=True)
class LaunchText:
    """The parts of a launch; the outer function has its operands for arguments.

    `parameters` are those of the kernel behind the grid's indices `%i0`, `%i1`, ...; `windows` the window parameters,
    without their braces; `functions` the index maps; `aliases` the operand whose array a result takes over, by result.
    """

    operands: Sequence[str]
    results: Sequence[str]
    parameters: Sequence[str]
    windows: Sequence[str]
    body: str
    grid: Sequence[int] = ()
    semantics: Sequence[str] | None = None
    prefetch: int = 0
    scratch: int = 0
    functions: str = ""
    aliases: Mapping[int, int] = dataclasses.field(default_factory=dict)

    def text(self) -> str:
        """The unpacked program."""
        names = [f"%a{k}" for k in range(len(self.operands))]
        arguments = ", ".join(f"{name}: {kind}" for name, kind in zip(names, self.operands, strict=True))
        results = ", ".join(self.results)
        returned = ", ".join(f"%r#{k}" for k in range(len(self.results)))
        places = {result: str(result) if len(self.results) > 1 else "" for result in self.aliases}
        aliases = ", ".join(
            f"#stablehlo.output_operand_alias<output_tuple_indices = [{places[result]}], operand_index = {operand}, "
            "operand_tuple_indices = []>"
            for result, operand in self.aliases.items()
        )
        words = self.semantics or ["arbitrary"] * len(self.grid)
        semantics = ", ".join(f"#tpu.dimension_semantics<{word}>" for word in words)
        bounds = f": {', '.join(map(str, self.grid))}" if self.grid else ""
        parameters = ", ".join([*(f"%i{axis}: i32" for axis in range(len(self.grid))), *self.parameters])
        return f"""
module {{
  func.func public @main({arguments}) -> ({results}) {{
    %r:{len(self.results)} = stablehlo.custom_call @tpu_custom_call({", ".join(names)}) {{
      mosaic.kernel = @kernel, backend_config = "{{}}", output_operand_aliases = [{aliases}]
    }} : ({", ".join(self.operands)}) -> ({results})
    return {returned} : {results}
  }}
  module @kernel attributes {{stable_mosaic.version = 15 : i64}} {{
    func.func @kernel({parameters}) attributes {{
      dimension_semantics = [{semantics}], iteration_bounds = array<i64{bounds}>,
      scalar_prefetch = {self.prefetch} : i64, scratch_operands = {self.scratch} : i64,
      tpu.core_type = #tpu.core_type<tc>, window_params = [{", ".join(f"{{{each}}}" for each in self.windows)}]
    }} {{
      {self.body}
      return
    }}
    {self.functions}
  }}
}}
"""


def window(index_map: str, *block: int) -> str:
    """The parameters of a window with an index map and a block."""
    return f"transform_indices = @{index_map}, window_bounds = array<i64: {', '.join(map(str, block))}>"
