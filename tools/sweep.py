"""Round trips of real programs: `sweep.py DIR|FILE... [--target v5p] [--jobs N] [--no-compile]`.

Each dump is unpacked, packed and unpacked again: the two unpacked texts are the same with their locations, and the
packed text is the one that was opened. libtpu then compiles the program as it was opened and as it was packed again:
the same HLO but for the kernels' bytes, the same cores and the same scheduled bundles; or the same refusal. A line per
file, and `N passed, N failed` at the end; exits with 1 if anything failed.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import itertools
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from jaxlib.mlir import ir

from mosaic_grid.containers.sniff import NotADumpError
from mosaic_grid.context import create_context
from mosaic_grid.dump import read_dump
from mosaic_grid.errors import UserError
from mosaic_grid.libtpu import ProgramReport, compile_for, libtpu_available
from mosaic_grid.program import ProgramError, custom_calls, is_kernel
from mosaic_grid.targets import Target, parse_target
from mosaic_grid.unpack import pack, unpack
from mosaic_grid.write import write_text

_PAYLOAD = re.compile(r'("(?:body|debug_locations)"\s*:\s*)"[^"]*"')


class DiffersError(Exception):
    """What should have been the same and is not; the message says what."""


@dataclasses.dataclass(frozen=True)
class RoundTrip:
    """A program as it was opened and as it was packed again, both as MLIR text with locations."""

    opened: str
    unpacked: str
    repacked: str
    launches: int


def round_trip(data: bytes, name: str) -> RoundTrip:
    """Unpacks, packs and unpacks a dump. Raises `DiffersError`, or `UserError` for what can't be read."""
    with create_context() as context, ir.Location.unknown():
        module = read_dump(data, name, context).module
        opened = write_text(module, debuginfo=True)
        launches = len(custom_calls(module))
        if not launches and not is_kernel(module):
            raise DiffersError("no kernel is launched")
        try:
            unpack(module)
            unpacked = write_text(module, debuginfo=True)
            pack(module)
            repacked = write_text(module, debuginfo=True)
            unpack(module)
        except ProgramError as error:
            raise DiffersError(f"not unpacked or packed: {error}") from None
        again = write_text(module, debuginfo=True)
    _check_same("unpacked text", unpacked, again)
    _check_same("packed text", opened, repacked)
    return RoundTrip(opened, unpacked, repacked, launches)


def compile_both(trip: RoundTrip, target: Target) -> tuple[ProgramReport, ProgramReport]:
    """libtpu's reports on the program as it was opened and on the repacked one. Raises `DiffersError`."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        before, after = pool.map(lambda text: compile_for(text.encode(), target), (trip.opened, trip.repacked))
    _check_same("libtpu's verdict", "\n".join(_verdicts(before)), "\n".join(_verdicts(after)))
    _check_same("HLO", without_payloads(before.hlo), without_payloads(after.hlo))
    return before, after


def without_payloads(hlo: str) -> str:
    """HLO text without the kernels' bytes."""
    return _PAYLOAD.sub(r'\1""', hlo)


def sweep_file(path: Path, target: Target | None) -> str:
    """What is the same for one dump, in a few words. Raises `DiffersError` and `UserError`."""
    trip = round_trip(path.read_bytes(), path.name)
    words = [f"{trip.launches} launch{'es' if trip.launches != 1 else ''}", "same text"]
    if target and trip.launches:
        report, _ = compile_both(trip, target)
        words += [f"{target}: same verdict and HLO", *_verdicts(report)]
    return ", ".join(words)


def files_of(paths: Sequence[Path]) -> list[Path]:
    """The files given, and those in the directories given, the smallest first: what fails fast is seen first."""
    files = [file for path in paths for file in (path.iterdir() if path.is_dir() else [path]) if file.is_file()]
    return sorted(files, key=lambda file: (file.stat().st_size, file.name))


def sweep(files: Sequence[Path], target: Target | None, jobs: int) -> Iterator[tuple[Path, str, bool]]:
    """Each file with what came of it and whether it passed, in order. What is no dump is left out."""

    def one(path: Path) -> tuple[Path, str, bool] | None:
        try:
            return path, sweep_file(path, target), True
        except NotADumpError:
            return None
        except (DiffersError, UserError) as error:
            return path, "; ".join(str(error).splitlines()), False  # a line a file

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for result in pool.map(one, files):
            if result:
                yield result


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; see the module's docstring."""
    parser = argparse.ArgumentParser(prog="sweep.py", description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, metavar="DIR|FILE")
    parser.add_argument("--target", default="v5p", type=parse_target, metavar="CHIP[:CORES]")
    parser.add_argument("--jobs", default=1, type=int, help="programs at once, each compiled twice (default: 1)")
    parser.add_argument("--smallest", type=int, metavar="N", help="only the N smallest files (default: all)")
    parser.add_argument("--no-compile", action="store_true", help="the round trip only")
    options = parser.parse_args(argv)
    target = options.target if not options.no_compile and libtpu_available() else None
    if target is None and not options.no_compile:
        print("libtpu is not installed: nothing is compiled")
    passed = failed = 0
    for path, words, good in sweep(files_of(options.paths)[: options.smallest], target, options.jobs):
        passed, failed = passed + good, failed + (not good)
        print(f"{'PASS' if good else 'FAIL'} {path.name}: {words}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


def _check_same(what: str, before: str, after: str) -> None:
    if before == after:
        return
    pairs = enumerate(itertools.zip_longest(before.splitlines(), after.splitlines(), fillvalue=""), 1)
    number, (old, new) = next(((n, (a, b)) for n, (a, b) in pairs if a != b), (0, ("", "")))
    column = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    shown = slice(max(column - 40, 0), column + 80)
    raise DiffersError(f"{what} differs at line {number}: {old[shown]!r}, then {new[shown]!r}")


def _verdicts(report: ProgramReport) -> list[str]:
    """Cores and bundles of each launch, or why it doesn't compile."""
    return [
        f"{launch.kernel}: {launch.diagnostic.message.splitlines()[0] if launch.diagnostic else launch.status.value}, "
        f"{launch.cores_used} of {report.target.cores} cores, {launch.bundles} bundles"
        for launch in report.launches
    ]


if __name__ == "__main__":
    sys.exit(main())
