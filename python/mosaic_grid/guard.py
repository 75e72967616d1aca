"""Damaged bytecode can abort MLIR, or keep it busy for ever: a child process tries it before it is read in this one.

MLIR's reader checks much, but neither it nor the dialects' readers check everything: a flipped bit can end the process.
Two ways around that:

- `check_bytecode` reads the bytes in a forked child first. All bodies of a program share one fork.
- under `supervisor.supervise` the whole tool runs in a child already: nothing has to be read twice.

A fork copies only the thread that forks: a lock another thread holds stays locked in the child. The threads of MLIR's
own pools are idle then, but those of JAX or of the user may not be: a small server process forks in our stead. It is
also asked before anybody is told of a crash.
"""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import os
import resource
import select
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence

from jaxlib.mlir import ir

from mosaic_grid import supervisor
from mosaic_grid.context import create_context
from mosaic_grid.errors import Place, UserError

Prepare = Callable[[ir.Context, bytes], None]
"""What will be done with a body; a function of a module, so that another process can find it by its name."""

SECONDS = 10.0
"""How long a child may take, and a second more for every `BYTES_A_SECOND` of bytecode."""
BYTES_A_SECOND = 100_000
_MEMORY = 8 << 30
_STATM = "/proc/self/statm"


CRASHES = "the bytecode crashes MLIR's reader: truncated or corrupted"
HANGS = "the bytecode hangs MLIR's reader: truncated or corrupted"


@dataclasses.dataclass(frozen=True)
class Crash:
    """The body, by its index, that a child did not survive."""

    index: int
    hung: bool

    @property
    def message(self) -> str:
        """What to tell the user about the body's owner."""
        return HANGS if self.hung else CRASHES


def check_bytecode(bodies: Sequence[bytes], prepare: Prepare, names: Sequence[str | Place]) -> None:
    """Raises `UserError` at the first of `bodies` that MLIR does not survive; `names` say where each of them is.

    Bodies that MLIR refuses in an orderly way pass: the caller meets the same error, and can say more about it. A child
    that survives proves nothing where memory was overwritten; against what is known to do that see `containers.tables`,
    against all else only the supervisor helps.
    """
    if crash := first_crash(bodies, prepare):
        where = names[crash.index]
        raise UserError(crash.message, where if isinstance(where, Place) else Place(where))


def first_crash(bodies: Sequence[bytes], prepare: Prepare) -> Crash | None:
    """The first body that ends a process which calls `prepare(context, body)`, or never lets it finish.

    `None` at once where this process is supervised.
    """
    if supervisor.active() or not bodies:
        return None
    seconds = SECONDS + sum(map(len, bodies)) / BYTES_A_SECOND
    if _may_fork() or not sys.executable:
        crash = try_in_child(bodies, prepare, seconds)
        if crash is None or not sys.executable:
            return crash
        # a thread of MLIR's pool that was just starting may have held a lock: somebody without threads has to see it
    from mosaic_grid import guard_server

    return guard_server.ask(bodies, prepare, seconds)


@contextlib.contextmanager
def reading(name: str, size: int) -> Iterator[None]:
    """Around reading `size` bytes of bytecode in this process: tells the supervisor, if there is one, whom to blame."""
    with supervisor.activity(name, SECONDS + size / BYTES_A_SECOND):
        yield


def try_in_child(bodies: Sequence[bytes], prepare: Prepare, seconds: float) -> Crash | None:
    """Forks, and has the child prepare one body after another within `seconds`."""
    read_end, write_end = os.pipe()
    with warnings.catch_warnings():
        # "Multi-threaded, use of fork() may lead to deadlocks": see above for why these threads are harmless.
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        try:
            os.close(read_end)
            _child(bodies, prepare, write_end)
        finally:
            os._exit(1)
    os.close(write_end)
    try:
        begun, hung = _watch(read_end, time.monotonic() + seconds)
    except BaseException:
        _kill(child)
        raise
    finally:
        os.close(read_end)
    if hung:
        _kill(child)
        return Crash(max(0, begun - 1), hung=True)
    _, status = os.waitpid(child, 0)
    return Crash(max(0, begun - 1), hung=False) if status else None


def _child(bodies: Sequence[bytes], prepare: Prepare, progress: int) -> None:
    """Writes a byte to `progress` before each body; exits with 0 after the last."""
    faulthandler.disable()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    _limit_memory()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    context = create_context()
    context.enable_multithreading(False)
    for body in bodies:
        os.write(progress, b".")
        # What MLIR refuses, it will refuse in the parent too. Any other exception (a size too large to allocate) is no
        # refusal: it leaves this function, and the child exits with 1.
        with contextlib.suppress(ir.MLIRError):
            prepare(context, body)
    os._exit(0)


def _limit_memory() -> None:
    """A damaged size must not make the machine swap: an allocation beyond the limit fails, which ends the child."""
    if not os.path.exists(_STATM):
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open(_STATM, encoding="ascii") as statm:
        pages = int(statm.read().split()[0])
    limit = pages * resource.getpagesize() + _MEMORY
    if hard == resource.RLIM_INFINITY or limit < hard:
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _watch(progress: int, deadline: float) -> tuple[int, bool]:
    """How many bodies the child began, and whether it was still at it when the time was up."""
    begun = 0
    while True:
        ready, _, _ = select.select([progress], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return begun, True
        said = os.read(progress, 4096)
        if not said:
            return begun, False
        begun += len(said)


def _kill(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _may_fork() -> bool:
    """Whether no thread but this one can hold a lock: XLA's runtime, once loaded, runs threads of its own."""
    return threading.active_count() == 1 and "jaxlib._jax" not in sys.modules
