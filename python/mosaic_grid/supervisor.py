"""Runs the whole tool in a child, so that an abort inside MLIR becomes a message instead of a core dump.

It costs one fork of a small process, before anything heavy is imported, and makes reading bytecode twice unnecessary.
What the child is reading stands in a page it shares with its parent, for the message.
"""

from __future__ import annotations

import contextlib
import faulthandler
import mmap
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator

from mosaic_grid.errors import Place, UserError

_NAME_BYTES = 4000
_READING, _READ = b"?", b"!"
_page: mmap.mmap | None = None


def supervise(work: Callable[[], int]) -> int:
    """Calls `work` in a child process and returns its exit status.

    Raises `UserError` if the child died while, or after, it read the bytecode that `activity` names; returns 128 + the
    signal, as a shell does, if it read none. Call it before any thread exists: before `jaxlib` is imported.
    """
    global _page
    page = mmap.mmap(-1, mmap.PAGESIZE)
    child = os.fork()
    if child == 0:
        _page = page
        os._exit(_status_of(work))
    status = _wait(child)
    reading = page[0] == _READING[0]
    name = page[1 : page.find(b"\0", 1)].decode("utf-8", "replace")
    page.close()
    if not os.WIFSIGNALED(status):
        return os.waitstatus_to_exitcode(status)
    number = os.WTERMSIG(status)
    if not name or number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        return 128 + number
    if reading:
        verb = "hangs" if number == signal.SIGALRM else "crashes"
        raise UserError(f"the bytecode {verb} MLIR's reader: truncated or corrupted", Place(name))
    # The reader may have damaged the heap, which is noticed at some later allocation.
    died = f"died of {signal.Signals(number).name} after reading this bytecode: it may be corrupted"
    raise UserError(died, Place(name), ("if the bytecode is sound, this is a bug in mosaic-grid: please report it",))


def active() -> bool:
    """Whether this process is the child of `supervise`."""
    return _page is not None


@contextlib.contextmanager
def activity(name: str, seconds: float) -> Iterator[None]:
    """Names the bytecode being read in the body of the `with`, and how long that may take; nothing if unsupervised."""
    if _page is None:
        yield
        return
    _note(_READING, name)
    faulthandler.disable()
    # The default action of the alarm ends the process even where C++ never returns to Python.
    previous = signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        _note(_READ, name)


def _status_of(work: Callable[[], int]) -> int:
    """What Python itself would have exited with, its output flushed."""
    status = 1
    try:
        status = work()
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        # A reader that went away (`| head`) is no failure of ours.
        with contextlib.suppress(BrokenPipeError):
            stream.flush()
    return status


def _wait(child: int) -> int:
    """Waits for the child and hands on what asks it to end; an interrupt from the terminal it gets by itself, too."""

    def hand_on(number: int, _frame: object) -> None:
        os.kill(child, number)

    interrupt = signal.signal(signal.SIGINT, hand_on)
    terminate = signal.signal(signal.SIGTERM, hand_on)
    try:
        return os.waitpid(child, 0)[1]
    finally:
        signal.signal(signal.SIGINT, interrupt)
        signal.signal(signal.SIGTERM, terminate)


def _note(state: bytes, name: str) -> None:
    assert _page is not None
    data = state + name.encode("utf-8", "replace")[:_NAME_BYTES] + b"\0"
    _page[: len(data)] = data
