"""A process without threads that forks for us: started when first asked, once, and gone when we are."""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import cast

from mosaic_grid.guard import Crash, Prepare, try_in_child

_lock = threading.Lock()
_server: subprocess.Popen[bytes] | None = None


def ask(bodies: Sequence[bytes], prepare: Prepare, seconds: float) -> Crash | None:
    """`guard.try_in_child`, done by the server. `prepare` must be a function of an importable module."""
    with _lock:
        server = _running()
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            pickle.dump((list(bodies), prepare, seconds), server.stdin)
            server.stdin.flush()
            return cast("Crash | None", pickle.load(server.stdout))
        except BaseException:
            # A question without its answer would be answered to the next asker.
            stop()
            raise


def stop() -> None:
    """Ends the server; the next question starts another."""
    global _server
    if _server is not None:
        _server.kill()
        _server.communicate()
        _server = None


def serve() -> None:
    """The server: answers questions from standard input on standard output until there are no more."""
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            bodies, prepare, seconds = pickle.load(questions)
        except EOFError:
            return
        pickle.dump(try_in_child(bodies, prepare, seconds), answers)
        answers.flush()


def _running() -> subprocess.Popen[bytes]:
    global _server
    if _server is None or _server.poll() is not None:
        stop()
        command = [sys.executable, "-c", "from mosaic_grid.guard_server import serve; serve()"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        # A group of its own: an interrupt from the terminal is for us, and we tell the server.
        _server = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        atexit.register(stop)
    return _server
