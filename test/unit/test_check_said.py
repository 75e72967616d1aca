"""What a kernel's author has it check and print."""

from __future__ import annotations

import io
from typing import Any

import jax.numpy as jnp
import pytest
from checked_kernels import Said, call, findings, lowered, rows
from jax.experimental import pallas as pl

import mosaic_grid
from mosaic_grid.cpu import faults
from mosaic_grid.runner import findings as told
from mosaic_grid.runner import progress

X = rows(32)
STEPS = (lambda i: (i, 0), lambda i: (i, 0))


def checking(limit: int) -> Any:
    """A kernel that checks its index."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        pl.debug_check(pl.program_id(0) < limit, "the index is too large")
        o_ref[...] = x_ref[...]

    return call(kernel, (32, 128), (4,), maps=STEPS)


def test_a_check_of_the_authors_own() -> None:
    """One that fails is an error with its message, at its line; one that holds, or isn't lowered, says nothing."""
    with pl.enable_debug_checks():
        assert findings(checking(4), X) == []
        (found,) = findings(checking(2), X)
        text = lowered(checking(2), X)
    assert found == Said(
        "failed-check",
        "error",
        "'kernel' fails a check of its own: the index is too large, first at grid point (2), 2 times in all",
        'pl.debug_check(pl.program_id(0) < limit, "the index is too large")',
    )
    assert findings(checking(2), X) == []
    mosaic_grid.run(text, X)
    with pytest.raises(mosaic_grid.KernelError, match="the index is too large"):
        mosaic_grid.run(text, X, check=True)


def test_a_kernel_that_prints() -> None:
    """It is a remark with the numbers of the first time, in their places or behind the text."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        @pl.when(pl.program_id(0) > 0)
        def _() -> None:
            i = pl.program_id(0)
            pl.debug_print("step {} of {}", i, jnp.int32(7))
            pl.debug_print("x is", x_ref[0, 1])
            pl.debug_print("here")

        o_ref[...] = x_ref[...]

    found = findings(call(kernel, (32, 128), (4,), maps=STEPS), X)
    assert [(each.name, each.severity) for each in found] == [("kernel-print", "remark")] * 3
    assert [each.message for each in found] == [
        f"'kernel' prints {text!r}, first at grid point (1), 3 times in all"
        for text in ("step 1 of 7", "x is 1025.0", "here")
    ]
    assert found[1].source == 'pl.debug_print("x is", x_ref[0, 1])'


def test_numbers_in_a_text() -> None:
    """Each goes where its place is, once or more; of places without a number nothing is made."""
    said = faults.Said("$s1 $s0 $s10 $s1", (False, True))
    assert told.printed(said, [3, 0x3FC00000]) == "1.5 3 $s10 1.5"


class Terminal(io.StringIO):
    """Text that goes to a terminal."""

    def isatty(self) -> bool:
        """It does."""
        return True


def test_the_line_of_a_long_run() -> None:
    """What a run is at stands in one line of a terminal, which is empty in the end; elsewhere there is nothing."""
    terminal, file = Terminal(), io.StringIO()
    for err in (terminal, file):
        with progress.shown(err) as tell:
            tell("one")
            tell("two")
    assert terminal.getvalue() == "\r\x1b[Kone ...\r\x1b[Ktwo ...\r\x1b[K"
    assert file.getvalue() == ""
