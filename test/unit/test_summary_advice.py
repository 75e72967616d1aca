"""What the summary advises on idle cores: what the passes would do, and never what they refuse."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from jaxlib.mlir import ir

import mosaic_grid
from mosaic_grid import legality
from mosaic_grid.context import create_context
from mosaic_grid.objections import Judgement
from mosaic_grid.passes.partition_cores import PartitionCores
from mosaic_grid.passes.resolve_grid import ResolveGrid
from mosaic_grid.program import Kernel, Launch, Program
from mosaic_grid.session import Session
from mosaic_grid.summary import LaunchSummary, idle_cores_warning, summarize
from mosaic_grid.summary.plain import advice_text
from mosaic_grid.targets import parse_target

DYNAMIC = -(2**63)
V5P = parse_target("v5p")
SMEM, VMEM = "#tpu.memory_space<smem>", "#tpu.memory_space<vmem>"


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    """Every test has an MLIR context of its own, and a location for what it builds."""
    with create_context(), ir.Location.unknown():
        yield


def kernel(
    semantics: str = "parallel", bound: int = DYNAMIC, row: str = "%i", second: str = "arbitrary", more: str = ""
) -> str:
    """A kernel on a grid (bound, 2) that writes ones to block `row` of its output; `more` are ops of its body."""
    return f"""module @k attributes {{stable_mosaic.version = 18 : i64}} {{
      func.func @k(%i: i32, %j: i32, %t: memref<4xi32, {SMEM}>, %o: memref<8x128xf32, {VMEM}>) attributes {{
          dimension_semantics = [#tpu.dimension_semantics<{semantics}>, #tpu.dimension_semantics<{second}>],
          iteration_bounds = array<i64: {bound}, {DYNAMIC if second == "parallel" else 2}>,
          scalar_prefetch = 1 : i64, scratch_operands = 0 : i64, tpu.core_type = #tpu.core_type<tc>,
          window_params = [{{transform_indices = @map, window_bounds = array<i64: 8, 128>}}]}} {{
        %c0 = arith.constant 0 : index
        %ones = arith.constant dense<1.0> : vector<8x128xf32>
        vector.store %ones, %o[%c0, %c0] : memref<8x128xf32, {VMEM}>, vector<8x128xf32>
        {more}
        return
      }}
      func.func @map(%i: i32, %j: i32, %t: memref<4xi32, {SMEM}>) -> (i32, i32) {{
        %zero = arith.constant 0 : i32
        %at = arith.index_cast %i : i32 to index
        %read = memref.load %t[%at] : memref<4xi32, {SMEM}>
        return {row}, %j : i32, i32
      }}
    }}"""


def launched(
    kernel: str, bounds: str = "%n", config: str = "{\\22custom_call_config\\22: {}}", times: int = 1
) -> Program:
    """A program that launches a kernel so often."""
    count = bounds.count("%")
    separate = ", " if count else ""
    calls = "\n".join(
        f"""%r{k} = stablehlo.custom_call @tpu_custom_call({bounds}{separate}%t) {{
            backend_config = "{config}", mosaic.kernel = @k
          }} : ({"tensor<i32>, " * count}tensor<4xi32>) -> tensor<64x256xf32> loc("model.py":7:3)"""
        for k in range(times)
    )
    return Program(
        ir.Operation.parse(f"""module {{
          func.func public @main(%n: tensor<i32>, %t: tensor<4xi32>) {{
            %five = stablehlo.constant dense<5> : tensor<i32>
            %two = stablehlo.constant dense<2> : tensor<i32>
            {calls}
            return
          }}
          {kernel}
        }}""").operation
    )


def advised(program: Program, chip: str = "v5p") -> tuple[LaunchSummary, str]:
    """The first launch, and what is advised."""
    launch = summarize(program, parse_target(chip)).launches[0]
    return launch, advice_text(launch)


SHARES = "partition-cores shares it between the cores"
LOOPS = "partition-cores makes it an ordinary loop"
RACES = (
    "partition-cores can't share it: parallel dimension 0 is a race: "
    "steps (0, 0) and (1, 0) write the same block (0, 0) of output 0"
)


@pytest.mark.parametrize(
    ("text", "bounds", "advice"),
    [
        (kernel(), "%n", SHARES),
        (kernel(second="parallel"), "%n, %n", "partition-cores shares them between the cores"),
        (kernel(row="%zero"), "%n", RACES),
        (kernel(row="%zero", second="parallel"), "%n, %n", "partition-cores shares dimension 1 between the cores"),
        (kernel(row="%read"), "%n", "partition-cores shares it, on its author's word"),
        (kernel(), "%five", "resolve-grid makes it static, which is enough"),
        (kernel(second="parallel"), "%n, %five", "resolve-grid makes dimension 1 static, which is enough"),
        (kernel(row="%zero"), "%five", RACES),
        (kernel("core_parallel"), "%n", "partition-cores makes it static"),
        (kernel("core_parallel"), "%two", "resolve-grid makes it static, which is enough"),
        (kernel("core_parallel", 3), "", "partition-cores makes it fit"),
        (kernel("core_parallel", 1), "", LOOPS),
        (kernel("core_parallel", 3, second="core_parallel"), "", "make all but one of them parallel"),
        (kernel("core_parallel", 1, second="core_parallel"), "", "partition-cores makes dimension 0 an ordinary loop"),
        (kernel("arbitrary"), "%n", "if the steps of a dimension are independent, say so with dimension_semantics"),
        (kernel("parallel", 4), "", ""),
    ],
)
def test_advice_is_what_the_passes_do(text: str, bounds: str, advice: str) -> None:
    """The advice is told, then taken: it comes true, and nothing changes where it says that nothing can."""
    program = launched(text, bounds)
    assert advised(program)[1] == advice
    before = str(program.module)
    for rewrite in (ResolveGrid(), PartitionCores()):
        if advice.startswith(rewrite.name):
            rewrite.run(program.module, Session(V5P))
    promised = 1 if advice == LOOPS else 2 if any(word in advice for word in ("shares", "makes")) else None
    assert (str(program.module) != before) == (promised is not None)
    used = [launch.cores.used for launch in summarize(Program(program.module), V5P).launches if launch.cores]
    assert promised is None or promised in used


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (kernel("core_parallel", 2), LOOPS),
        (kernel("parallel"), ""),
    ],
)
def test_one_core(text: str, advice: str) -> None:
    """On a device with one core nothing idles, and a core_parallel dimension is in the way."""
    program = launched(text, "%n" if str(DYNAMIC) in text else "")
    assert advised(program, "v5e")[1] == advice


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (kernel(), SHARES + ", in a program that launches it"),
        (kernel("core_parallel", 3), "partition-cores makes it fit, in a program that launches it"),
        (kernel("core_parallel", 1), LOOPS),
        (kernel(row="%zero"), RACES),
    ],
)
def test_kernel_that_nothing_launches(text: str, advice: str) -> None:
    """A kernel alone is judged too, but the pass shares launches."""
    assert advised(Program(ir.Operation.parse(text).operation))[1] == advice


def test_refusal_of_what_may_be_fine() -> None:
    """Where nothing wrong is proved, the compiler would share a static grid all the same: the warning says so."""
    body = '"tpu.matmul_push_rhs"(%ones) {mxu_index = 0 : i32, staging_register = 0 : i32} : (vector<8x128xf32>) -> ()'
    launch, advice = advised(launched(kernel(more=body)))
    assert advice.startswith("partition-cores can't share it: tpu.matmul_push_rhs uses registers of the matrix unit")
    warning = idle_cores_warning(launch, V5P)
    assert warning is not None
    assert warning.notes[-1].message == f"{advice}; with a static bound the compiler shares it unchecked"


def test_warning_of_a_refusal() -> None:
    """What would race on two cores isn't advised to become static: the compiler would take its author at his word."""
    warning = idle_cores_warning(advised(launched(kernel(row="%zero")))[0], V5P)
    assert warning is not None
    assert warning.notes[-1].message == RACES


@pytest.mark.parametrize(
    ("text", "bounds", "otherwise"),
    [
        (kernel(), "%n", "or make the bound static"),
        (kernel(second="parallel"), "%n, %n", "or make a bound static"),
        (kernel(row="%zero", second="parallel"), "%n, %n", "or make its bound static"),
    ],
)
def test_warning_says_which_bound(text: str, bounds: str, otherwise: str) -> None:
    """Instead of the pass a static bound will do: of a dimension that may be shared, and of no other."""
    launch, advice = advised(launched(text, bounds))
    warning = idle_cores_warning(launch, V5P)
    assert warning is not None
    assert warning.notes[-1].message == f"{advice}; {otherwise}"


def test_launch_that_no_pass_can_read() -> None:
    """A launch whose configuration is broken is summarised as far as it goes."""
    _, advice = advised(launched(kernel(), config="?"))
    assert advice.startswith("partition-cores can't work on it: backend_config is not JSON: ")


def test_launches_with_other_advice_are_apart() -> None:
    """Of launches that look alike but for their bounds, those that resolve-grid helps are told apart."""
    program = launched(kernel(), times=3)
    text = str(program.module)
    first = text.index("@tpu_custom_call(%arg0")
    changed = Program(ir.Operation.parse(text[:first] + text[first:].replace("%arg0", "%c", 1)).operation)
    assert [(s.launches, advice_text(s)) for s in summarize(changed, V5P).launches] == [
        (1, "resolve-grid makes it static, which is enough"),
        (2, SHARES),
    ]


def test_fallback_of_partition_cores() -> None:
    """What the pass launches where it can't share the steps is known for that, also after its symbols are gone."""
    program = launched(kernel())
    PartitionCores().run(program.module, Session(V5P))
    renamed = str(program.module).replace("@k_cores2_d0", "@another")
    for text in (str(program.module), renamed):
        fallback, shared = summarize(Program(ir.Operation.parse(text).operation), V5P).launches
        assert advice_text(fallback) == (
            "the fallback of a launch that runs on every core, for when a core would have no step"
        )
        assert (fallback.branch, shared.branch, shared.fallback) == ("branch 0 of 2", "branch 1 of 2", "")
        assert idle_cores_warning(fallback, V5P) is None


def test_kernel_for_more_cores() -> None:
    """A program partitioned for four cores is refused by two, and is told what the pass does about it."""
    program = launched(kernel())
    PartitionCores(cores=4).run(program.module, Session())
    _, four = summarize(Program(program.module), V5P).launches
    assert four.cores is not None
    assert four.cores.reason == "core_parallel dimension 0 has bound 4, which must be 2 for 2 cores"
    PartitionCores().run(program.module, Session(V5P))
    used = [launch.cores.used for launch in summarize(Program(program.module), V5P).launches if launch.cores]
    assert (None in used) == ("can't" in advice_text(four))


def test_kernel_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a kernel is launched, its analysis is paid for once."""
    judged: list[tuple[int, ...]] = []

    def judge(kernel: Kernel, axes: tuple[int, ...], launches: Sequence[Launch], most: Mapping[int, int]) -> Judgement:
        judged.append(axes)
        return Judgement()

    monkeypatch.setattr(legality, "judge", judge)
    (summary,) = summarize(launched(kernel(), times=20), V5P).launches
    assert (summary.launches, judged) == (20, [(0,)])


def test_only_idle_cores_cost_an_analysis() -> None:
    """A kernel that every core runs is summarised without the solver, one that may be shared is not."""
    for text, bounds, loads in ((kernel(bound=4), "", False), (kernel(), "%n", True)):
        code = (
            f"import sys; sys.path.insert(0, {str(Path(mosaic_grid.__file__).parent.parent)!r})\n"
            "from jaxlib.mlir import ir\n"
            "from mosaic_grid.context import create_context\n"
            "from mosaic_grid.program import Program\n"
            "from mosaic_grid.summary import summarize\n"
            "with create_context():\n"
            "    summarize(Program(ir.Operation.parse(sys.stdin.read()).operation))\n"
            "print('islpy' in sys.modules)\n"
        )
        program = str(launched(text, bounds).module)
        done = subprocess.run([sys.executable, "-c", code], input=program, capture_output=True, text=True, check=True)
        assert done.stdout == f"{loads}\n"
