"""Reproducers: what is written is what is read back, the file is new and whole, and the error says where it is."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jaxlib.mlir import ir

from mosaic_grid.context import create_context
from mosaic_grid.errors import UserError
from mosaic_grid.reproducer import (
    InternalError,
    Reproducer,
    flags_of,
    format_reproducer,
    read_reproducer,
    summary,
    write_reproducer,
)
from mosaic_grid.targets import parse_target

PROGRAM = """\
module {
  func.func @f() -> tensor<2xi32> {
    %0 = arith.constant dense_resource<blob> : tensor<2xi32>
    return %0 : tensor<2xi32>
  }
}
{-#
  dialect_resources: {
    builtin: {
      blob: "0x040000000100000002000000"
    }
  }
#-}
"""


@given(st.text(), st.lists(st.text()).map(tuple), st.booleans(), st.text())
def test_round_trip(pipeline: str, flags: tuple[str, ...], verify: bool, failure: str) -> None:
    """Pipeline and flags come back as they were, whatever they hold; the program comes back with the header."""
    text = format_reproducer(Reproducer(PROGRAM, pipeline, flags, verify), failure)
    read = read_reproducer(text, "r.mlir")
    assert (read.pipeline, read.flags, read.verify) == (pipeline, flags, verify)
    assert read.program.rstrip().endswith(PROGRAM.rstrip())


def test_the_file_is_mlir() -> None:
    """MLIR parses the file as it is, records, resources and all, and it has the lines that a reader looks for."""
    text = format_reproducer(Reproducer(PROGRAM, "builtin.module(cse)", ("--target=v5p",)), "the pass 'x' failed:\nodd")
    modules = []
    for each in (text, PROGRAM):  # a context each: resources of the same name would be renamed
        with create_context():
            modules.append(str(ir.Operation.parse(each)))
    assert modules[0] == modules[1]
    assert text.startswith("// the pass 'x' failed: odd\n// rerun with: mosaic-opt --run-reproducer FILE\nmodule {\n")
    assert '      pipeline: "builtin.module(cse)",\n' in text
    assert '      flags: "--target=v5p"\n' in text


def test_reproducer_of_mlir_opt() -> None:
    """A reproducer that MLIR's own tool wrote is read too; it has no flags."""
    record = """
{-#
  external_resources: {
    mlir_reproducer: {
      pipeline: "builtin.module(any(cse))",
      disable_threading: true,
      verify_each: false
    }
  }
#-}
"""
    read = read_reproducer(f"module {{\n}}\n{record}", "r.mlir")
    assert read == Reproducer("module {\n}\n\n", "builtin.module(any(cse))", (), False)


@pytest.mark.parametrize("text", ["", "module {}", PROGRAM, PROGRAM + "{-# external_resources: { mlir_reproducer: {"])
def test_not_a_reproducer(text: str) -> None:
    """Another file, or a truncated one, is refused with a message that says what is missing."""
    with pytest.raises(UserError) as caught:
        read_reproducer(text, "r.mlir")
    assert str(caught.value) == (
        "error: r.mlir is not a reproducer: it does not end with an 'mlir_reproducer' record\n"
        "note: give the file that an internal failure has written"
    )


def test_files_are_new(tmp_path: Path) -> None:
    """Two reproducers are two files, nothing else is left in the directory, and each can be read by others."""
    reproducer = Reproducer("module {}", "builtin.module(cse)")
    paths = [write_reproducer(reproducer, "odd", tmp_path) for _ in range(2)]
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    for path in paths:
        assert path.match("mosaic-opt-reproducer-*.mlir")
        assert path.read_text() == format_reproducer(reproducer, "odd")
    mask = os.umask(0)
    os.umask(mask)
    assert paths[0].stat().st_mode & 0o777 == 0o666 & ~mask


def test_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk is full the error is passed on and no half of a file stays."""

    def full(self: Path, text: str, encoding: str) -> int:
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        write_reproducer(Reproducer("module {}", ""), "odd", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_message_of_an_internal_error() -> None:
    """The error names the pass and the cause in one line, and then the command that reruns it."""
    path = Path("a dir/r.mlir")
    assert str(InternalError("resolve-grid", path, KeyError("x"))) == (
        "error: internal failure in the pass 'resolve-grid': KeyError: 'x'\n"
        "note: this is a bug in mosaic-opt; 'mosaic-opt --run-reproducer "
        f"{shlex.quote(str(path))}' reproduces it, please report it with that file"
    )
    assert str(InternalError("cse", None, ValueError(), "Permission denied: out")) == (
        "error: internal failure in the pass 'cse': ValueError\n"
        "note: this is a bug in mosaic-opt; its reproducer could not be written: Permission denied: out"
    )


def test_summary() -> None:
    """A cause is one line, the first that says something."""
    assert summary(ValueError("\n  two\nlines")) == "ValueError: two"
    assert summary(AssertionError()) == "AssertionError"


def test_flags() -> None:
    """The flags make the same session again."""
    assert flags_of(None, ()) == ()
    assert flags_of(parse_target("v5p:1"), ("flash*", "gmm")) == ("--target=v5p:1", "--kernel=flash*", "--kernel=gmm")
