"""The developer scripts that decide whether a change is good: run_tests, expect_exit, check_tree and find-python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import check_tree
import expect_exit
import run_tests
from run_tests import Counts

TOOLS = Path(run_tests.__file__).parent


def test_pytest_report_is_counted() -> None:
    """Errors of fixtures count as failures, and what is neither failed nor skipped passed."""
    report = '<testsuites><testsuite tests="10" failures="1" errors="2" skipped="3"/></testsuites>'
    assert run_tests.pytest_counts(report) == Counts(passed=4, failed=3, skipped=3)


def test_lit_report_is_counted() -> None:
    """Every code of lit falls in one of the three counts, an unexpected pass among the failures."""
    codes = ["PASS", "FLAKYPASS", "XFAIL", "FAIL", "XPASS", "UNRESOLVED", "TIMEOUT", "UNSUPPORTED", "SKIPPED"]
    report = json.dumps({"tests": [{"name": code, "code": code} for code in codes]})
    assert run_tests.lit_counts(report) == Counts(passed=3, failed=4, skipped=2)


def test_closing_line() -> None:
    """The line names skipped tests only where there are some, and sums both runners."""
    assert str(Counts(3, 0)) == "3 passed, 0 failed"
    assert str(Counts(3, 0, 1) + Counts(2, 1)) == "5 passed, 1 failed, 1 skipped"


@pytest.mark.parametrize(
    ("counts", "exit_code", "failed"),
    [(Counts(3), 0, 0), (Counts(3), 2, 1), (Counts(), 5, 1), (Counts(), 0, 1), (Counts(3, 2), 1, 2)],
)
def test_runner_that_fails_or_idles_without_a_failed_test_counts(counts: Counts, exit_code: int, failed: int) -> None:
    """A crash, a usage error or an empty run of a runner can't end in `0 failed`, whatever its exit code."""
    assert run_tests.honest(counts, exit_code, "lit").failed == failed


def test_lit_tests_are_looked_for_in_their_folders(tmp_path: Path) -> None:
    """Only a test file in one of the lit folders makes an empty run of lit an error."""
    (tmp_path / "test" / "unit").mkdir(parents=True)
    (tmp_path / "test" / "unit" / "test_a.py").touch()
    assert not run_tests.has_lit_tests(tmp_path)
    (tmp_path / "test" / "passes").mkdir()
    (tmp_path / "test" / "passes" / "a.mlir").touch()
    assert run_tests.has_lit_tests(tmp_path)


def test_tests_that_are_chosen_for_an_old_jax_are_there() -> None:
    """A test that has moved, or has another name, isn't left out in silence."""
    chosen = [*(f"unit/{name}" for name in run_tests.OLD_UNIT_TESTS), *run_tests.OLD_LIT_TESTS]
    assert [name for name in chosen if not (TOOLS.parent / "test" / name).exists()] == []


@pytest.mark.parametrize(
    ("wanted", "code", "result"),
    [
        ("0", "", 0),
        ("2", "import sys; sys.exit(2)", 0),
        ("1", "import sys; sys.exit(2)", 1),
        ("0", "import sys; sys.exit(2)", 1),
        ("1", "1 / 0", 1),
        ("-6", "import os; os.abort()", 0),
    ],
)
def test_expect_exit_wants_the_exact_code_and_no_traceback(wanted: str, code: str, result: int) -> None:
    """Another code is a failure, and so is a traceback though its code is right."""
    assert expect_exit.main([wanted, sys.executable, "-c", code]) == result


@pytest.mark.parametrize("line", ["see /{}/me/a.py", 'loc("/{}/x/a.py":1:2)', "cd /{}/project"])
@pytest.mark.parametrize("folder", ["home", "root", "tmp", "work"])
def test_machine_path_is_found(line: str, folder: str) -> None:
    """A path under a folder that differs between machines is a fault."""
    assert len(list(check_tree.faults(line.format(folder)))) == 1


def test_registry_host_is_found() -> None:
    """The host of a package registry is a fault, wherever it stands."""
    hosts = [".".join(parts) for parts in (("pypi", "org"), ("files", "python" + "hosted", "org"))]
    assert [number for number, _ in check_tree.faults("\n".join(hosts))] == [1, 2]


@pytest.mark.parametrize(
    "line", ["/usr/bin/env python3", "a/{tmp}/b", "$HOME/{tmp}/x", "from PyPI", "/tmp", "n/root/2"]
)
def test_other_paths_are_left_alone(line: str) -> None:
    """Paths that every machine has, and relative ones, are no faults."""
    assert list(check_tree.faults(line.format(tmp="tmp"))) == []


def find_python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The finder's run in an environment with nothing of ours in it."""
    command = ["/bin/sh", str(TOOLS / "find-python"), *arguments]
    clean = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYENV_ROOT": "/nonexistent", **environment}
    return subprocess.run(command, env=clean, capture_output=True, text=True, check=False)


def fake_python(folder: Path, name: str, output: str) -> Path:
    """An executable that prints `output` in place of the probe's answer."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\ncat > /dev/null\n{output}\n")
    path.chmod(0o755)
    return path


def test_newest_python_wins_and_broken_ones_are_passed_over(tmp_path: Path) -> None:
    """Versions compare as numbers, a shim that fails is skipped, and pyenv's own are looked at."""
    fake_python(tmp_path / "bin", "python3.15", "exit 127")
    fake_python(tmp_path / "bin", "python3.13", "echo 99 9 old")
    fake_python(tmp_path / "pyenv/versions/3.99.10/bin", "python", "echo 99 10 new one")
    done = find_python(PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}", PYENV_ROOT=str(tmp_path / "pyenv"))
    assert (done.returncode, done.stdout) == (0, "new one\n")


def test_newest_of_a_release(tmp_path: Path) -> None:
    """The release that is asked for is taken though newer ones are there; none at all is one line."""
    for number, answer in enumerate(["98 9", "98 10", "99 1", "980 1"]):
        fake_python(tmp_path / f"versions/{number}/bin", "python", f"echo {answer} is 3.{answer}")
    assert find_python("3.98", PYENV_ROOT=str(tmp_path)).stdout == "is 3.98 10\n"
    missing = find_python("3.97", PYENV_ROOT=str(tmp_path))
    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr == "find-python: no CPython release 3.97 with venv found\n"


def test_chosen_python_is_taken_or_refused(tmp_path: Path) -> None:
    """PYTHON=... is used though others are newer, and refused in one line where it can't serve."""
    chosen = fake_python(tmp_path, "mine", "echo 12 1 chosen")
    assert find_python(PYTHON=str(chosen)).stdout == "chosen\n"
    refused = find_python(PYTHON=str(fake_python(tmp_path, "broken", "exit 1")))
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)


def test_checkout_without_an_environment(tmp_path: Path) -> None:
    """The tool of a checkout says in one line what is missing: a Python, a newer one, or jaxlib in it."""

    def run(python: str) -> str:
        environment = {"PATH": os.environ["PATH"], "PYTHON": python}
        command = ["/bin/sh", str(TOOLS / "mosaic-opt"), "--version"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        return done.stderr

    assert "there is no /nonexistent/python: run 'make demo'" in run("/nonexistent/python")
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    assert "has no jaxlib: run 'make demo' first, or 'pip install -e .'" in run(str(bare))


def test_make_refuses_a_python_that_is_none() -> None:
    """A wrong PYTHON is said though the environment is there already."""
    command = ["make", "--no-print-directory", "-n", "help", "PYTHON=/nonexistent"]
    done = subprocess.run(command, cwd=TOOLS.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "PYTHON=/nonexistent is not a program that can be run" in done.stderr
