"""Runs the whole tool in a child, so that an abort inside MLIR becomes a message instead of a core dump.

It costs one fork of a small process, before anything heavy is imported, and makes reading bytecode twice unnecessary.
What the child is reading stands in a page it shares with its parent, for the message. The child ends with its parent,
whatever ends that.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import mmap
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from mosaic_grid.errors import Place, UserError

_NAME_BYTES = 4000
_READING, _READ = b"?", b"!"
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What asks a process to end, and leaves it time to."""
_CLEANING_SECONDS = 10.0
_PR_SET_PDEATHSIG = 1
_page: mmap.mmap | None = None


def supervise(work: Callable[[], int]) -> int:
    """Calls `work` in a child process and returns its exit status.

    Raises `UserError` if the child died while, or after, it read the bytecode that `activity` names; returns 128 + the
    signal, as a shell does, if it read none. Call it before any thread exists: before `jaxlib` is imported.
    """
    global _page
    page = mmap.mmap(-1, mmap.PAGESIZE)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _page = page
        _end_with(parent)
        os._exit(_status_of(work))
    status = _wait(child)
    reading = page[0] == _READING[0]
    name = page[1 : page.find(b"\0", 1)].decode("utf-8", "replace")
    page.close()
    if not os.WIFSIGNALED(status):
        return os.waitstatus_to_exitcode(status)
    number = os.WTERMSIG(status)
    if not name or number in (*_ENDING, signal.SIGPIPE):
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


@contextlib.contextmanager
def unwinding() -> Iterator[None]:
    """In the body of the `with`, a signal that asks the tool to end becomes an exception, so that files are cleaned up.

    The processes it has started are killed, as threads may wait for them, and then it ends by that signal after all.
    Elsewhere such a signal ends the tool at once: Python would look at it only when C++ returns. Nothing happens to the
    signals of a process that isn't supervised.
    """
    if _page is None:
        yield
        return

    def unwind(number: int, _frame: object) -> None:
        for each in previous:
            signal.signal(each, signal.SIG_IGN)
        threading.Thread(target=_kill_children_for_ever, daemon=True).start()
        raise _Ended(number)

    previous = _heeded()
    try:
        for each in previous:
            signal.signal(each, unwind)
        yield
    except _Ended as ended:
        # a thread that was just being started is not waited for by what started it
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join(_CLEANING_SECONDS)
        signal.signal(ended.number, signal.SIG_DFL)
        os.kill(os.getpid(), ended.number)
        raise
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)


def _heeded() -> dict[signal.Signals, signal.Handlers | Callable[..., object]]:
    """The handlers of those signals that ask for an end and aren't ignored, as `nohup` has it."""
    handlers = {each: signal.getsignal(each) for each in _ENDING}
    return {each: h for each, h in handlers.items() if callable(h) or h is signal.SIG_DFL}


class _Ended(BaseException):
    """The tool was asked to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _kill_children_for_ever() -> None:
    """Kills what this process has started and still starts, where the kernel lists that."""
    while True:
        for listed in Path("/proc/self/task").glob("*/children"):
            # a thread or a child may end meanwhile
            with contextlib.suppress(OSError):
                for child in listed.read_text().split():
                    os.kill(int(child), signal.SIGKILL)
        time.sleep(0.02)


def _end_with(parent: int) -> None:
    """Has the kernel end this process when its parent ends; only Linux can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(128 + signal.SIGKILL)


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

    previous = _heeded()
    try:
        for each in previous:
            signal.signal(each, hand_on)
        return os.waitpid(child, 0)[1]
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)


def _note(state: bytes, name: str) -> None:
    assert _page is not None
    data = state + name.encode("utf-8", "replace")[:_NAME_BYTES] + b"\0"
    _page[: len(data)] = data
