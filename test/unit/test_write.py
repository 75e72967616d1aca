"""Writing: the file is the old one or the new one, and nothing else is left behind."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path

import pytest
from jaxlib.mlir import ir

from mosaic_grid.context import create_context
from mosaic_grid.errors import UserError
from mosaic_grid.write import write_atomically, write_bytecode, write_text

SOURCE = 'module {\n  func.func @f() {\n    return loc("a.py":1:2)\n  }\n}\n'


@pytest.fixture
def module() -> ir.Operation:
    """A small program."""
    return ir.Module.parse(SOURCE, context=create_context()).operation


def test_text_ends_with_one_line_break(module: ir.Operation) -> None:
    """Without locations unless they are asked for."""
    assert write_text(module) == "module {\n  func.func @f() {\n    return\n  }\n}\n"
    assert 'loc("a.py":1:2)' in write_text(module, debuginfo=True)
    assert write_text(module, debuginfo=True).endswith("\n")


def test_bytecode_reads_back_with_its_locations(module: ir.Operation) -> None:
    """The same text, locations included."""
    again = ir.Module.parse(write_bytecode(module), context=module.context)
    assert again.operation.get_asm(enable_debug_info=True) == module.get_asm(enable_debug_info=True)


def test_a_new_file_gets_the_usual_mode(tmp_path: Path) -> None:
    """What `open` would have given it, not the private mode of a temporary file."""
    path = tmp_path / "out"
    (tmp_path / "plain").touch()
    write_atomically(str(path), "text é")
    assert path.read_bytes() == "text é".encode()
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_an_existing_file_keeps_its_mode(tmp_path: Path) -> None:
    """Replaced, and still executable by the group only."""
    path = tmp_path / "out"
    path.write_text("old")
    path.chmod(0o610)
    write_atomically(str(path), b"new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o610


def test_a_symbolic_link_keeps_pointing(tmp_path: Path) -> None:
    """The file it points to is written, in that file's directory; a dangling link makes its target."""
    (tmp_path / "d").mkdir()
    for name in ("there", "dangling"):
        (tmp_path / name).symlink_to(Path("d") / name)
    (tmp_path / "d" / "there").write_text("old")
    for name in ("there", "dangling"):
        write_atomically(str(tmp_path / name), "new")
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "d" / name).read_text() == "new"


def test_a_relative_path_without_a_directory_is_written_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-o out` in the working directory."""
    monkeypatch.chdir(tmp_path)
    write_atomically("out", "new")
    assert os.listdir(tmp_path) == ["out"]


def test_dash_is_standard_output() -> None:
    """No file of that name."""
    stdout = io.BytesIO()
    write_atomically("-", "text", stdout)
    assert stdout.getvalue() == b"text"
    assert not os.path.exists("-")


def test_a_device_is_written_to_and_not_replaced() -> None:
    """`-o /dev/null` must not make a regular file of it."""
    write_atomically(os.devnull, "text")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    """A named pipe has a reader that waits for the data."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(str(path), "text")
        assert os.read(reader, 100) == b"text"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing/out", "can't write the output: no such file or directory"),
        ("file/out", "can't write the output: not a directory"),
        ("dir", "can't write the output: is a directory"),
    ],
)
def test_where_nothing_can_be_written_is_an_error(tmp_path: Path, path: str, message: str) -> None:
    """At the path, with the system's reason."""
    (tmp_path / "file").touch()
    (tmp_path / "dir").mkdir()
    with pytest.raises(UserError) as caught:
        write_atomically(str(tmp_path / path), "text")
    assert str(caught.value) == f"{tmp_path / path}: error: {message}"


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "^C"])
def test_a_failure_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    """Neither half a file nor a temporary one stays, whatever ends the writing."""

    def fail(*_: object) -> None:
        raise failure

    path = tmp_path / "out"
    path.write_text("old")
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises((UserError, KeyboardInterrupt)) as caught:
        write_atomically(str(path), "new")
    assert os.listdir(tmp_path) == ["out"]
    assert path.read_text() == "old"
    if isinstance(failure, OSError):
        assert str(caught.value) == f"{path}: error: can't write the output: no space left on device"


def test_a_closed_pipe_is_not_an_error_of_ours() -> None:
    """`mosaic-opt x | head` ends quietly: the caller gets the exception as it is."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb", buffering=0) as stdout, pytest.raises(BrokenPipeError):
        write_atomically("-", "text", stdout)
