"""Runs pytest and lit, and closes with one line that counts both: `N passed, N failed`, and `, N skipped` if any were.

The counts come from the reports the two runners write for machines, not from what they print. Exits with 1 if a test
failed or a runner did, with 0 otherwise.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIT_FOLDERS = ("passes", "tool", "hook", "real")

# What is run with the oldest supported JAX: all that its lowerings, its bindings, its insides or its compiler go into.
OLD_UNIT_TESTS = (
    "test_cpu_execute.py",
    "test_dump.py",
    "test_hook_activation.py",
    "test_hook_cpu.py",
    "test_hook_forms.py",
    "test_hook_lowering.py",
    "test_hook_options.py",
    "test_hook_pipelines.py",
    "test_hook_prints.py",
    "test_hook_programs.py",
    "test_hook_stuck.py",
    "test_libtpu.py",
    "test_locations.py",
    "test_run_api.py",
    "test_unpack.py",
)
OLD_LIT_TESTS = (
    "hook",
    "passes/batch-grid-called.mlir",
    "passes/lower-to-cpu.mlir",
    "passes/pack-kernels.mlir",
    "passes/partition-cores-compiled.mlir",
    "passes/unpack-kernels.mlir",
    "tool/forms.mlir",
    "tool/print-ir.mlir",
    "tool/run.mlir",
    "tool/summary.mlir",
)

# lit's result codes. XFAIL is a pass: it failed as its file says it does.
LIT_PASSED = frozenset({"PASS", "FLAKYPASS", "XFAIL"})
LIT_SKIPPED = frozenset({"UNSUPPORTED", "SKIPPED", "EXCLUDED"})


@dataclasses.dataclass(frozen=True)
class Counts:
    """How many tests passed, failed and were skipped."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"


def pytest_counts(report: str) -> Counts:
    """The counts in a JUnit XML report of pytest, where an error in a fixture is a failure too."""
    suites = list(ET.fromstring(report).iter("testsuite"))

    def total(kind: str) -> int:
        return sum(int(suite.get(kind, "0")) for suite in suites)

    failed, skipped = total("failures") + total("errors"), total("skipped")
    return Counts(total("tests") - failed - skipped, failed, skipped)


def lit_counts(report: str) -> Counts:
    """The counts in a JSON report of lit; a code that is neither a pass nor a skip is a failure."""
    codes = Counter(test["code"] for test in json.loads(report)["tests"])
    passed = sum(codes[code] for code in LIT_PASSED)
    skipped = sum(codes[code] for code in LIT_SKIPPED)
    return Counts(passed, codes.total() - passed - skipped, skipped)


def honest(counts: Counts, exit_code: int, runner: str) -> Counts:
    """`counts`, with one failure more where no test failed and yet something is wrong with the run.

    That is a runner that fails (a crash, a usage error) and one that is content with running nothing.
    """
    if counts.failed or (exit_code == 0 and counts != Counts()):
        return counts
    what = f"failed with exit code {exit_code} though no test did" if exit_code else "ran no test"
    print(f"run_tests: {runner} {what}; counted as one failure")
    return counts + Counts(failed=1)


def run_pytest(full: bool, arguments: Sequence[str]) -> Counts:
    """Runs the unit tests, on all cores; `arguments` are passed on to pytest."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        selection = ["-m", ""] if full else []
        workers = ["--numprocesses=auto", "--dist=worksteal"]
        command = [sys.executable, "-m", "pytest", f"--junitxml={report}", *workers, *selection, *arguments]
        exit_code = subprocess.run(command, cwd=ROOT, check=False).returncode
        counts = pytest_counts(report.read_text()) if report.exists() else Counts()
    return honest(counts, exit_code, "pytest")


def has_lit_tests(root: Path = ROOT) -> bool:
    """Whether there is a file that lit would take for a test."""
    folders = (root / "test" / name for name in LIT_FOLDERS)
    return any(path.suffix in (".mlir", ".py") for folder in folders for path in folder.rglob("*"))


def run_lit(full: bool, chosen: Sequence[str] = ("",)) -> Counts:
    """Runs the lit tests, or those below `chosen` in `test`; finding none is an error unless there are none."""
    if not has_lit_tests():
        print("run_tests: no lit tests yet")
        return Counts()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        selection = ["--param", "full=1"] if full else []
        lit = Path(sys.executable).parent / "lit"  # lit can't be run with -m
        command = [str(lit), "-v", "--output", str(report), *selection, *(f"test/{each}" for each in chosen)]
        exit_code = subprocess.run(command, cwd=ROOT, check=False).returncode
        counts = lit_counts(report.read_text()) if report.exists() else Counts()
    return honest(counts, exit_code, "lit")


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; see the module's docstring."""
    parser = argparse.ArgumentParser(prog="run_tests.py", description=__doc__)
    parser.add_argument("--full", action="store_true", help="run the long sweep too")
    parser.add_argument("--old", action="store_true", help="run those that are chosen for the oldest supported JAX")
    parser.add_argument("pytest_arguments", nargs="*", help="passed on to pytest, after --")
    options = parser.parse_args(argv)
    files = [f"test/unit/{name}" for name in OLD_UNIT_TESTS] if options.old else []
    counts = run_pytest(options.full, [*options.pytest_arguments, *files])
    counts += run_lit(options.full, OLD_LIT_TESTS if options.old else ("",))
    print(counts, flush=True)
    return 1 if counts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
