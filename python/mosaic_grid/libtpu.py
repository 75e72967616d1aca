"""Compiles a program with the real TPU compiler, no TPU attached, and reports what became of each launch.

libtpu is noisy and may abort or hang, so it runs in a child process per target (`mosaic_grid.libtpu_child`), which
tells what it knows in a file. Cores and bundles are read from libtpu's own dump.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import mosaic_grid
from mosaic_grid import libtpu_message, llo
from mosaic_grid.errors import UserError
from mosaic_grid.libtpu_child import TAG, Instruction, Job, KernelCall, Outcome
from mosaic_grid.libtpu_report import LaunchReport, ProgramReport, Status, report_json, report_line
from mosaic_grid.targets import Target

__all__ = [
    "LaunchReport",
    "ProgramReport",
    "Status",
    "compile_for",
    "compile_program",
    "libtpu_available",
    "report_json",
    "report_line",
]

DEFAULT_TIMEOUT = 300.0
_LOG_LINES = 20
_REMOVED = "XLA removed the launch: its result is unused, its branch is never taken, or an equal launch was kept"


def libtpu_available() -> bool:
    """Whether there is a libtpu to compile with; it isn't loaded to find out."""
    return bool(os.environ.get("TPU_LIBRARY_PATH")) or importlib.util.find_spec("libtpu") is not None


def compile_program(
    program: bytes, targets: Sequence[Target], *, timeout: float = DEFAULT_TIMEOUT, keep: Path | None = None
) -> tuple[ProgramReport, ...]:
    """Compiles a packed StableHLO program, text or bytecode, for each target, as many at once as there are processors.

    `timeout` is in seconds per target. `keep` is a directory that libtpu's dumps are left in, one below it per target.
    A program that doesn't compile, a compiler that aborts and one that doesn't come to an end are reports. Raises
    `UserError` where there is no libtpu, this jaxlib can't be used with it, or `program` is not a program.
    """
    if not libtpu_available():
        raise UserError(
            "libtpu is not installed, so there is no TPU compiler to ask",
            notes=["install it with: pip install 'jax[tpu]', or set TPU_LIBRARY_PATH to a libtpu.so"],
        )
    with concurrent.futures.ThreadPoolExecutor(min(len(targets), os.cpu_count() or 1) or 1) as pool:
        return tuple(pool.map(lambda target: compile_for(program, target, timeout=timeout, keep=keep), targets))


def compile_for(
    program: bytes, target: Target, *, timeout: float = DEFAULT_TIMEOUT, keep: Path | None = None
) -> ProgramReport:
    """`compile_program` for one target, where libtpu is known to be there."""
    if not target.topology:
        return _failure(target, f"libtpu has no ahead-of-time topology for {target}")
    with _directory(keep and keep / target.name.replace(":", "-")) as directory:
        job = Job(
            program=str(directory / "program.mlir"),
            topology=target.topology,
            chip_config=target.chip_config,
            dump=str(directory / "dump"),
            result=str(directory / "result.json"),
            hlo=str(directory / "hlo.txt"),
        )
        Path(job.program).write_bytes(program)
        # A directory that is kept may hold what another program left.
        shutil.rmtree(job.dump, ignore_errors=True)
        Path(job.result).unlink(missing_ok=True)
        Path(job.dump).mkdir()
        died = _run(job, directory, timeout)
        outcome = Outcome.read(Path(job.result))
        log = (directory / "log.txt").read_text(errors="replace")
        return _report(target, job, outcome, died, "\n".join(log.splitlines()[-_LOG_LINES:]))


@contextlib.contextmanager
def _directory(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="mosaic-grid-libtpu-") as name:
            yield Path(name)
        return
    keep.mkdir(parents=True, exist_ok=True)
    yield keep.resolve()


def _command() -> list[str]:
    # -P: a directory named jaxlib where the user happens to stand is not jaxlib.
    return [sys.executable, "-P", "-m", "mosaic_grid.libtpu_child"]


def _environment(dump: str) -> dict[str, str]:
    # The child stands in another directory, so that paths relative to this one would mean nothing.
    user = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    path = [str(Path(mosaic_grid.__file__).parent.parent), *user]
    flags = [
        os.environ.get("LIBTPU_INIT_ARGS", ""),
        f"--xla_jf_dump_to={dump}",
        "--xla_jf_dump_llo_text=true",
        f"--xla_jf_dump_llo_pass_label_regex={llo.STAGES}",
    ]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(os.path.abspath, path)),
        # Of a repeated flag the last one counts, so what is needed here comes last.
        "LIBTPU_INIT_ARGS": " ".join(filter(None, flags)),
        # Don't ask the network what TPU this machine is.
        "TPU_SKIP_MDS_QUERY": "1",
        # Without this a second process that loads libtpu at the same time is refused.
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    }


def _run(job: Job, directory: Path, timeout: float) -> str:
    """Runs the child and says how it ended, empty if well. All it prints, and so all that libtpu prints, is log.txt."""
    with (directory / "log.txt").open("wb") as log:
        child = subprocess.Popen(
            _command(),
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env=_environment(job.dump),
        )
        try:
            child.communicate(json.dumps(dataclasses.asdict(job)).encode(), timeout)
        except subprocess.TimeoutExpired:
            return f"the compiler gave no answer in {timeout:g} s"
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
    if child.returncode < 0:
        return f"the compiler aborted ({signal.Signals(-child.returncode).name})"
    return f"the compiler process failed with exit code {child.returncode}" if child.returncode else ""


def _report(target: Target, job: Job, outcome: Outcome, died: str, log: str) -> ProgramReport:
    if outcome.stage == "moved":
        raise UserError(outcome.error, notes=["install the versions of jaxlib and libtpu that jax[tpu] asks for"])
    if died:
        return _failure(target, died, outcome.launches, log)
    if outcome.stage == "read":
        raise UserError(outcome.error)
    codes = llo.read_codes(Path(job.dump), [instruction.name for instruction in outcome.instructions])
    launches = tuple(
        dataclasses.replace(report, branch=outcome.launches[report.launch].branch)
        for report in _launch_reports(target, outcome, codes)
    )
    if not outcome.launches:
        status = Status.FAILS if outcome.error else Status.COMPILES
        error = libtpu_message.diagnostic_of(outcome.error) if outcome.error else None
        launches = (LaunchReport(target, status, diagnostic=error),)
    hlo = "" if outcome.error else _untagged(Path(job.hlo).read_text())
    return ProgramReport(target, launches, hlo, outcome.code_bytes, log)


def _failure(target: Target, message: str, launches: Sequence[KernelCall] = (), log: str = "") -> ProgramReport:
    """A failure of the whole: it is every launch's."""
    error = libtpu_message.failure(message, log)
    failed = [
        LaunchReport(target, Status.FAILS, launch.kernel, index, diagnostic=error, branch=launch.branch)
        for index, launch in enumerate(launches)
    ]
    return ProgramReport(target, tuple(failed) or (LaunchReport(target, Status.FAILS, diagnostic=error),), log=log)


def _launch_reports(target: Target, outcome: Outcome, codes: dict[str, llo.Code]) -> Iterator[LaunchReport]:
    guilty = {
        _code_key(outcome, instruction)
        for instruction in outcome.instructions
        if outcome.error and libtpu_message.mentions(outcome.error, instruction.name)
    }
    for index, launch in enumerate(outcome.launches):
        mine = [instruction for instruction in outcome.instructions if instruction.launch == index]
        if not mine and outcome.error and not guilty:
            yield _failed(target, outcome, index, "")
        elif not mine:
            yield LaunchReport(target, Status.REMOVED, launch.kernel, index, remark=_REMOVED)
        for instruction in mine:
            code = _code(outcome, instruction, codes)
            if outcome.error and (not guilty or _code_key(outcome, instruction) in guilty):
                yield _failed(target, outcome, index, instruction.name)
            elif outcome.error and (code is None or code.bundles is None):
                remark = f"the compiler stopped at {_culprit(outcome)}"
                yield LaunchReport(target, Status.SKIPPED, launch.kernel, index, instruction.name, remark=remark)
            else:
                yield _compiled(target, launch, instruction, code)


def _failed(target: Target, outcome: Outcome, index: int, instruction: str) -> LaunchReport:
    error = libtpu_message.diagnostic_of(outcome.error)
    return LaunchReport(target, Status.FAILS, outcome.launches[index].kernel, index, instruction, diagnostic=error)


def _compiled(target: Target, launch: KernelCall, instruction: Instruction, code: llo.Code | None) -> LaunchReport:
    report = LaunchReport(target, Status.COMPILES, launch.kernel, instruction.launch, instruction.name)
    if launch.core == "sc":
        return dataclasses.replace(report, remark="runs on the SparseCores")
    if code is None:
        return dataclasses.replace(report, remark="cores used: unknown, libtpu dumped no code for it")
    cores = 1 if code.one_core else target.cores
    return dataclasses.replace(report, cores_used=cores, bundles=code.bundles, step_bundles=code.step)


def _code_key(outcome: Outcome, instruction: Instruction) -> tuple[str, str]:
    """Equal for instructions that libtpu may have made the same code for: same kernel, shapes and layouts."""
    return outcome.launches[instruction.launch].key, instruction.shapes


def _code(outcome: Outcome, instruction: Instruction, codes: dict[str, llo.Code]) -> llo.Code | None:
    """The code an instruction runs: its own, or, as libtpu stores equal code once, that of an equal one.

    None where equal instructions have different code, so that it can't be told which one this shares.
    """
    if instruction.name in codes:
        return codes[instruction.name]
    key = _code_key(outcome, instruction)
    equal = {
        codes[other.name] for other in outcome.instructions if other.name in codes and _code_key(outcome, other) == key
    }
    return equal.pop() if len(equal) == 1 else None


def _culprit(outcome: Outcome) -> str:
    named = (i for i in outcome.instructions if libtpu_message.mentions(outcome.error, i.name))
    return " and ".join(dict.fromkeys(f"'{outcome.launches[i.launch].kernel}'" for i in named))


def _untagged(hlo: str) -> str:
    """HLO text as it would read without the attribute that told the launches apart."""
    hlo = re.sub(rf', frontend_attributes=\{{{TAG}="\d+"\}}', "", hlo)
    return re.sub(rf'{TAG}="\d+",|,{TAG}="\d+"', "", hlo)
