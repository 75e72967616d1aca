"""Small unpacked programs for the tests of running them: one launch each, its grid and index map given as text."""

from __future__ import annotations

from pathlib import Path

from jaxlib.mlir import ir

from mosaic_grid.containers import text as mlir_text
from mosaic_grid.runner.programs import Opened

DOUBLE = Path(__file__).parent.parent / "tool" / "Inputs" / "double.mlir"
"""`@main(n, x)` doubles the first `8 * n` rows of f32[1024,256] on a grid (n, 2)."""

DYNAMIC = -(2**63)


def program(
    bounds: list[int],
    index_map: str,
    *,
    semantics: list[str] | None = None,
    table: bool = False,
    rows: int = 32,
    body: str = "return %r : tensor<{rows}x256xf32>",
    result: str = "tensor<{rows}x256xf32>",
) -> str:
    """A launch that writes blocks f32[8,128] of an array of `rows` by 256, and returns what `body` makes of it, `%r`.

    `@main` takes a count for each dynamic bound, then, with `table`, an i32[4], which the index map reads as memory
    `%t`, then the array. `index_map` are operations on the grid indices `%i0, %i1, ...`, with a return of two i32.
    """
    array = f"tensor<{rows}x256xf32>"
    counts = [f"%n{k}" for k, bound in enumerate(bounds) if bound == DYNAMIC]
    operands = [*counts, *(["%t"] if table else []), "%x"]
    types = [*("tensor<i32>" for _ in counts), *(["tensor<4xi32>"] if table else []), array]
    words = semantics or ["arbitrary"] * len(bounds)
    listed = ", ".join(f"#tpu.dimension_semantics<{word}>" for word in words)
    indices = [f"%i{k}: i32" for k in range(len(bounds))]
    prefetch = ["%t: memref<4xi32, #tpu.memory_space<smem>>"] if table else []
    window = "memref<8x128xf32, #tpu.memory_space<vmem>>"
    window_of = "window_bounds = array<i64: 8, 128>"
    arguments = ", ".join([*indices, *prefetch, f"%x: {window}", f"%o: {window}"])
    main = ", ".join(f"{name}: {kind}" for name, kind in zip(operands, types, strict=True))
    return f"""
func.func @main({main}) -> {result.format(rows=rows)} {{
  %r = stablehlo.custom_call @tpu_custom_call({", ".join(operands)}) {{
    backend_config = "{{}}", mosaic.kernel = @k
  }} : ({", ".join(types)}) -> {array}
  {body.format(rows=rows)}
}}
module @k attributes {{stable_mosaic.version = 15 : i64}} {{
  func.func @k({arguments}) attributes {{
    dimension_semantics = [{listed}], iteration_bounds = array<i64: {", ".join(map(str, bounds))}>,
    scalar_prefetch = {int(table)} : i64, scratch_operands = 0 : i64, tpu.core_type = #tpu.core_type<tc>,
    window_params = [{{transform_indices = @zero, {window_of}}}, {{transform_indices = @place, {window_of}}}]
  }} {{
    %c0 = arith.constant 0 : index
    %0 = vector.load %x[%c0, %c0] : {window}, vector<8x128xf32>
    %1 = arith.addf %0, %0 : vector<8x128xf32>
    vector.store %1, %o[%c0, %c0] : {window}, vector<8x128xf32>
    return
  }}
  func.func @zero({", ".join([*indices, *prefetch])}) -> (i32, i32) {{
    %c0 = arith.constant 0 : i32
    return %c0, %c0 : i32, i32
  }}
  func.func @place({", ".join([*indices, *prefetch])}) -> (i32, i32) {{
    {index_map}
  }}
}}
"""


def opened(text: str, context: ir.Context) -> Opened:
    """A program that is written unpacked."""
    return Opened("program.mlir", mlir_text.parse(text, "program.mlir", context))
