"""A program that is to be run: opened, unpacked, and checked for what no run can do without."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from pathlib import Path
from typing import BinaryIO

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from mosaic_grid.containers.untrusted import check_kernels, first_unregistered_op, reading
from mosaic_grid.cpu.options import Options
from mosaic_grid.diagnostics import Diagnostic, place_of
from mosaic_grid.dump import Dump, Kind, read_dump, read_each
from mosaic_grid.errors import Place, UserError
from mosaic_grid.packed import is_packed, packed_bytes
from mosaic_grid.passes.lower_to_cpu import LowerToCpu
from mosaic_grid.pipeline import Pipeline, run_pipeline
from mosaic_grid.program import attribute_of, block_of, is_kernel, symbol_of
from mosaic_grid.session import Session
from mosaic_grid.unpack import unpack
from mosaic_grid.write import write_bytecode

_DEVICES = ("mhlo.num_replicas", "mhlo.num_partitions")
_WHOLE = (
    "give the whole lowered program: "
    "jax.jit(f).trace(*args).lower(lowering_platforms=('tpu',)).as_text(debug_info=True)"
)


@dataclasses.dataclass(frozen=True)
class Opened:
    """A program in the unpacked form, with a public function `@main` that can be called with arrays."""

    name: str
    module: ir.Operation
    notes: tuple[Diagnostic, ...] = ()

    @property
    def main(self) -> ir.Operation:
        """Its function `@main`."""
        return main_of(self.module, self.name)


@dataclasses.dataclass(frozen=True)
class Source:
    """A program as bytes of any kind that `dump.read_dump` opens; `trusted` bytes were written in this process."""

    name: str
    data: bytes
    trusted: bool = False

    @property
    def digest(self) -> bytes:
        """Tells its content from that of any other."""
        return hashlib.sha256(self.data).digest()


def open_file(path: str, stdin: BinaryIO, context: ir.Context) -> Opened:
    """Opens the one program in a file, or on standard input for `-`. `context` must be current. Raises `UserError`."""
    found = list(read_each([path], stdin, context))
    if len(found) != 1:
        raise UserError(f"this directory holds {len(found)} dumps; one program is run at a time", Place(path),
                        ["give one of its files"])  # fmt: skip
    (opened,) = found
    if isinstance(opened, UserError):
        raise opened
    return _unpacked(opened)


def open_source(source: Source, context: ir.Context) -> Opened:
    """Opens a program from its bytes. `context` must be current. Raises `UserError`."""
    if not source.trusted:
        return _unpacked(read_dump(source.data, source.name, context))
    portable = b"StableHLO_v" in source.data[:20]
    module = stablehlo.deserialize_portable_artifact(context, source.data) if portable else ir.Module.parse(source.data)
    unpack(module.operation)
    _check(module.operation, source.name)
    return Opened(source.name, module.operation)


def _unpacked(dump: Dump) -> Opened:
    if dump.kind is Kind.HLO:
        raise UserError("HLO text can't be run: only its kernels are read", Place(dump.name), [_WHOLE])
    if is_kernel(dump.module):
        message = "a bare kernel can't be run: only a launch says what arrays its windows are windows of"
        raise UserError(message, Place(dump.name), [_WHOLE])
    check_kernels(dump.module, dump.name)
    if is_packed(dump.module):
        with reading(dump.name, packed_bytes(dump.module)):
            unpack(dump.module)
    _check(dump.module, dump.name)
    return Opened(dump.name, dump.module, dump.notes)


def _check(module: ir.Operation, name: str) -> None:
    """Raises `UserError` for what can't be run, however its kernels are lowered."""
    if unknown := first_unregistered_op(module):
        message = f"the program can't be run: '{unknown.name}' is of a dialect that is not known"
        raise UserError(message, place_of(unknown.location) or Place(name))
    found = [attribute_of(module, key, ir.IntegerAttr) for key in _DEVICES]
    counts = [count.value for count in found if count is not None]
    if math.prod(counts) > 1:
        message = f"the program is for {math.prod(counts)} devices and can't be run: on the CPU there is one"
        raise UserError(message, Place(name), ["lower the function for one device"])
    for number, each in enumerate(type_of(main_of(module, name)).inputs):
        if isinstance(each, ir.RankedTensorType) and not each.has_static_shape:
            message = f"the program has symbolic shapes and can't be run: argument {number} is a {each}"
            raise UserError(message, Place(name), ["lower the function for the shapes that it is to run with"])


def main_of(module: ir.Operation, name: str) -> ir.Operation:
    """The function `@main` with its body. Raises `UserError` where there is none."""
    functions = [op.operation for op in block_of(module) if op.operation.name == "func.func"]
    for function in functions:
        if symbol_of(function) == "main" and len(function.regions[0].blocks) == 1:
            return function
    known = [f"@{symbol_of(function)}" for function in functions]
    notes = [f"its functions are {', '.join(known)}" if known else "there is no function in it", _WHOLE]
    raise UserError("the program has no function @main that could be run", Place(name), notes)


def type_of(function: ir.Operation) -> ir.FunctionType:
    """What a function takes and returns."""
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)


def apply(pipeline: Pipeline, opened: Opened, session: Session, reproducers: Path = Path()) -> None:
    """Runs passes on the program, in place; its kernels are unpacked afterwards as they were before."""
    run_pipeline(pipeline, opened.module, session, reproducers=reproducers)
    if is_packed(opened.module):
        unpack(opened.module)


def lowering(options: Options) -> LowerToCpu:
    """The pass that lowers all launches as the options say."""
    return LowerToCpu(options.uninitialized, options.dma, options.interleave, options.precision)


def lower(opened: Opened, options: Options, reproducers: Path = Path()) -> ir.Operation:
    """A copy of the program without launches. Raises `UserError`, or `InternalError` with a reproducer written."""
    copy = opened.module.clone(ip=False).operation
    run_pipeline(Pipeline((lowering(options),)), copy, Session(), reproducers=reproducers)
    return copy


def source_of_module(module: ir.Operation) -> Source:
    """The bytes of a module of any context."""
    return Source("<module>", write_bytecode(module), trusted=True)
