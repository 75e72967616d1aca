"""The tool as a process: its exit codes, its streams, and what it must not import."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mosaic_grid import opt
from mosaic_grid.errors import UserError

SOURCES = Path(opt.__file__).parent.parent
DOUBLE = Path(__file__).parent.parent / "tool" / "Inputs" / "double.mlir"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCES)}
COMMAND = [sys.executable, "-P", "-m", "mosaic_grid.opt"]


def shell(script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a script in which `$OPT` is the tool, split into words."""
    environment = {**ENVIRONMENT, "OPT": " ".join(COMMAND), "DOUBLE": str(DOUBLE), **variables}
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize("arguments", ["--help", "--list-passes", "--version", "$DOUBLE", "$DOUBLE --summary"])
def test_reader_that_goes_away(arguments: str) -> None:
    """A closed pipe, before or while the tool writes, is no failure and nothing is said."""
    done = shell(f"$OPT {arguments} | true; echo ${{PIPESTATUS[0]}}")
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_reader_of_errors_that_goes_away() -> None:
    """Neither is one that doesn't want the messages."""
    done = shell("$OPT missing missing missing 2>&1 >/dev/null | true; echo ${PIPESTATUS[0]}")
    assert done.stderr == ""
    assert done.stdout in ("0\n", "2\n")  # as the messages are written before or after the reader has gone


@pytest.mark.parametrize(
    "arguments", ["--help", "--version", "$DOUBLE", "$DOUBLE --summary", "$DOUBLE --emit=bytecode"]
)
def test_full_disk(arguments: str) -> None:
    """Standard output that can't be written is an error in a line."""
    done = shell(f"$OPT {arguments} > /dev/full")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("error: can't write the output: no space left on device")


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_closed_streams(closed: str) -> None:
    """A stream that isn't there is an error in a line."""
    done = shell(f"$OPT - {closed}")
    assert done.returncode == 2
    assert done.stderr == "error: standard input or output is closed\nnote: use /dev/null\n"


def test_interrupt(tmp_path: Path) -> None:
    """An interrupt ends the tool in silence, with the exit code that shells give to it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [*COMMAND, str(pipe)]
    tool = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    # opening it waits for the tool to open it, and the tool then waits for something to read
    with pipe.open("wb"):
        tool.send_signal(signal.SIGINT)
        out, err = tool.communicate(timeout=60)
    assert (tool.returncode, out, err) == (130, b"", b"")


def children_of(pid: int) -> list[int]:
    """The processes that a process has started."""
    listed = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in listed for child in file.read_text().split()]


def wait_for(condition: Callable[[], object]) -> bool:
    """Whether it came true in a minute."""
    end = time.monotonic() + 60
    while not (true := condition()) and time.monotonic() < end:
        time.sleep(0.01)
    return bool(true)


def ended(pid: int) -> bool:
    """Whether a process runs no more; one that nobody has waited for yet doesn't run either."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.fixture
def heard() -> Iterator[None]:
    """The tests may run under `nohup`, which hands on that its signal is ignored: a child is to have it as usual."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("heard")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent has ended")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_is_left_running(number: signal.Signals, tmp_path: Path) -> None:
    """Whatever ends the tool ends the process that works for it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    tool = subprocess.Popen(
        [*COMMAND, str(pipe)],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with pipe.open("wb"):
        (child,) = children_of(tool.pid)
        tool.send_signal(number)
        out, err = tool.communicate(timeout=60)
        assert wait_for(lambda: ended(child))
    assert tool.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert (out, err) == (b"", b"")


@pytest.mark.libtpu
@pytest.mark.usefixtures("heard")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent has ended")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGINT])
def test_a_compilation_cleans_up(number: signal.Signals, tmp_path: Path) -> None:
    """Neither the compiler nor its files outlive the tool, and nothing is printed."""
    tool = subprocess.Popen(
        [*COMMAND, str(DOUBLE), "--compile=v5p,v5e"],
        env={**ENVIRONMENT, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert wait_for(lambda: any(children_of(child) for child in children_of(tool.pid)))
    (child,) = children_of(tool.pid)
    compilers = children_of(child)
    tool.send_signal(number)
    assert tool.communicate(timeout=60) == (b"", b"")
    assert wait_for(lambda: all(map(ended, (child, *compilers))))
    assert list(tmp_path.iterdir()) == []


def test_run_as_a_module() -> None:
    """`python -m mosaic_grid` is the tool."""
    command = [sys.executable, "-P", "-m", "mosaic_grid", "--list-passes"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (done.returncode, "partition-cores" in done.stdout, done.stderr) == (0, True, "")


def test_ascii_terminal() -> None:
    """A locale without Unicode changes no program, and no message fails for it."""
    program = 'module attributes {a.b = "\\C3\\A9"} {} loc("\u00e9.py":1:1)'
    done = subprocess.run(
        [*COMMAND, "-", "\u00e9"],
        input=program.encode(),
        capture_output=True,
        env={**ENVIRONMENT, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"},
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == b'module attributes {a.b = "\\C3\\A9"} {\n}\n'
    assert b"error: can't read the input: no such file or directory" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        "--version",
        "--help",
        "$DOUBLE",
        "$DOUBLE -p resolve-grid,partition-cores --summary",
        "packed.mlir -p resolve-grid",
        "odd.mlir --allow-unregistered-dialect",
    ],
)
def test_jax_is_not_imported(arguments: str, tmp_path: Path) -> None:
    """Neither the tool nor MLIR's bindings on its behalf import JAX, which takes longer than all the rest."""
    (tmp_path / "odd.mlir").write_text('"tast.op"() : () -> ()')
    assert shell(f"cd {tmp_path} && $OPT $DOUBLE -p pack-kernels -o packed.mlir").returncode == 0
    code = "import sys; from mosaic_grid.opt import main; assert main() == 0; sys.exit('jax' in sys.modules)"
    done = shell(f'cd {tmp_path} && {sys.executable} -P -c "{code}" {arguments}')
    assert (done.returncode, done.stderr.replace("\n", "")) == (0, "")


def test_nothing_to_open(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Somebody who types the bare command is not left waiting for input."""
    monkeypatch.setattr("mosaic_grid.command_line.wants_help", lambda arguments: not arguments)
    assert opt.main([]) == 2
    assert capsys.readouterr().err == "error: there is nothing to open\nnote: give a dump, or --help\n"


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (UserError("bad"), 2, "error: bad\n"),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(), 0, ""),
        (OSError(28, "No space left on device"), 2, "error: can't write the output: no space left on device\n"),
        (ValueError("odd"), 70, "error: internal failure in the command line: ValueError: odd\nnote: this is a bug"),
    ],
)
def test_exit_codes(
    raised: BaseException,
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whatever escapes ends with an exit code and a line, never with a traceback."""

    def fail(_: object) -> int:
        raise raised

    monkeypatch.setattr(opt, "_run", fail)
    assert opt.main(["x"]) == status
    assert capsys.readouterr().err.startswith(said)
