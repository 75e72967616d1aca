"""`mosaic-run` as a whole: its exit codes, its answers, and the process it is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_programs import DOUBLE, program

import mosaic_grid
from mosaic_grid.errors import UserError
from mosaic_grid.runner import main
from mosaic_grid.runner.command_line import parse_command_line

SOURCES = Path(mosaic_grid.__file__).parent.parent
COMMAND = [sys.executable, "-P", "-m", "mosaic_grid.runner.main"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCES)}


def run(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """The exit code and what was said on both streams."""
    capsys.readouterr()
    status = main.main([str(DOUBLE), *arguments])
    said = capsys.readouterr()
    return status, said.out, said.err


def other(tmp_path: Path, old: str, new: str) -> str:
    """A file of the doubling program with a change in it."""
    text = DOUBLE.read_text()
    assert old in text
    path = tmp_path / "other.mlir"
    path.write_text(text.replace(old, new))
    return str(path)


def test_results_are_those_of_the_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is saved is what the kernel does to the input that was saved before."""
    x = np.random.default_rng(0).standard_normal((1024, 256)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    saved = tmp_path / "out.npz"
    assert run(["--bounds=128", f"--input=1={tmp_path / 'x.npy'}", f"-o={saved}"], capsys)[0] == 0
    with np.load(saved) as archive:
        np.testing.assert_array_equal(archive["result0"], 2 * x)


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    """Everything asked for is in it, and nothing else is on standard output."""
    arguments = ["--bounds=5", "--input=1=iota", "--format=json", "--time=3", f"--compare={DOUBLE}", "-seed=1"]
    status, out, err = run(arguments, capsys)
    assert (status, err) == (0, "")
    document: dict[str, Any] = json.loads(out)
    assert set(document) == {"program", "results", "compare", "times"}
    (result,) = document["results"]
    assert (result["type"], result["shape"], result["nan"]) == ("f32", [1024, 256], 1024 * 256 - 5 * 8 * 256)
    assert (result["min"], result["max"]) == (0, 2.0 * (5 * 8 * 256 - 1))
    assert document["compare"] == [
        {"result": 0, "differing": 0, "elements": 262144, "max_absolute": 0, "max_relative": 0, "first": None}
    ]
    assert [each["runs"] for each in document["times"]] == [3, 3]
    assert all(0 < each["best"] <= each["median"] for each in document["times"])


def test_first_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where results differ, the exit code says so, and the answer which element, which values and which step."""
    # the other kernel leaves out the second column of blocks of the third row of steps
    changed = other(
        tmp_path,
        "return %i, %j : i32, i32\n  }\n  func.func @transform_1(%i: i32, %j: i32) -> (i32, i32) {\n    return %i, %j",
        "return %i, %j : i32, i32\n  }\n  func.func @transform_1(%i: i32, %j: i32) -> (i32, i32) {\n"
        "    %c = arith.constant 2 : i32\n    %p = arith.cmpi eq, %i, %c : i32\n    %z = arith.constant 0 : i32\n"
        "    %k = arith.select %p, %z, %j : i32\n    return %i, %k",
    )
    arguments = ["--bounds=5", "--input=1=ones", "--uninitialized=zero", f"--compare={changed}"]
    status, out, _ = run(arguments, capsys)
    assert status == 1
    assert out.splitlines() == [
        "result 0: f32[1024,256]: 1024 of 262144 elements differ",
        "  at most 2 apart, inf relative to " + changed,
        f"  first at [16, 128]: 2.0 in {DOUBLE}, 0.0 in {changed}",
        f"  {DOUBLE}: step (2, 1) of 'double' wrote it last",
        f"  {changed}: the grid point is not known: no step of 'double' wrote it",
    ]
    document = json.loads(run([*arguments, "--format=json"], capsys)[1])
    assert document["compare"][0]["first"] == {
        "index": [16, 128],
        "values": [2.0, 0.0],
        "written_by": [
            {"program": str(DOUBLE), "kernel": "double", "step": [2, 1]},
            {"program": changed, "unknown": "no step of 'double' wrote it"},
        ],
    }
    assert run([*arguments, "--atol=2"], capsys)[0] == 0


def test_passes_against_the_program_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """A rewritten program computes the same, and the two are told apart by name."""
    arguments = ["--bounds=99", "-p=partition-cores,pack-kernels", "--target=v5p", f"--compare={DOUBLE}", "--time=1"]
    status, out, err = run(arguments, capsys)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "result 0: f32[1024,256]: equal"
    assert [lines[1], lines[4]] == [f"{DOUBLE} after -p", str(DOUBLE)]


def test_difference_between_programs_that_do_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Programs with other arguments or results are no pair."""
    path = tmp_path / "other.mlir"
    path.write_text(program([4, 2], "return %i0, %i1 : i32, i32"))
    status, out, err = run(["--bounds=5", f"--compare={path}"], capsys)
    assert (status, out) == (2, "")
    assert err.splitlines() == [
        f"{path}: error: the programs can't be compared: one takes other arrays than the other",
        f"note: {DOUBLE} takes i32[], f32[1024,256]",
        f"note: {path} takes f32[32,256]",
    ]
    path.write_text(DOUBLE.read_text().replace("-> tensor<1024x256xf32> {", "-> tensor<i32> {")
                    .replace("return %0 : tensor<1024x256xf32>", "return %n : tensor<i32>"))  # fmt: skip
    _, _, err = run(["--bounds=5", f"--compare={path}"], capsys)
    assert err.splitlines()[0].endswith("the programs can't be compared: one returns other arrays than the other")


def test_options_reach_the_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    """Memory that nobody wrote is what the option says."""
    counts = []
    for flag in ("--uninitialized=nan", "--uninitialized=zero"):
        counts.append(json.loads(run(["--bounds=0", "--format=json", flag], capsys)[1])["results"][0]["nan"])
    assert counts == [1024 * 256, 0]


def test_an_error_in_the_program_is_diagnosed(capsys: pytest.CaptureFixture[str]) -> None:
    """A native pass that refuses the program ends the tool with 1, after MLIR's own message."""
    status, out, err = run(["--bounds=5", "-p=mosaic-serde{serialize=true target-version=99}"], capsys)
    assert (status, out) == (1, "")
    assert "error: " in err


def test_tool_is_supervised(tmp_path: Path) -> None:
    """Damaged bytecode that crashes MLIR is a message."""
    path = tmp_path / "a.mlirbc"
    path.write_bytes(b"ML\xefR" + bytes(range(200)))
    done = subprocess.run([*COMMAND, str(path)], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"{path}: error: ")
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists a process's children")
def test_interrupt_of_a_program_that_runs(tmp_path: Path) -> None:
    """An interrupt ends a program that XLA runs, at once and in silence."""
    path = tmp_path / "forever.mlir"
    path.write_text("""func.func @main() -> tensor<i32> {
      %c = stablehlo.constant dense<0> : tensor<i32>
      %0 = stablehlo.while(%v = %c) : tensor<i32> cond {
        %1 = stablehlo.compare GE, %v, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      } do {
        %m = stablehlo.constant dense<1023> : tensor<i32>
        %1 = stablehlo.subtract %m, %v : tensor<i32>
        %2 = stablehlo.and %1, %m : tensor<i32>
        stablehlo.return %2 : tensor<i32>
      }
      return %0 : tensor<i32>
    }""")
    tool = subprocess.Popen([*COMMAND, str(path)], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        wait_for_work(tool.pid)
        tool.send_signal(signal.SIGINT)
        out, err = tool.communicate(timeout=60)
    finally:
        tool.kill()
        tool.communicate()
    assert (tool.returncode, out, err) == (130, b"", b"")


def wait_for_work(pid: int) -> None:
    """Waits until the tool's child has worked for eight seconds: more than it takes to get to a small program."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for listed in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in listed.read_text().split():
                ticks = int(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11])
                if ticks > 8 * os.sysconf("SC_CLK_TCK"):
                    return
        time.sleep(0.05)
    pytest.fail("the program never ran")


def test_jax_is_not_imported() -> None:
    """Running a program takes no JAX."""
    code = "import sys; from mosaic_grid.runner.main import main; assert main() == 0; sys.exit('jax' in sys.modules)"
    command = [sys.executable, "-P", "-c", code, str(DOUBLE), "--bounds=3", f"--compare={DOUBLE}"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a", "--time", "b"], "the program to run is given 2 times: 'a' and 'b'"),
        (["a", "--compile=v5p"], "unknown flag '--compile'"),
        (["--time", "-"], ""),
        (["-time=3", "a", "-bounds", "3"], ""),
        (["--", "-a"], ""),
        (["-", "--compare", "-"], "standard input can be read only once, and '-' is given twice"),
        (["a", "--input"], "--input: expected one argument"),
        (["a", "--precision=f64"], "--precision: expects 'f32' or 'bf16', got 'f64'"),
        (["a", "--atol=nan", "--compare=a"], "--atol: expects a number >= 0, got 'nan'"),
        (["a", "--cores-interleaved=x"], "--cores-interleaved: expects an integer >= 0, got 'x'"),
        (["a", "--target=v5x"], "unknown target 'v5x'; did you mean 'v5p'?"),
    ],
)
def test_command_lines(arguments: list[str], message: str) -> None:
    """Flags with optional values take no argument after them, and a wrong line is one message."""
    if message:
        with pytest.raises(UserError) as caught:
            parse_command_line(arguments)
        assert caught.value.message == message
    else:
        parse_command_line(arguments)


@pytest.mark.parametrize(
    ("arguments", "note"),
    [
        (["a", "--time", "5"], "the number of runs of --time is given as --time=N"),
        (["a", "--summary"], "mosaic-opt has it: see mosaic-opt --help"),
    ],
)
def test_next_step_of_a_wrong_command_line(arguments: list[str], note: str) -> None:
    """A likely mistake has a note that says what to write."""
    with pytest.raises(UserError) as caught:
        parse_command_line(arguments)
    assert note in caught.value.notes


def test_what_is_said_beside_the_results(capsys: pytest.CaptureFixture[str]) -> None:
    """NaN that may be memory nobody wrote, a target without passes and a clean check are told on standard error."""
    unwritten = (
        "note: memory that nobody wrote holds NaN, for integers the least number: if the results shouldn't have that, "
        "--check says where it comes from\n"
    )
    assert run(["--bounds=3"], capsys)[2] == unwritten
    assert run(["--bounds=3", "--uninitialized=zero"], capsys)[2] == ""
    assert run(["--bounds=128"], capsys)[2] == ""
    assert run(["--bounds=128", "--check"], capsys)[::2] == (0, "remark: check: nothing found\n")
    said = run(["--bounds=128", "--target=v5p"], capsys)[2]
    assert said == "warning: --target is for the passes of -p, which are not given\n"
    assert "nothing found" not in run(["--bounds=3", "--check"], capsys)[2]


def test_help_shows_how_time_takes_its_value(capsys: pytest.CaptureFixture[str]) -> None:
    """Its value comes after an equals sign, and in no other way."""
    assert main.main(["--help"]) == 0
    said = capsys.readouterr().out
    assert "  --time[=N] " in said
    assert "--time N" not in said


def test_values_of_flags() -> None:
    """What is asked for is read as it was meant."""
    found = parse_command_line(["a", "--time", "--rtol=1e-3", "--compare=b", "--input=x=1", "--input", "y=2"])
    assert (found.runs, found.other, found.tolerance.relative, found.tolerance.absolute) == (5, "b", 1e-3, 0)
    assert found.given.inputs == ("x=1", "y=2")
    assert not found.tolerance.exact
