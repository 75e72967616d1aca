"""Damaged dumps: a clear error or a good read, never another exception, an abort or a hang.

Bytes are damaged at random, by seeds that hypothesis keeps. The guard that tries them in a child has tests of its own.
"""

from __future__ import annotations

import base64
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import dump_samples as samples
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jaxlib.mlir import ir

from mosaic_grid import guard, guard_server
from mosaic_grid.containers import bytecode, tables, untrusted
from mosaic_grid.context import create_context
from mosaic_grid.dump import read_dump
from mosaic_grid.errors import UserError

EXAMPLES = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
CONTAINERS: dict[str, Callable[[], bytes]] = {
    "text": lambda: samples.text().encode(),
    "bytecode": samples.bytecode,
    "portable": samples.portable,
    "exported": samples.exported,
    "hlo": lambda: samples.hlo().encode(),
    "kernel": samples.body,
}


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flipped bit can make MLIR count to a very large number: one second of it is enough here."""
    monkeypatch.setattr(guard, "SECONDS", 1.0)


def damaged(data: bytes, seed: int) -> bytes:
    """Cut off, or with one to five bits flipped."""
    rng = random.Random(seed)
    if rng.random() < 0.15:
        return data[: rng.randrange(len(data))]
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def read(data: bytes) -> None:
    """What the tool does with any input before its first pass; only a `UserError` may come of it."""
    try:
        module = read_dump(data, "dump", create_context()).module
        untrusted.check_kernels(module, "dump")
        untrusted.check_registered(module, "dump")
    except UserError:
        return
    assert module.verify()
    module.get_asm(enable_debug_info=True)


@pytest.mark.parametrize("container", CONTAINERS)
@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1))
def test_damaged_bytes(container: str, seed: int) -> None:
    """Every container, cut off or with flipped bits."""
    read(damaged(CONTAINERS[container](), seed))


@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1))
def test_damaged_kernels_in_a_sound_program(seed: int) -> None:
    """The base64 is right, the bytecode in it is not."""
    whole = base64.b64encode(samples.body())
    assert whole in samples.text().encode()
    read(samples.text().encode().replace(whole, base64.b64encode(damaged(samples.body(), seed))))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["custom_call_config", "body", "debug_locations", "x"])
CONFIGS = st.dictionaries(KEYS, JSON | st.dictionaries(KEYS, JSON, max_size=3), max_size=3) | JSON


@EXAMPLES
@given(config=CONFIGS)
def test_odd_json_in_a_configuration(config: object) -> None:
    """In StableHLO and in HLO: wrong types, missing fields, strange strings."""
    text = json.dumps(config)
    escaped = "".join(c if c.isalnum() else f"\\{ord(c):02x}" for c in text)
    attributes = f'{{call_target_name = "tpu_custom_call", backend_config = "{escaped}"}}'
    read(f'"stablehlo.custom_call"() {attributes} : () -> ()'.encode())
    read(samples.hlo_of(text).encode())
    read(samples.hlo_of(json.dumps(text)).encode())


@pytest.mark.parametrize("cut", range(0, 60, 3))
def test_every_short_beginning(cut: int) -> None:
    """The recognition of each container on a few bytes of it."""
    for data in CONTAINERS.values():
        read(data()[:cut])


# --- the guard ---------------------------------------------------------------------------------------------------


def prepare(_context: ir.Context, body: bytes) -> None:
    """Does what its body says; the functions a guard calls must be found by name in another process."""
    match body:
        case b"abort":
            os.abort()
        case b"exit":
            os._exit(3)
        case b"hang":
            time.sleep(60)
        case b"raise":
            raise ir.MLIRError("refused", [])
        case b"memory":
            bytearray(64 << 30)


@pytest.fixture(params=["fork", "server"])
def route(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Both ways to a child process, whatever this one has imported."""
    monkeypatch.setattr(guard, "_may_fork", lambda: request.param == "fork")
    yield request.param
    guard_server.stop()


@pytest.mark.parametrize(
    ("bodies", "message"),
    [
        ([b"fine", b"abort", b"fine"], "1: error: the bytecode crashes MLIR's reader: truncated or corrupted"),
        ([b"memory"], "0: error: the bytecode crashes MLIR's reader: truncated or corrupted"),
        ([b"exit"], "0: error: the bytecode crashes MLIR's reader: truncated or corrupted"),
        ([b"fine", b"fine", b"hang"], "2: error: the bytecode hangs MLIR's reader: truncated or corrupted"),
    ],
)
def test_the_body_that_ends_its_child_is_named(route: str, bodies: list[bytes], message: str) -> None:
    """By its index among all bodies of one fork; the process that asks lives on."""
    with pytest.raises(UserError) as caught:
        guard.check_bytecode(bodies, prepare, [str(i) for i in range(len(bodies))])
    assert str(caught.value) == message


def test_a_crash_that_only_the_fork_sees_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that a thread of this process held makes no bytecode bad: the server, without threads, is asked, too."""
    monkeypatch.setattr(guard, "_may_fork", lambda: True)
    monkeypatch.setattr(guard, "try_in_child", lambda *_: guard.Crash(0, hung=True))
    assert guard.first_crash([b"fine"], prepare) is None
    assert guard.first_crash([b"fine", b"exit"], prepare) == guard.Crash(1, hung=False)
    guard_server.stop()


def test_what_only_raises_passes(route: str) -> None:
    """The parent will meet MLIR's refusal again, and say more about it."""
    guard.check_bytecode([b"raise", b"fine"], prepare, ["a", "b"])


def test_a_group_larger_than_its_table_is_found() -> None:
    """MLIR's reader writes past an array for it and may well live on: the process died some allocations later."""
    body = bytearray(samples.body())
    start, _ = tables._section(body, tables._ATTR_TYPE_OFFSET) or (0, 0)
    announced, start = tables._varint(body, start)
    assert announced > 1
    assert not tables.overflow(body)
    _, start = tables._varint(body, start)
    _, start = tables._varint(body, start)
    body[start] = (announced + 1) << 1 | 1  # the first group's size
    assert tables.overflow(body)
    with pytest.raises(UserError, match="the bytecode crashes MLIR's reader: truncated or corrupted"):
        read_dump(bytes(body), "dump", create_context())


def test_a_sound_kernel_passes(route: str) -> None:
    """The real preparation: parse, bring into the tpu dialect, verify, print."""
    guard.check_bytecode([samples.body(), samples.bytecode()], bytecode.prepare_kernel, ["a", "b"])


def test_a_process_with_threads_does_not_fork() -> None:
    """A lock that another thread holds would stay locked in the child."""
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert not guard._may_fork()
    finally:
        done.set()
        thread.join()


def run(code: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60)


SUPERVISED = """
import os, sys, time
from mosaic_grid import supervisor
from mosaic_grid.errors import UserError
def work():
    {work}
try:
    sys.exit(supervisor.supervise(work))
except UserError as error:
    print(error)
    sys.exit(2)
"""


@pytest.mark.parametrize(
    ("work", "status", "stdout"),
    [
        ("print('out'); return 1", 1, "out\n"),
        ("print('out'); sys.exit()", 0, "out\n"),
        ("sys.exit('message')", 1, ""),
        ("raise ValueError('trace')", 1, ""),
        (
            "with supervisor.activity('user.mlir', 60): os.abort()",
            2,
            "user.mlir: error: the bytecode crashes MLIR's reader: truncated or corrupted\n",
        ),
        (
            "with supervisor.activity('user.mlir', 0.1): time.sleep(60)",
            2,
            "user.mlir: error: the bytecode hangs MLIR's reader: truncated or corrupted\n",
        ),
        (
            "with supervisor.activity('user.mlir', 60): pass\n    os.abort()",
            2,
            "user.mlir: error: died of SIGABRT after reading this bytecode: it may be corrupted\n"
            "note: if the bytecode is sound, this is a bug in mosaic-grid: please report it\n",
        ),
        ("os.abort()", 134, ""),
    ],
)
def test_a_supervised_process_survives_its_work(work: str, status: int, stdout: str) -> None:
    """The status of the work, or a message where it died while reading; any other death is a shell's 128 + signal."""
    ran = run(SUPERVISED.format(work=work))
    assert (ran.returncode, ran.stdout) == (status, stdout)
    assert ("ValueError: trace" in ran.stderr) == ("ValueError" in work)


def test_under_supervision_nothing_is_tried_twice() -> None:
    """The guard would be a second net under the first."""
    code = (
        "from mosaic_grid import guard; print(guard.first_crash([b'x'], lambda c, b: 1 / 0 if c else None)); return 0"
    )
    assert run(SUPERVISED.format(work=code)).stdout == "None\n"
