"""The flags of `mosaic-run`, with what `--help` says of them."""

from __future__ import annotations

import argparse

from mosaic_grid.flags import Parser, choice
from mosaic_grid.runner.values import INTEGERS_BELOW

RUNS = 5
"""How often `--time` runs a program where it isn't told."""

DESCRIPTION = """\
Runs a lowered JAX program with Pallas TPU kernels on the CPU, no TPU needed, and says what came out.

PROGRAM is a dump of any kind that mosaic-opt opens, '-' for standard input: one whole program, lowered for one device.
"""

EPILOG = f"""\
NAME is what the author calls an argument, where the dump has locations (as_text(debug_info=True)), or argN or N,
counted from 0. VALUE is FILE.npy, FILE.npz, a number, a JSON list, random[:SEED], zeros, ones or iota. A number fills
the whole array; iota counts up in row-major order, and from 0 again where the type would skip a number. An argument
that is not given is random, by --seed and its position: floats from the standard normal distribution, integers from 0
to {INTEGERS_BELOW - 1}, bools by a coin. An integer that the bound of a grid depends on has to be given.

--compare is exact: bit for bit, where one NaN is as good as another. With --rtol or --atol, numbers are equal where
|this - other| <= atol + rtol * |other|. -p changes PROGRAM, not OTHER, so that the two can be one file.

--check finds reads and writes beyond the end of memory, blocks outside of their array, reads of what nobody wrote and
results that stay unwritten, races between cores, copies that nobody waits for, and waits that are never met. Each has
its place in the source and its first grid point. Reading what nobody wrote is an error if the results depend on it: the
program is run again to find out. The steps of every parallel dimension count as those of different cores.

Exit codes: 0, 1 if results differ or an error was diagnosed in a program, 2 for input that can't be read or run or a
wrong command line, 70 for an internal failure.
"""


class _RunParser(Parser):
    def format_help(self) -> str:
        """As ever, but `--time` takes a value only after an equals sign, which argparse has no notation for."""
        return super().format_help().replace("--time N  ", "--time[=N]").replace("--time N", "--time[=N]")


def parser() -> Parser:
    """The parser of the whole command line."""
    result = _RunParser(
        prog="mosaic-run",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    result.add_argument("program", nargs="*", metavar="PROGRAM", help="the dump to run")
    _add_inputs(result.add_argument_group("inputs"))
    _add_lowering(result.add_argument_group("how it is run"))
    _add_outputs(result.add_argument_group("what to do with the results"))
    other = result.add_argument_group("other tasks")
    other.add_argument("--list-inputs", action="store_true", help="print the arguments, and which of them are bounds")
    other.add_argument("--version", action="store_true", help="print versions")
    other.add_argument("-h", "--help", action="store_true", help="print this")
    return result


def _add_inputs(group: argparse._ArgumentGroup) -> None:
    text = "the value of an argument, see below; may be repeated"
    group.add_argument("--input", action="append", default=[], metavar="NAME=VALUE", help=text)
    text = "values for the arguments that its arrays are named like; may be repeated"
    group.add_argument("--inputs", action="append", default=[], metavar="FILE.npz", help=text)
    text = "integer scalars: by name, or in order those that bounds of grids depend on"
    group.add_argument("--bounds", action="append", default=[], metavar="[NAME=]N,...", help=text)
    group.add_argument("--seed", type=_count, default=0, metavar="N", help="of random inputs (default: 0)")


def _add_lowering(group: argparse._ArgumentGroup) -> None:
    text = "passes to run on the program first, as in mosaic-opt"
    group.add_argument("-p", dest="pipeline", metavar="PASSES", help=text)
    group.add_argument("--target", metavar="CHIP[:CORES]", help="what these passes make the program for: v4, v5p, ...")
    text = "what memory holds that nobody wrote: nan (for integers the least) or zero (default: nan)"
    group.add_argument("--uninitialized", type=choice("nan", "zero"), default="nan", metavar="VALUE", help=text)
    text = "when a copy lands: early, when it is started, or late, when it is waited for (default: early)"
    group.add_argument("--dma", type=choice("early", "late"), default="early", metavar="WHEN", help=text)
    text = "let cores take turns, step by step, in the order of this seed; else they run one after the other"
    group.add_argument("--cores-interleaved", type=_count, metavar="SEED", help=text)
    text = "how exact a matmul of f32 is that doesn't say: f32 or bf16 (default: f32)"
    group.add_argument("--precision", type=choice("f32", "bf16"), default="f32", metavar="TYPE", help=text)


def _add_outputs(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--print", action="store_true", help="print the values too")
    text = "save them: result0, result1, ... of FILE.npz, or the only one as FILE.npy"
    group.add_argument("-o", dest="output", metavar="FILE", help=text)
    text = "run this program too, on the same inputs, and say where the results differ"
    group.add_argument("--compare", metavar="OTHER", help=text)
    group.add_argument("--rtol", type=_tolerance, metavar="X", help="the relative tolerance (default: 0)")
    group.add_argument("--atol", type=_tolerance, metavar="X", help="the absolute tolerance (default: 0)")
    text = "watch the kernels, and report what they do wrong: see below"
    group.add_argument("--check", action="store_true", help=text)
    text = f"say how long compiling takes, and running, the best and the median of N runs (default: {RUNS})"
    group.add_argument("--time", type=_positive, metavar="N", help=text)
    text = "how all of it is reported: text or json (default: text)"
    group.add_argument("--format", type=choice("text", "json"), default="text", metavar="FORM", help=text)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"expects an integer >= 0, got '{text}'")
    return int(text)


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"expects an integer >= 1, got '{text}'")
    return int(text)


def _tolerance(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"expects a number >= 0, got '{text}'")
    return value
