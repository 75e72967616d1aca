"""`mosaic_grid.run`: a lowered program as a function of arrays."""

from __future__ import annotations

import collections
import dataclasses
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from jaxlib.mlir import ir

from mosaic_grid.context import create_context, unknown_location
from mosaic_grid.cpu.arrays import Array, TensorSpec, spec_of
from mosaic_grid.cpu.options import Options
from mosaic_grid.diagnostics import Severity
from mosaic_grid.errors import Place, UserError
from mosaic_grid.passes import PASSES
from mosaic_grid.pipeline import parse_pipeline
from mosaic_grid.runner import programs, values
from mosaic_grid.runner.arguments import arguments_of
from mosaic_grid.runner.check import check as run_checked
from mosaic_grid.runner.choices import check_flag, check_options, check_passes
from mosaic_grid.runner.programs import Opened, Source
from mosaic_grid.runner.recorded import KernelError, Recorded, compile_recorded, lower_recorded
from mosaic_grid.runner.shardings import without_shardings
from mosaic_grid.session import Session
from mosaic_grid.targets import parse_target
from mosaic_grid.write import write_bytecode

_KEPT = 32
"""How many compiled programs are remembered."""
_REPRODUCERS = Path(tempfile.gettempdir())
"""Where an internal failure leaves its program: a library puts nothing into the directory it happens to run in."""


_OUTSIDE = "run it with check=True outside of jax.jit, jax.vmap, ..., on arrays; or mosaic-run --check runs its dump"


def run(
    program: object,
    *args: object,
    passes: str = "",
    target: str | None = None,
    uninitialized: Literal["nan", "zero"] = "nan",
    dma: Literal["early", "late"] = "early",
    cores_interleaved: int | None = None,
    precision: Literal["f32", "bf16"] = "f32",
    check: bool = False,
) -> tuple[Any, ...]:
    """Runs a program that was lowered for TPU on the CPU, Pallas kernels included.

        lowered = jax.jit(f).trace(x, y).lower(lowering_platforms=("tpu",))
        (result,) = mosaic_grid.run(lowered, x, y)

    Args:
        program: What `jax.jit(f).lower` or `jax.export.export` returns, the path of a dump, a dump as bytes or, with
            line breaks in it, as text, or a module of MLIR.
        *args: An array for each argument of the program's `@main`, in order; for what JAX lowered or exported the
            arguments of that function, trees if it takes trees. Arrays of another type are taken if the argument's
            holds all of their numbers exactly, Python's numbers and lists too, and a single number fills an array.
        passes: A pipeline to run on the program first, as in `mosaic-opt -p`.
        target: The chip that these passes make the program for: `"v5p"`.
        uninitialized: What memory holds that nobody wrote: NaN (for integers the least number) or zero.
        dma: When a copy lands: when it is started, or only when it is waited for.
        cores_interleaved: The seed of the order in which cores take turns, step by step; without it they run one after
            the other.
        precision: How exact a matmul of f32 is that doesn't say it itself.
        check: Whether the kernels are watched, as with `mosaic-run --check`. What they do wrong is raised, and what may
            be meant that way is a warning of Python.

    Returns:
        A tuple of arrays, always: what the function returned as a tree is flat in its program. The arrays are NumPy's,
        and read-only. In a function that JAX traces (`jax.jit`, `jax.vmap`) they are traced arrays, and the program
        becomes a part of that function. XLA may then keep more precision than the program asks for in bf16, and
        takes up to twice as long, unless the function is compiled with
        `compiler_options=dict(mosaic_grid.COMPILER_OPTIONS)`.

    Compiled programs are remembered by their content. Raises `mosaic_grid.UserError` for whatever can't be run, and a
    `mosaic_grid.KernelError`, which is one too, for a kernel that waits for what can't come. Not in a function that JAX
    traces, though: there nothing is said of such a wait, the kernel goes on, and what it returns means nothing.
    """
    options = Options(uninitialized, dma, cores_interleaved, precision)
    check_options(options)
    check_passes(passes, target)
    check_flag("check", check)
    source, flat = _source(program, args)
    prepared = _prepared((source.digest, options, passes, target), source)
    if "jax" in sys.modules:
        from mosaic_grid.jax_hook import call

        if any(map(call.is_traced, flat)):
            if check:
                raise UserError("kernels can't be checked in a function that JAX traces", notes=[_OUTSIDE])
            return tuple(call.call(prepared.bytecode, prepared.arguments, prepared.results, flat))
    if len(flat) != len(prepared.arguments):
        raise UserError(f"the program takes {len(prepared.arguments)} arguments; it got {len(flat)}")
    arrays = [_array(arg, spec) for arg, spec in zip(flat, prepared.arguments, strict=True)]
    return tuple(_checked(prepared.watched, arrays) if check else prepared.executable(*arrays))


def _checked(program: Recorded, arrays: Sequence[Array]) -> list[Array]:
    """The results of a program whose kernels do nothing wrong."""
    found = run_checked(program, arrays)
    errors = [each for each in found.diagnostics if each.severity is Severity.ERROR]
    if errors:
        raise KernelError(errors)
    for each in found.diagnostics:
        if each.severity is Severity.WARNING:
            warnings.warn("\n".join(each.lines()), stacklevel=3)
    return found.results


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A program, lowered and compiled when it is first run, in each of the ways in which it can be."""

    opened: Opened
    options: Options
    arguments: tuple[TensorSpec, ...]
    results: tuple[TensorSpec, ...]

    @cached_property
    def executable(self) -> Recorded:
        """The program compiled."""
        return self._compiled(everything=False)

    @cached_property
    def watched(self) -> Recorded:
        """The program compiled with everything that its kernels do wrong recorded."""
        return self._compiled(everything=True)

    @cached_property
    def bytecode(self) -> bytes:
        """The program to be merged into one of JAX's, which says how it is sharded."""
        with _lock, self.opened.module.context, unknown_location():
            return write_bytecode(without_shardings(programs.lower(self.opened, self.options, _REPRODUCERS)))

    def _compiled(self, *, everything: bool) -> Recorded:
        with _lock, self.opened.module.context, unknown_location():
            lowered = lower_recorded(self.opened, self.options, everything=everything, reproducers=_REPRODUCERS)
            return compile_recorded(lowered)


_Key: TypeAlias = tuple[bytes, Options, str, str | None]

_lock = threading.RLock()
_remembered: collections.OrderedDict[_Key, Prepared] = collections.OrderedDict()


def _prepared(key: _Key, source: Source) -> Prepared:
    with _lock:
        if key not in _remembered:
            _remembered[key] = _prepare(key, source)
        _remembered.move_to_end(key)
        while len(_remembered) > _KEPT:
            _remembered.popitem(last=False)
        return _remembered[key]


def _prepare(key: _Key, source: Source) -> Prepared:
    _, options, passes, target = key
    with create_context() as context, unknown_location():
        opened = programs.open_source(source, context)
        if passes:
            session = Session(parse_target(target) if target is not None else None)
            programs.apply(parse_pipeline(passes, PASSES), opened, session, _REPRODUCERS)
            for said in session.diagnostics:
                if said.severity is Severity.ERROR:
                    raise UserError(said.message, said.place, [each.message for each in said.notes])
        arguments = tuple(argument.spec for argument in arguments_of(opened))
        kinds = programs.type_of(opened.main).results
        results = tuple(spec_of(kind, f"result {number}") for number, kind in enumerate(kinds))
        return Prepared(opened, options, arguments, results)


def _source(program: object, args: tuple[object, ...]) -> tuple[Source, list[object]]:
    """The program as bytes, and its arguments."""
    match program:
        case ir.Module():
            return programs.source_of_module(program.operation), list(args)
        case ir.Operation() | ir.OpView():
            return programs.source_of_module(program.operation), list(args)
        case bytes():
            return Source("<bytes>", program), list(args)
        case str() if "\n" in program:
            return Source("<text>", program.encode()), list(args)
        case str() | os.PathLike():
            return _file(os.fspath(program)), list(args)
    if "jax" in sys.modules:
        from mosaic_grid.jax_hook import call

        data, flat = call.bytes_of(program), call.flat_arguments(program, args)
        if data is not None and flat is not None:
            return Source("<lowered>", data, trusted=True), flat
    kinds = "what jax.jit(f).lower or jax.export returns, a path, MLIR text or bytes, or a module of MLIR"
    raise UserError(f"a {type(program).__name__} can't be run", notes=[f"give {kinds}"])


def _file(path: str) -> Source:
    try:
        with open(path, "rb") as file:
            return Source(path, file.read())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UserError(f"can't read the program: {reason}", Place(path)) from None


def _array(arg: object, spec: TensorSpec) -> Array:
    if not hasattr(arg, "dtype"):
        return values.from_literal(arg, spec, notes=["an argument is an array, a number or nested lists of numbers"])
    try:
        array = np.asarray(arg)
    except TypeError:
        notes = ["of a key of jax.random it takes the numbers: jax.random.key_data(key)"]
        raise UserError(f"{spec.name} is {spec}; it got {arg.dtype}, which are no numbers", notes=notes) from None
    return values.from_array(array, spec)
