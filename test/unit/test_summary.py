"""The summary of a program: exact text for small programs, and the cores rule case by case."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterator

import pytest
from jaxlib.mlir import ir
from rich.console import Console

from mosaic_grid import memory
from mosaic_grid.context import create_context
from mosaic_grid.grid import Semantics
from mosaic_grid.program import Program
from mosaic_grid.session import Session
from mosaic_grid.summary import idle_cores_warning, print_summary, render_plain, render_rich, summarize
from mosaic_grid.summary.cores import cores_of
from mosaic_grid.summary.facts import Cores, DimensionSummary
from mosaic_grid.summary.plain import size_text
from mosaic_grid.targets import Target, parse_target

DYNAMIC = -(2**63)
V5P = parse_target("v5p")
RACE = "parallel dimension 0 is a race: steps (0, 0) and (1, 0) write the same block (0, 0) of output 0"

KERNEL = """
  module @double attributes {{stable_mosaic.version = 18 : i64}} {{
    func.func @double(%i: i32, %j: i32, %t: memref<16xi32, #tpu.memory_space<smem>> loc("table"),
                      %x: memref<128x128xf32, #tpu.memory_space<vmem>> loc("x_ref"),
                      %b: memref<128xbf16, #tpu.memory_space<vmem>> loc("bias"),
                      %o: memref<128x128xf32, #tpu.memory_space<vmem>> loc("o_ref"),
                      %acc: memref<128x128xf32, #tpu.memory_space<vmem>> loc("acc"),
                      %sem: memref<2x!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>> loc("sem")) attributes {{
        dimension_semantics = [#tpu.dimension_semantics<{semantics}>, #tpu.dimension_semantics<arbitrary>],
        iteration_bounds = array<i64: {bound}, 4>, scalar_prefetch = 1 : i64, scratch_operands = 2 : i64,
        tpu.core_type = #tpu.core_type<tc>,
        window_params = [{{transform_indices = @transform_0, window_bounds = array<i64: 128, 128>}},
                         {{transform_indices = @transform_1, window_bounds = array<i64: 1, 128>}},
                         {{transform_indices = @transform_2, window_bounds = array<i64: 128, 128>}}]}} {{
      %c = arith.constant 0 : index loc("kernel.py":31:12)
      return
    }}
    func.func @transform_0(%i: i32, %j: i32, %t: memref<16xi32, #tpu.memory_space<smem>>) -> (i32, i32) {{
      %k = arith.index_cast %i : i32 to index
      %r = memref.load %t[%k] : memref<16xi32, #tpu.memory_space<smem>>
      return %r, %j : i32, i32
    }}
    func.func @transform_1(%i: i32, %j: i32, %t: memref<16xi32, #tpu.memory_space<smem>>) -> (i32, i32) {{
      %c = arith.constant 0 : i32
      return %c, %c : i32, i32
    }}
    func.func @transform_2(%i: i32, %j: i32, %t: memref<16xi32, #tpu.memory_space<smem>>) -> (i32, i32) {{
      %c4 = arith.constant 4 : i32
      %r = arith.divsi %i, %c4 : i32
      return %r, %j : i32, i32
    }}
  }}"""

CALL = """stablehlo.custom_call @tpu_custom_call({operands}) {{
    backend_config = "{{\\22custom_call_config\\22: {{}}}}",
    mosaic.kernel = @double,
    output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = {alias},
                              operand_tuple_indices = []>]}}
    : ({types}tensor<16xi32>, tensor<2048x512xf32>, tensor<1x128xbf16>) -> tensor<2048x512xf32> loc({place})"""


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    """Every test has an MLIR context of its own."""
    with create_context():
        yield


def parse(text: str) -> Program:
    """A program that was read from `p.mlir`."""
    return Program(ir.Operation.parse(text, source_name="p.mlir").operation)


def dynamic_program(semantics: str = "parallel", place: str = '"pallas_call"("model.py":7:3)') -> Program:
    """One launch whose bound is `ceildiv(n, 128)`."""
    call = CALL.format(operands="%n, %t, %x, %b", types="tensor<i32>, ", alias=2, place=place)
    return parse(f"""module @jit_f {{
      func.func public @main(%m: tensor<i32> loc("m"), %t: tensor<16xi32>, %x: tensor<2048x512xf32>,
                             %b: tensor<1x128xbf16>) -> tensor<2048x512xf32> {{
        %c = stablehlo.constant dense<7> : tensor<i32>
        %n = stablehlo.minimum %m, %c : tensor<i32> loc("model.py":5:9)
        %r = {call}
        return %r : tensor<2048x512xf32>
      }}
      {KERNEL.format(semantics=semantics, bound=DYNAMIC)}
    }}""")


def static_program(launches: int) -> Program:
    """So many launches of one kernel."""
    call = CALL.format(operands="%t, %x, %b", types="", alias=1, place='"model.py":7:3')
    calls = "\n".join(f"%{k} = {call}" for k in range(launches))
    return parse(f"""module @jit_f {{
      func.func public @main(%t: tensor<16xi32>, %x: tensor<2048x512xf32>, %b: tensor<1x128xbf16>) {{
        {calls}
        return
      }}
      {KERNEL.format(semantics="parallel", bound=16)}
    }}""")


def test_plain() -> None:
    """Everything there is to say of a launch, a line each."""
    assert (
        render_plain(summarize(dynamic_program(), V5P))
        == f"""\
kernel 'double': TensorCore, serialization version 18
  from kernel.py:31:12
  launched at model.py:7:3
  grid: (?, 4)
    dimension 0: i, parallel, dynamic: min(7, m), in [-2147483648, 7]
    dimension 1: j, arbitrary, 4 steps
  in 0: x_ref f32[128,128] of f32[2048,512], vmem, (i, j) -> (table[i], j), 2 buffers
  in 1: bias bf16[1,128] seen as bf16[128] of bf16[1,128], vmem, (i, j) -> (0, 0), 1 buffer
  out 0: o_ref f32[128,128] of f32[2048,512], vmem, (i, j) -> (i // 4, j), 2 buffers, in place of in 0
  prefetch 0: table i32[16], smem
  scratch 0: acc f32[128,128], vmem
  scratch 1: sem dma_semaphore[2], semaphore_mem
  vmem: at least 320.2 KiB of the 64 MiB of a TPU v5p core
  smem: at least 64 B of the 1 MiB of a TPU v5p core
  cores: TPU v5p runs this kernel on 1 of its 2 cores: dimension 0 is parallel but its bound is dynamic
    partition-cores can't share it: {RACE}
"""
    )


def test_rich() -> None:
    """The same facts on a terminal of 80 columns."""
    out = io.StringIO()
    render_rich(summarize(dynamic_program(), V5P), Console(file=out, width=80), "p.mlir")
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert (
        "\n".join(lines)
        == """\
p.mlir: 1 kernel, 1 launch, for TPU v5p

kernel 'double'  TensorCore, serialization version 18
from      kernel.py:31:12
launch    at model.py:7:3
grid      (?, 4)
          dimension 0: i, parallel, dynamic: min(7, m), in [-2147483648, 7]
          dimension 1: j, arbitrary, 4 steps
in 0      x_ref  f32[128,128]       (i, j) -> (table[i], j)
                 of f32[2048,512]   vmem, 2 buffers
in 1      bias   bf16[1,128]        (i, j) -> (0, 0)
                 seen as bf16[128]  vmem, 1 buffer
                 of bf16[1,128]
out 0     o_ref  f32[128,128]       (i, j) -> (i // 4, j)
                 of f32[2048,512]   vmem, 2 buffers, in place of in 0
prefetch  table  i32[16]            smem
scratch   acc    f32[128,128]       vmem
scratch   sem    dma_semaphore[2]   semaphore_mem
vmem      at least 320.2 KiB of the 64 MiB of a TPU v5p core
smem      at least 64 B of the 1 MiB of a TPU v5p core
cores     TPU v5p runs this kernel on 1 of its 2 cores: dimension 0 is parallel
          but its bound is dynamic
          partition-cores can't share it: parallel dimension 0 is a race: steps
          (0, 0) and (1, 0) write the same block (0, 0) of output 0"""
    )


def test_launches_that_look_alike_are_one() -> None:
    """Three launches of a kernel with the same operands are said once, with their number."""
    (launch,) = summarize(static_program(3), V5P).launches
    text = render_plain(summarize(static_program(3), V5P))
    assert launch.launches == 3
    assert "  launched 3 times, first at model.py:7:3\n  grid: (16, 4), 64 steps\n" in text
    assert "runs this kernel on 2 of its 2 cores: dimension 0 is parallel\n" in text
    assert text.count("kernel 'double'") == 1


def test_bounds_of_launches_that_look_alike() -> None:
    """Launches that differ in their dynamic bounds only are one, with the bound of each."""
    calls = "\n".join(
        f"%r{k} = " + CALL.format(operands=f"%n{k}, %t, %x, %b", types="tensor<i32>, ", alias=2, place='"m.py":7:3')
        for k in range(5)
    )
    arguments = ", ".join(f'%n{k}: tensor<i32> loc("n{k}")' for k in range(5))
    program = parse(f"""module @jit_f {{
      func.func public @main({arguments}, %t: tensor<16xi32>, %x: tensor<2048x512xf32>, %b: tensor<1x128xbf16>) {{
        {calls}
        return
      }}
      {KERNEL.format(semantics="parallel", bound=DYNAMIC)}
    }}""")
    assert "dynamic: n0, any i32 or n1, any i32 or n2, any i32 or one of 2 others\n" in render_plain(
        summarize(program, V5P)
    )


def test_constant_bound() -> None:
    """A bound that is a constant of the outer program is worth a hint."""
    text = str(dynamic_program().module).replace("stablehlo.minimum %arg0, %c", "stablehlo.maximum %c, %c")
    assert "dynamic: 7, a constant: resolve-grid makes it static\n" in render_plain(summarize(parse(text), V5P))


def test_bare_kernel() -> None:
    """Without a launch, neither operands nor directions are known."""
    program = parse(KERNEL.format(semantics="parallel", bound=DYNAMIC))
    text = render_plain(summarize(program))
    assert "  not launched here\n" in text
    assert "  dimension 0: i, parallel, dynamic\n" in text
    assert "  window 0: x_ref f32[128,128], vmem, (i, j) -> (table[i], j), 2 buffers\n" in text
    assert "  vmem: at least 320.2 KiB\n" in text
    assert "  cores: a chip with 2 cores runs this kernel on 1 of its 2 cores: " in text


def test_kernel_without_grid() -> None:
    """A kernel that runs once, its operands whole, one of them in HBM."""
    program = parse("""module @whole attributes {stable_mosaic.version = 18 : i64} {
      func.func @whole(%x: memref<4096x512xf32, #tpu.memory_space<any>> loc("x"),
                       %o: memref<8x128xf32, #tpu.memory_space<vmem>> loc("o")) attributes {
          scalar_prefetch = 0 : i64, scratch_operands = 0 : i64, tpu.core_type = #tpu.core_type<tc>} {
        return
      }
    }""")
    text = render_plain(summarize(program, V5P))
    assert "  grid: none, the kernel runs once\n" in text
    assert "  window 0: x f32[4096,512], any, whole\n" in text
    assert "  window 1: o f32[8,128], vmem, whole\n" in text
    assert "  vmem: at least 4 KiB of the 64 MiB of a TPU v5p core\n" in text
    assert "on 1 of its 2 cores: it has no grid\n" in text


def test_sparse_core_kernel() -> None:
    """A SparseCore kernel has nothing to say of TensorCores."""
    text = KERNEL.format(semantics="core_parallel", bound=4).replace("core_type<tc>", "core_type<sc_vector_subcore>")
    summary = summarize(parse(text), V5P)
    plain = render_plain(summary)
    assert plain.startswith("kernel 'double': SparseCore (sc_vector_subcore), serialization version 18\n")
    assert plain.endswith(
        "  vmem: at least 320.2 KiB\n  smem: at least 64 B\n  cores: SparseCores run this kernel, no TensorCore does\n"
    )
    assert idle_cores_warning(summary.launches[0], V5P) is None


def test_too_much_memory() -> None:
    """A kernel that can't fit is told so."""
    text = KERNEL.format(semantics="parallel", bound=16).replace(
        "%acc: memref<128x128xf32", "%acc: memref<16384x1024xf32"
    )
    assert "vmem: at least 64.2 MiB of the 64 MiB of a TPU v5p core: more than there is\n" in render_plain(
        summarize(parse(text), V5P)
    )


def test_element_window_and_opaque_index() -> None:
    """A map in elements says so; an index that can't be told names what it is made of."""
    text = (
        KERNEL.format(semantics="parallel", bound=16)
        .replace(
            "window_bounds = array<i64: 1, 128>",
            "window_bounds = array<i64: 1, 128>, window_kind = #tpu.element_window<[0, 0], [0, 8]>",
        )
        .replace("%r = arith.divsi %i, %c4 : i32", "%r = arith.divsi %i, %j : i32")
    )
    plain = render_plain(summarize(parse(text), V5P))
    assert "(i, j) -> (0, 0) in elements (padding [0, 0], [0, 8]), 1 buffer\n" in plain
    assert "(i, j) -> (f(i, j), j), 2 buffers\n" in plain


def test_no_kernel() -> None:
    """A program without kernels says what it has instead."""
    program = parse("""module {
      func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %0 = stablehlo.custom_call @foo(%x) : (tensor<4xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32>
      }
    }""")
    told = "no Mosaic kernel in this program: it has 1 function, custom calls: foo (1)\n"
    assert render_plain(summarize(program)) == told
    assert render_plain(summarize(program), "p.mlir") == f"program p.mlir: {told}"


def test_without_maps() -> None:
    """Who doesn't ask for index maps gets the rest of a summary as it is."""
    told, rest = (summarize(static_program(1), V5P, maps=maps).launches[0] for maps in (True, False))
    assert [window.index_map for window in rest.windows] == [()] * len(told.windows)
    assert any(window.index_map for window in told.windows)
    assert dataclasses.replace(rest, windows=told.windows) == told


def test_no_kernel_of_this_name() -> None:
    """A filter that leaves nothing names what there is."""
    summary = summarize(static_program(1), V5P, Session(kernels=("triple*",)).selects)
    assert render_plain(summary) == "no Mosaic kernel in this program: it has kernels of other names: double\n"


def test_warning() -> None:
    """Idle cores are a warning on the line of the `pallas_call`, with the bound and what to do."""
    (launch,) = summarize(dynamic_program(), V5P).launches
    warning = idle_cores_warning(launch, V5P)
    assert warning is not None
    assert list(warning.lines()) == [
        "model.py:7:3: warning: parallel dimension 0 has a dynamic bound: TPU v5p runs this kernel on 1 of its 2 cores "
        "[idle-cores]",
        "model.py:5:9: note: the bound is min(7, m), in [-2147483648, 7]",
        f"note: partition-cores can't share it: {RACE}",
    ]


def test_warning_in_a_dump_without_lines() -> None:
    """Where only the kernel knows the user's lines, the warning is there and not in the dump."""
    text = str(dynamic_program().module)
    assert "loc(" not in text
    named = text.replace(
        "%c0 = arith.constant 0 : index\n", '%c0 = arith.constant 0 : index loc("get"("kernel.py":31:12))\n'
    )
    (launch,) = summarize(parse(named), V5P).launches
    warning = idle_cores_warning(launch, V5P)
    assert warning is not None
    assert str(warning.place) == "kernel.py:31:12"


@pytest.mark.parametrize(("semantics", "target"), [("arbitrary", "v5p"), ("parallel", "v5e"), ("core_parallel", "v5p")])
def test_no_warning(semantics: str, target: str) -> None:
    """No dimension to share, no second core to idle, and a refused kernel: none of them is an idle core."""
    chip = parse_target(target)
    (launch,) = summarize(dynamic_program(semantics), chip).launches
    assert idle_cores_warning(launch, chip) is None


def test_fallback() -> None:
    """A launch whose sibling branch uses every core is a fallback, and nothing to warn of."""
    call = CALL.format(operands="%n, %t, %x, %b", types="tensor<i32>, ", alias=2, place='"model.py":7:3')
    shared = CALL.format(operands="%t, %x, %b", types="", alias=1, place='"model.py":7:3').replace("@double", "@shared")
    kernel = KERNEL.format(semantics="parallel", bound=16).replace("module @double", "module @shared")
    program = parse(f"""module @jit_f {{
      func.func public @main(%n: tensor<i32>, %t: tensor<16xi32>, %x: tensor<2048x512xf32>, %b: tensor<1x128xbf16>) {{
        %r = "stablehlo.case"(%n) ({{
          %0 = {call}
          stablehlo.return %0 : tensor<2048x512xf32>
        }}, {{
          %0 = {shared}
          stablehlo.return %0 : tensor<2048x512xf32>
        }}) : (tensor<i32>) -> tensor<2048x512xf32>
        return
      }}
      {KERNEL.format(semantics="parallel", bound=DYNAMIC)}
      {kernel}
    }}""")
    first, second = summarize(program, V5P).launches
    assert (first.fallback, second.fallback) == ("the fallback of a launch that runs on every core", "")
    assert idle_cores_warning(first, V5P) is None
    text = render_plain(summarize(program, V5P))
    assert "  launched at model.py:7:3, branch 0 of 2\n" in text
    assert "kernel 'double' (@shared): " in text
    assert "its bound is dynamic\n    the fallback of a launch that runs on every core\n" in text


def grid(*dimensions: tuple[int | None, Semantics]) -> tuple[DimensionSummary, ...]:
    """A grid of bounds and semantics."""
    return tuple(DimensionSummary(f"i{k}", bound, semantics) for k, (bound, semantics) in enumerate(dimensions))


PARALLEL, ARBITRARY, CORE_PARALLEL = Semantics.PARALLEL, Semantics.ARBITRARY, Semantics.CORE_PARALLEL


def waiting(used: int | None, available: int, reason: str) -> Cores:
    """Cores of which a pass may make more."""
    return Cores(used, available, reason, waits=True)


@pytest.mark.parametrize(
    ("dimensions", "available", "cores"),
    [
        ([(16, PARALLEL), (4, ARBITRARY)], 2, Cores(2, 2, "dimension 0 is parallel")),
        ([(None, PARALLEL), (4, PARALLEL)], 2, Cores(2, 2, "dimension 1 is parallel")),
        ([(8, PARALLEL), (4, PARALLEL)], 2, Cores(2, 2, "dimensions 0 and 1 are parallel")),
        ([(2, CORE_PARALLEL), (None, ARBITRARY)], 2, Cores(2, 2, "dimension 0 is core_parallel")),
        ([(8, PARALLEL), (2, CORE_PARALLEL)], 2, Cores(2, 2, "dimension 1 is core_parallel")),
        ([(None, PARALLEL)], 2, waiting(1, 2, "dimension 0 is parallel but its bound is dynamic")),
        (
            [(None, PARALLEL), (None, PARALLEL)],
            2,
            waiting(1, 2, "dimensions 0 and 1 are parallel but their bounds are dynamic"),
        ),
        ([(1, PARALLEL), (4, ARBITRARY)], 2, Cores(1, 2, "dimension 0 is parallel but has one step")),
        ([], 2, Cores(1, 2, "it has no grid")),
        (
            [(4, ARBITRARY)],
            2,
            Cores(
                1,
                2,
                "no dimension is parallel",
                "if the steps of a dimension are independent, say so with dimension_semantics",
            ),
        ),
        ([(None, PARALLEL)], 1, Cores(1, 1, "")),
        *(
            ([(n, CORE_PARALLEL)], 2, waiting(None, 2, f"core_parallel dimension 0 has bound {n}, {must}"))
            for n, must in ((1, "which must be 2 for 2 cores"), (3, "which must be 2 for 2 cores"))
        ),
        (
            [(2, CORE_PARALLEL)],
            1,
            waiting(None, 1, "core_parallel dimension 0 has bound 2, which must be 1 for 1 core"),
        ),
        ([(None, CORE_PARALLEL)], 2, waiting(None, 2, "core_parallel dimension 0 has a dynamic bound")),
        (
            [(2, CORE_PARALLEL), (2, CORE_PARALLEL)],
            2,
            waiting(None, 2, "dimensions 0 and 1 are core_parallel, and only one may be"),
        ),
    ],
)
def test_cores(dimensions: list[tuple[int | None, Semantics]], available: int, cores: Cores) -> None:
    """Which grids run on which cores, and why."""
    assert cores_of(grid(*dimensions), available) == cores


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("8x128xf32", 4096),
        ("8x128xbf16", 2048),
        ("8x128xi4", 512),
        ("3xi4", 2),
        ("9xi1", 2),
        ("8x128xf8E4M3FN", 1024),
        ("?x128xf32", 0),
        ("2x!tpu.dma_semaphore", 0),
        ("f32", 4),
        ("4xindex", 16),
    ],
)
def test_bytes(kind: str, count: int) -> None:
    """Elements are packed; semaphores and unknown sizes count nothing."""
    assert memory.bytes_of(ir.MemRefType(ir.Type.parse(f"memref<{kind}>"))) == count


def test_synchronous_window() -> None:
    """A window that asks for no second buffer has none, though it moves."""
    text = KERNEL.format(semantics="parallel", bound=16).replace(
        "@transform_0, window", "@transform_0, pipeline_mode = #tpu.pipeline_mode<synchronous>, window"
    )
    assert "(table[i], j), 1 buffer\n" in render_plain(summarize(parse(text), V5P))


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (2047, "1.9 KiB"),
        (64 << 20, "64 MiB"),
        (3 << 30, "3 GiB"),
    ],
)
def test_size(count: int, text: str) -> None:
    """Sizes are rounded down, for they are lower bounds."""
    assert size_text(count) == text


class Request:
    """What a command line says."""

    target: Target | None = V5P
    kernels: tuple[str, ...] = ()
    contracts: tuple[str, ...] = ()


def test_print_summary_plain() -> None:
    """Into a pipe: a heading, the summary, then the warnings."""
    out = io.StringIO()
    print_summary(dynamic_program().module, Request(), "p.mlir", out)
    text = out.getvalue()
    assert text.startswith("program p.mlir: 1 kernel, 1 launch, for TPU v5p\n\nkernel 'double': ")
    assert "\n\nmodel.py:7:3: warning: parallel dimension 0 has a dynamic bound: " in text


def test_print_summary_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal: in tables."""
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: True)
    print_summary(dynamic_program().module, Request(), "p.mlir", out)
    assert "in 0      x_ref" in out.getvalue()


def test_assumed_target() -> None:
    """Where nobody names a chip, the heading says for which one the summary is, and how to name another."""
    out, request = io.StringIO(), Request()
    request.target = None
    print_summary(dynamic_program().module, request, "p.mlir", out)
    heading = "program p.mlir: 1 kernel, 1 launch, for TPU v5p; --target=... for another\n"
    assert out.getvalue().startswith(heading)
    assert "TPU v5p runs this kernel on 1 of its 2 cores" in out.getvalue()
