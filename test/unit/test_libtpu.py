"""The real compiler's word: what it says of small Pallas kernels, and that nothing it does takes us down."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from releases import needs_0_12

from mosaic_grid import libtpu
from mosaic_grid.errors import Place, UserError
from mosaic_grid.libtpu import LaunchReport, ProgramReport, Status, compile_program, report_json, report_line
from mosaic_grid.libtpu_message import diagnostic_of, failure, mentions
from mosaic_grid.llo import Code, read_codes
from mosaic_grid.targets import parse_target

Semantics = Literal["parallel", "core_parallel", "arbitrary"]

V5P = parse_target("v5p")


def array(shape: tuple[int, ...], dtype: Any) -> Any:
    """What JAX lowers a function for in place of an array."""
    import jax

    return jax.ShapeDtypeStruct(shape, dtype)


def copy_kernel(
    semantics: tuple[Semantics, Semantics], name: str = "double", factor: float = 2.0
) -> Callable[[Any], Any]:
    """A function that launches an elementwise kernel on grid (8, 2) over a 1024x256 array."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * factor

    def launch(x: Any) -> Any:
        spec = pl.BlockSpec((128, 128), lambda i, j: (i, j))
        params = pltpu.CompilerParams(dimension_semantics=semantics)
        return pl.pallas_call(
            kernel, grid=(8, 2), in_specs=[spec], out_specs=spec, out_shape=x, compiler_params=params, name=name
        )(x)

    return launch


def lowered(function: Callable[..., Any], *more: Any, debug_info: bool = False) -> bytes:
    """The program of a function of `more` and a 1024x256 array, as JAX lowers it for TPU."""
    import jax
    import jax.numpy as jnp

    avals = (*more, array((1024, 256), jnp.float32))
    text = jax.jit(function).trace(*avals).lower(lowering_platforms=("tpu",)).as_text(debug_info=debug_info)
    return str(text).encode()


def compiled(program: bytes, target: str = "v5p") -> ProgramReport:
    """The report for one target."""
    (report,) = compile_program(program, [parse_target(target)])
    return report


def lines(report: ProgramReport) -> list[str]:
    """Its lines without the bundles, which the next libtpu may count differently."""
    return [re.sub(r", \d+ bundles", "", report_line(launch)) for launch in report.launches]


TWO = functools.partial(copy_kernel, ("parallel", "arbitrary"))
ONE = functools.partial(copy_kernel, ("arbitrary", "arbitrary"))
TOO_MANY = functools.partial(copy_kernel, ("core_parallel", "arbitrary"))
TOO_MANY_SAYS = "core-parallel dimension 0 has iteration bound: 8, which is greater than the number of active cores: 2"


@pytest.mark.libtpu
@pytest.mark.parametrize(
    ("kernel", "target", "cores"),
    [
        (TWO, "v5p", "2 of 2"),
        (ONE, "v5p", "1 of 2"),
        (TWO, "v5p:1", "1 of 1"),
        (TWO, "v5e", "1 of 1"),
        (TWO, "v4:1", "1 of 1"),
        (TWO, "v4", "2 of 2"),
    ],
)
def test_cores_used(kernel: Callable[[], Any], target: str, cores: str) -> None:
    """A parallel dimension is shared by the cores that one device has, and by no more."""
    report = compiled(lowered(kernel()), target)
    (launch,) = report.launches
    assert launch.bundles is not None
    assert report_line(launch) == f"double: {target}: compiles, cores used: {cores}, {launch.bundles} bundles"
    assert launch.bundles > 0
    assert report.code_bytes is not None
    assert report.code_bytes > 0


@pytest.mark.libtpu
def test_launch_in_the_older_dialect() -> None:
    """A launch that is spelt in MHLO is found like any other."""
    program = lowered(ONE()).replace(b"stablehlo.custom_call @", b"mhlo.custom_call @")
    assert b"mhlo.custom_call" in program
    assert lines(compiled(program)) == ["double: v5p: compiles, cores used: 1 of 2"]


@pytest.mark.libtpu
def test_failing_kernel() -> None:
    """A refused kernel is a report with libtpu's reason, free of its decoration."""
    report = compiled(lowered(TOO_MANY()))
    (launch,) = report.launches
    assert report_line(launch) == f"double: v5p: does not compile: {TOO_MANY_SAYS}"
    assert report.failed
    assert report.hlo == ""


@pytest.mark.libtpu
def test_refusal_is_placed_on_the_users_line() -> None:
    """Where the program has locations, the error stands at the line of the kernel that libtpu refused."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = jnp.dot(x_ref[...], x_ref[...])

    square = array((128, 128), jnp.int32)
    traced = jax.jit(lambda x: pl.pallas_call(kernel, out_shape=square)(x)).trace(square)
    report = compiled(traced.lower(lowering_platforms=("tpu",)).as_text(debug_info=True).encode(), "v5e")
    (launch,) = report.launches
    assert launch.diagnostic is not None
    assert launch.diagnostic.place is not None
    assert launch.diagnostic.place.file == __file__
    source = Path(__file__).read_text().splitlines()[launch.diagnostic.place.line - 1]
    assert "jnp.dot" in source


@pytest.mark.libtpu
@needs_0_12("comes with a libtpu that doesn't say which launch it refuses")
def test_only_the_guilty_launch_fails() -> None:
    """Of two launches of the same name the one that libtpu names fails; the other is not blamed."""
    report = compiled(lowered(lambda x: TOO_MANY()(TWO()(x))))
    first, second = report.launches
    assert first.status in (Status.COMPILES, Status.SKIPPED)
    assert report_line(second) == f"double: v5p: does not compile: {TOO_MANY_SAYS}"


@pytest.mark.libtpu
def test_two_launches_of_one_name() -> None:
    """Two kernels of the same name each have their own cores, in the order of the program."""
    report = compiled(lowered(lambda x: ONE()(TWO()(x))))
    assert lines(report) == ["double: v5p: compiles, cores used: 2 of 2", "double: v5p: compiles, cores used: 1 of 2"]


@pytest.mark.libtpu
def test_equal_launches_share_code() -> None:
    """libtpu writes the code of equal launches once; each of them still has its cores and bundles."""
    report = compiled(lowered(lambda x: TWO()(TWO()(TWO()(x)))))
    assert [launch.launch for launch in report.launches] == [0, 1, 2]
    assert len({launch.instruction for launch in report.launches}) == 3
    assert lines(report) == ["double: v5p: compiles, cores used: 2 of 2"] * 3


@pytest.mark.libtpu
def test_equal_launch_is_merged() -> None:
    """A second launch on the same operand is dropped by XLA, which is said."""
    kept, dropped = compiled(lowered(lambda x: (TWO()(x), TWO()(x)))).launches
    assert kept.status is Status.COMPILES
    assert report_line(dropped).startswith("double: v5p: not compiled: XLA removed the launch")
    assert not dropped.failed


@pytest.mark.libtpu
def test_branches_of_a_case() -> None:
    """Kernels of one name in the two branches of a `stablehlo.case` say in which they are."""
    import jax
    import jax.numpy as jnp

    program = lowered(lambda n, x: jax.lax.cond(n > 3, TWO(), ONE(), x), array((), jnp.int32))
    # Branch 0 of the case is the one for false.
    report = compiled(program)
    assert lines(report) == [
        "double: v5p: compiles, cores used: 1 of 2 (branch 0 of 2)",
        "double: v5p: compiles, cores used: 2 of 2 (branch 1 of 2)",
    ]
    (said,) = json.loads(report_json([report]))["programs"]
    assert [launch["branch"] for launch in said["launches"]] == ["branch 0 of 2", "branch 1 of 2"]


@pytest.mark.libtpu
def test_branch_of_a_launch_that_fails() -> None:
    """A refusal says its branch too, and a launch beside it that is in none says nothing of branches."""
    import jax
    import jax.numpy as jnp

    program = lowered(
        lambda n, x: ONE("before")(jax.lax.cond(n > 3, TOO_MANY("many"), ONE("one"), x)), array((), jnp.int32)
    )
    texts = {launch.kernel: report_line(launch) for launch in compiled(program).launches}
    assert texts["many"] == f"many: v5p: does not compile: {TOO_MANY_SAYS} (branch 1 of 2)"
    assert texts["one"].endswith(" (branch 0 of 2)")
    assert "branch" not in texts["before"]


def test_plain_line() -> None:
    """The line of a launch outside of branches, to the letter."""
    report = LaunchReport(V5P, Status.COMPILES, "double", 0, "double.1", 2, 121)
    assert report_line(report) == "double: v5p: compiles, cores used: 2 of 2, 121 bundles"


@pytest.mark.libtpu
def test_launch_in_a_loop_and_in_a_function_called_twice() -> None:
    """A launch in a loop is one instruction; one in a function that two calls inline is two."""
    import jax
    import jax.numpy as jnp

    twice = jax.jit(TWO(name="twice"))

    def program(n: Any, x: Any) -> Any:
        return twice(twice(jax.lax.fori_loop(0, n, lambda _, y: ONE(name="looped")(y), x)) + 1)

    report = compiled(lowered(program, array((), jnp.int32)))
    assert sorted(lines(report)) == [
        "looped: v5p: compiles, cores used: 1 of 2",
        *["twice: v5p: compiles, cores used: 2 of 2"] * 2,
    ]


@pytest.mark.libtpu
def test_fused_operand() -> None:
    """A launch whose operand is fused into it is found in the fusion that runs it."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...]

    def program(x: Any) -> Any:
        spec = pl.BlockSpec((128, 128), lambda i: (i, 0))
        params = pltpu.CompilerParams(dimension_semantics=("parallel",), allow_input_fusion=[True])
        shape = array((1024, 128), x.dtype)
        call = pl.pallas_call(
            kernel, grid=(8,), in_specs=[spec], out_specs=spec, out_shape=shape, compiler_params=params, name="fused"
        )
        return call(x[:, :128] * 3 + 1)

    assert lines(compiled(lowered(program))) == ["fused: v5p: compiles, cores used: 2 of 2"]


@pytest.mark.libtpu
def test_fused_result() -> None:
    """A launch that is fused with the update that takes its result is found in that fusion, which has no tag."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def kernel(table_ref: Any, x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...]

    def gather(table: Any, x: Any) -> Any:
        grid = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(8,),
            in_specs=[pl.BlockSpec((128, 128), lambda i, table: (table[i], 0))],
            out_specs=pl.BlockSpec((128, 128), lambda i, table: (i, 0)),
        )
        return pl.pallas_call(kernel, grid_spec=grid, out_shape=array((1024, 128), x.dtype), name="looped")(table, x)

    def program(tables: Any, x: Any) -> Any:
        return jax.vmap(gather)(tables, jnp.broadcast_to(x[:, :128], (4, 1024, 128)) + tables.sum())

    report = compiled(lowered(program, array((4, 8), jnp.int32)))
    assert lines(report) == ["looped: v5p: compiles, cores used: 1 of 2"]


@pytest.mark.libtpu
def test_name_longer_than_a_file_name() -> None:
    """libtpu cuts the names of its dump files; the code is found all the same."""
    name = "a_kernel_with_a_long_name_" * 12
    report = compiled(lowered(TWO(name=name), debug_info=True))
    assert name in report.launches[0].instruction
    assert lines(report) == [f"{name}: v5p: compiles, cores used: 2 of 2"]


@pytest.mark.libtpu
def test_several_devices() -> None:
    """A program partitioned over more devices than one host has is compiled for a topology that has them."""
    program = lowered(TWO()).replace(b"mhlo.num_partitions = 1", b"mhlo.num_partitions = 8")
    assert b"num_partitions = 8" in program
    assert lines(compiled(program)) == ["double: v5p: compiles, cores used: 2 of 2"]


@pytest.mark.libtpu
def test_program_without_kernels() -> None:
    """A program that launches nothing has one report, and compiles."""
    (launch,) = compiled(lowered(lambda x: x + 1)).launches
    assert report_line(launch) == "v5p: compiles, launches no kernel"


@pytest.mark.libtpu
def test_hlo_is_what_libtpu_made_of_the_program_alone() -> None:
    """The HLO shows the launch and its own frontend attributes, but not the mark by which launches are told apart."""
    hlo = compiled(lowered(TWO())).hlo
    assert 'custom_call_target="tpu_custom_call"' in hlo
    assert "mosaic_grid" not in hlo
    assert "frontend_attributes={}" not in hlo


@pytest.mark.libtpu
def test_targets_side_by_side(tmp_path: Path) -> None:
    """Several targets are compiled at once, reported in the order asked for, and leave their dumps where told."""
    targets = [parse_target(name) for name in ("v5p:1", "v6e", "v5p")]
    reports = compile_program(lowered(TWO()), targets, keep=tmp_path)
    assert [(report.target, report.failed) for report in reports] == [(target, False) for target in targets]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["v5p", "v5p-1", "v6e"]
    assert list((tmp_path / "v6e" / "dump").glob("*-original.txt"))


@pytest.mark.libtpu
@pytest.mark.parametrize(
    ("program", "message"),
    [
        (b"not MLIR at all", "not a StableHLO program: "),
        (b"ML\xefR\x00\x01", "not a StableHLO program: "),
        (
            b"module { func.func @main() { stablehlo.custom_call @tpu_custom_call() "
            b"{mosaic.kernel = @k, has_side_effect = true} : () -> ()\n return } module @k {} }",
            "the program is unpacked",
        ),
    ],
)
def test_input_that_is_no_program(program: bytes, message: str) -> None:
    """What isn't a packed program is bad input, not a kernel that fails to compile."""
    with pytest.raises(UserError, match=message):
        compiled(program)


@pytest.mark.libtpu
def test_dynamic_shape_is_refused_before_libtpu_aborts() -> None:
    """libtpu dies of a dynamic shape, so it isn't asked, and the report names the type."""
    report = compiled(b"module { func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> } }")
    assert report_line(report.launches[0]).startswith("v5p: does not compile: tensor<?xf32> has a dynamic shape")


def child(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Makes the compiling process run this Python instead."""
    monkeypatch.setattr(libtpu, "libtpu_available", lambda: True)
    monkeypatch.setattr(libtpu, "_command", lambda: [sys.executable, "-c", code])


def test_abort_is_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that aborts is a report with what it said last."""
    fatal = "F1201 10:20:30.123456 4242 shape_util.cc:1035] Check failed: !overflow"
    child(monkeypatch, f"import os, sys; print({fatal!r}, file=sys.stderr, flush=True); os.abort()")
    (launch,) = compiled(b"").launches
    assert report_line(launch) == ("v5p: does not compile: the compiler aborted (SIGABRT): Check failed: !overflow")


def test_abort_is_every_launch_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies after it has read the program takes every launch down under its name."""
    child(
        monkeypatch,
        "import json, os, pathlib, sys; job = json.load(sys.stdin); "
        "launches = [{'kernel': name, 'core': 'tc', 'key': name} for name in ('f', 'g')]; "
        "state = {'stage': 'compile', 'error': '', 'launches': launches, 'instructions': [], 'code_bytes': None}; "
        "pathlib.Path(job['result']).write_text(json.dumps(state)); "
        "print('the end', flush=True); os.kill(os.getpid(), 9)",
    )
    report = compiled(b"")
    assert [report_line(launch) for launch in report.launches] == [
        f"{name}: v5p: does not compile: the compiler aborted (SIGKILL)" for name in ("f", "g")
    ]
    error = report.launches[0].diagnostic
    assert error is not None
    assert [note.message for note in error.notes] == ["the end"]


def test_hang_is_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that doesn't come to an end is stopped."""
    child(monkeypatch, "import time; time.sleep(600)")
    (report,) = compile_program(b"", [V5P], timeout=0.5)
    assert report_line(report.launches[0]) == "v5p: does not compile: the compiler gave no answer in 0.5 s"


def test_moved_jaxlib_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A jaxlib that has been rearranged is named, with what to do."""
    child(
        monkeypatch,
        "import json, pathlib, sys; job = json.load(sys.stdin); "
        "pathlib.Path(job['result']).write_text(json.dumps({'stage': 'moved', 'error': 'jaxlib 9 has no _jax.X', "
        "'launches': [], 'instructions': [], 'code_bytes': None}))",
    )
    with pytest.raises(UserError, match=r"jaxlib 9 has no _jax\.X"):
        compiled(b"")


def test_missing_libtpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without libtpu there is one clear message and the next step."""
    monkeypatch.delenv("TPU_LIBRARY_PATH", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="libtpu is not installed") as caught:
        compile_program(b"", [V5P])
    assert "pip install 'jax[tpu]'" in caught.value.notes[0]


def test_chip_without_a_topology(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chip that JAX knows and libtpu doesn't is a report, and no process is started for it."""
    child(monkeypatch, "raise SystemExit('started')")
    report = compiled(b"", "tpu8i")
    assert report_line(report.launches[0]) == "tpu8i: does not compile: libtpu has no ahead-of-time topology for tpu8i"


def test_paths_outlive_the_change_of_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child finds this package first, and a relative PYTHONPATH means what it meant to us."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", "lib"]))
    package = str(Path(libtpu.__file__).parent.parent)
    assert libtpu._environment("/here")["PYTHONPATH"].split(os.pathsep) == [package, str(Path.cwd() / "lib")]


def test_kept_directory_of_another_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What an earlier compilation left in a directory is not taken for the answer of this one."""
    (tmp_path / "v5p" / "dump").mkdir(parents=True)
    (tmp_path / "v5p" / "dump" / "1-f.1-00-original.txt").touch()
    (tmp_path / "v5p" / "result.json").write_text("not even JSON")
    child(monkeypatch, "raise SystemExit(3)")
    (report,) = compile_program(b"", [V5P], keep=tmp_path)
    assert report_line(report.launches[0]) == ("v5p: does not compile: the compiler process failed with exit code 3")
    assert not list((tmp_path / "v5p" / "dump").iterdir())


def test_user_s_flags_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """LIBTPU_INIT_ARGS is kept, and ours come after it, since the last of two equal flags counts."""
    monkeypatch.setenv("LIBTPU_INIT_ARGS", "--xla_jf_dump_to=/elsewhere --xla_other=1")
    flags = libtpu._environment("/here")["LIBTPU_INIT_ARGS"].split()
    assert flags[:3] == ["--xla_jf_dump_to=/elsewhere", "--xla_other=1", "--xla_jf_dump_to=/here"]


def test_json() -> None:
    """The document's keys are stable, absent facts are null, and an error has its place and notes."""
    error = diagnostic_of('INTERNAL: Mosaic failed to compile TPU kernel: No.\n\nat location: loc("k.py":3:7)')
    reports = [
        ProgramReport(V5P, (LaunchReport(V5P, Status.COMPILES, "f", 0, "f.1", 2, 121, 98),), "HloModule", 4096),
        ProgramReport(V5P, (LaunchReport(V5P, Status.FAILS, "g", diagnostic=error),)),
    ]
    good, bad = json.loads(report_json(reports))["programs"]
    assert good == {
        "target": "v5p",
        "compiles": True,
        "code_bytes": 4096,
        "launches": [
            {
                "kernel": "f",
                "launch": 0,
                "branch": None,
                "instruction": "f.1",
                "status": "compiles",
                "cores_used": 2,
                "cores": 2,
                "bundles": 121,
                "step_bundles": 98,
                "remark": None,
                "error": None,
            }
        ],
        "error": None,
    }
    said = {"message": "no", "file": "k.py", "line": 3, "column": 7, "notes": []}
    assert (bad["compiles"], bad["error"], bad["launches"][0]["error"]) == (False, said, said)
    assert report_json(reports) == report_json(list(reports))


def test_message_keeps_what_matters() -> None:
    """Status word, wrapper, error code and the advice to report a bug go; the op and a link become notes."""
    error = diagnostic_of(
        "INTERNAL: Mosaic failed to compile TPU kernel with MLIR module name `a: b` HLO name `k.1`: E2003: "
        "CompileTimeUnprovenAlignment: Cannot prove  that.\nSee https://openxla.org/xla/errors for more details.\n\n"
        'at location: loc("get"(callsite("f"("a.py":17:28 to :48) at "g"("b.py":1:2))))\n\n'
        'The MLIR operation involved:\n  %4 = "tpu.vector_load"()\n\nPlease report a bug at: https://example.org\n'
    )
    assert error.message == "cannot prove that"
    assert error.place == Place("a.py", 17, 28)
    assert [note.message for note in error.notes] == [
        "See https://openxla.org/xla/errors for more details",
        'the op is %4 = "tpu.vector_load"()',
    ]


def test_message_of_a_full_memory() -> None:
    """An allocation that doesn't fit says what it is for, how large it is and how much there is."""
    error = diagnostic_of(
        "RESOURCE_EXHAUSTED: Allocation (size=268435456) would exceed memory (size=67108864) :: #allocation3 [shape = "
        "'u8[268435456]{0}', space=vmem, size = 0x10000000, scoped, tag = 'input window allocation for operator input "
        "0. The window shape is f32[8192,8192].'] :: name.1"
    )
    assert error.message == (
        "allocation of 268435456 bytes would exceed the 67108864 bytes of vmem: "
        "input window allocation for operator input 0"
    )


@pytest.mark.parametrize("text", ["", "\n\n", "X", "INTERNAL: "])
def test_message_of_few_words(text: str) -> None:
    """Any text at all is a message."""
    assert diagnostic_of(text).message in ("no reason given", "X")


def test_failure_prefers_the_fatal_line() -> None:
    """Of a log the line that libtpu died of is told; without one the last three that say anything."""
    assert failure("it died", "a\nF0101 1:2:3.4 5 a.cc:6] Check failed: x\nE0101 bye\n").message == (
        "it died: Check failed: x"
    )
    assert [note.message for note in failure("it died", "a\nb\n\nc\nd\n").notes] == ["b", "c", "d"]


def test_mentions_whole_names_only() -> None:
    """`f.1` is not mentioned where `f.12`, `g-f.1` or `f.1.x` is."""
    assert mentions("HLO name `f.1`: no", "f.1")
    assert mentions("memory :: f.1", "f.1")
    assert not any(mentions(text, "f.1") for text in ("f.12", "f.1.x", "g-f.1", "f_1", ""))


def test_dump_of_several_tries(tmp_path: Path) -> None:
    """The last of several compilations counts, other instructions don't, and a cut name is found by its text."""
    long = "k" * 30
    files = {
        "1796086248358492801-f.1-00-original.txt": "$region0: #{f.1}\n  $region3 (PrimaryCoreRegion): #{f.1}\n",
        "1796086248358492801-f.1-01-schedule-analysis_final_bundles.txt": "\ttotal scheduled bundles:    9\n",
        "1796086248358492802-f.1-00-original.txt": "$region0: #{f.1}\n  /* no (PrimaryCoreRegion) */\n",
        "1796086248358492802-f.1-01-schedule-analysis_final_bundles.txt": "\ttotal scheduled bundles:    7\n",
        "1796086248358492802-g.1-00-original.txt": "$region0: #{g.1}\n",
        "1796086248358492802-TLP-00-original.txt": "$region0:\n  $region3 (PrimaryCoreRegion):\n",
        "1796086248358492802-f.1-02-final_bundles.txt": "total scheduled bundles: 1",
        "1796086248358492803-kkkkkkkkkk-5543677886510333044-00-original.txt": f"$region0: #{{{long}}}\n"
        f"  $region3 (PrimaryCoreRegion): #{{{long}}} // pred\n",
        "hlo.txt": "",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert read_codes(tmp_path, ["f.1", long, "k" * 29]) == {"f.1": Code(False, 7, 7), long: Code(True, None)}
