"""Opens any dump of a lowered program as one MLIR module. What it is, is told from its content.

dumps = read_inputs(["program.mlir", "dumps/", "-"], sys.stdin.buffer, create_context())
"""

from __future__ import annotations

import dataclasses
import gzip
import io
import os
import zlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from jaxlib.mlir import ir

from mosaic_grid import guard, unpack
from mosaic_grid.backend_config import Payload
from mosaic_grid.containers import bytecode, exported, hlo, sniff, text, untrusted
from mosaic_grid.containers.failures import ClosedDialectError
from mosaic_grid.containers.sniff import GZIP_MAGIC, Kind, NotADumpError
from mosaic_grid.diagnostics import Diagnostic, note
from mosaic_grid.errors import Place, UserError
from mosaic_grid.program import Kernel, symbol_of

__all__ = ["Dump", "Kind", "read_dump", "read_inputs"]

STDIN = "-"
STDIN_NAME = "<stdin>"
MAX_UNZIPPED = 4 << 30
"""A program of more bytes than this is a mistake, or a bomb."""


@dataclasses.dataclass(frozen=True)
class Dump:
    """A dump that was opened.

    `module` is a `builtin.module`: an outer program as it was found (kernels may still be packed in their launches), a
    bare kernel, or, of HLO text, a module of kernels that nothing launches. `text` is the source, where it was text.
    """

    name: str
    kind: Kind
    module: ir.Operation
    notes: tuple[Diagnostic, ...] = ()
    text: str | None = None


def read_inputs(paths: Sequence[str], stdin: BinaryIO, context: ir.Context) -> list[Dump]:
    """Opens files, directories (every dump in them, by name, not those below) and, for `-`, standard input.

    Raises `UserError` for whatever can't be read. In a directory, what is no dump is skipped with a note.
    """
    dumps: list[Dump] = []
    for opened in read_each(paths, stdin, context):
        if isinstance(opened, UserError):
            raise opened
        dumps.append(opened)
    return dumps


def read_each(paths: Sequence[str], stdin: BinaryIO, context: ir.Context) -> Iterator[Dump | UserError]:
    """The same one after another, with an error for each input that can't be read in the place of its dump."""
    for path in paths:
        if path != STDIN and os.path.isdir(path):
            yield from _read_directory(path, context)
            continue
        try:
            yield read_dump(bytes_of(path, stdin), name_of(path), context)
        except UserError as error:
            yield error


def bytes_of(path: str, stdin: BinaryIO) -> bytes:
    """What is in a file, or on standard input for `-`; unzipped. Raises `UserError`."""
    return _unzipped(stdin.read() if path == STDIN else _bytes_of(path), name_of(path))


def name_of(path: str) -> str:
    """What messages and locations call an input: its path, with escapes for bytes that are not UTF-8."""
    return STDIN_NAME if path == STDIN else os.fsencode(path).decode("utf-8", "backslashreplace")


def read_dump(data: bytes, name: str, context: ir.Context) -> Dump:
    """Opens one dump; `name` stands in locations and messages. Raises `UserError` for whatever can't be read."""
    data = _unzipped(data, name)
    kind = sniff.recognise(data, name)
    match kind:
        case Kind.TEXT:
            source = sniff.decode(data, name)
            return Dump(name, kind, text.parse(source, name, context), text=source)
        case Kind.HLO:
            return _read_hlo(sniff.decode(data, name), name, context)
        case Kind.BYTECODE:
            return Dump(name, kind, bytecode.parse(data, name, context))
        case Kind.PORTABLE:
            return Dump(name, kind, bytecode.parse_portable(data, name, context))
        case Kind.EXPORTED:
            artifact = exported.module_bytes(data, name)
            return Dump(name, kind, bytecode.parse_portable(artifact, name, context))


def _read_directory(path: str, context: ir.Context) -> Iterator[Dump | UserError]:
    """The dumps among the regular files of a directory; the first carries the notes on what was skipped."""
    found: list[Dump | UserError] = []
    skipped: list[Diagnostic] = []
    try:
        files = _files_in(path)
    except OSError as error:
        yield _unreadable(path, error)
        return
    for file in files:
        try:
            found.append(read_dump(_bytes_of(file), name_of(file), context))
        except (NotADumpError, ClosedDialectError) as error:
            skipped.append(note(f"skipped: {error.message}", error.place))
        except UserError as error:
            found.append(error)
    if not found:
        reasons = [str(skip.place) + skip.message.removeprefix("skipped") for skip in skipped]
        below = ["the directories in it are not looked into"] if _has_folders(path) else []
        yield UserError(
            "no file in this directory is a dump that can be read", Place(name_of(path)), [*reasons, *below]
        )
    for opened in found:
        if isinstance(opened, Dump) and skipped:
            yield dataclasses.replace(opened, notes=(*opened.notes, *skipped))
            skipped = []
        else:
            yield opened


def _files_in(path: str) -> list[str]:
    """The files of a directory that are not hidden. Raises `OSError`."""
    names = sorted(name for name in os.listdir(path) if not name.startswith("."))
    return [file for name in names if os.path.isfile(file := os.path.join(path, name))]


def _has_folders(path: str) -> bool:
    with os.scandir(path) as entries:
        return any(entry.is_dir() for entry in entries if not entry.name.startswith("."))


def _read_hlo(source: str, name: str, context: ir.Context) -> Dump:
    """The distinct kernels of HLO text, as nested modules."""
    calls: dict[Payload, hlo.Call] = {}
    for call in hlo.calls(source, name):
        calls.setdefault(call.payload, call)
    if not calls:
        raise UserError("this HLO module launches no Mosaic kernel: it has no tpu_custom_call", Place(name))
    untrusted.check_payloads(list(calls), [call.place for call in calls.values()])
    with ir.Location.file(name, 1, 1, context=context):
        module = ir.Module.create()
    module.operation.attributes["sym_name"] = ir.StringAttr.get(hlo.module_name(source) or "hlo", context=context)
    symbols: set[str] = set()
    for call in calls.values():
        symbols.add(_add_kernel(module, call, symbols))
    count = f"{len(calls)} kernel{'s' if len(calls) > 1 else ''}"
    told = f"HLO text: {count} read; the computation around is not turned back into StableHLO"
    return Dump(name, Kind.HLO, module.operation, (note(told, Place(name)),), source)


def _add_kernel(module: ir.Module, call: hlo.Call, symbols: set[str]) -> str:
    if not call.payload.body.startswith(bytecode.MAGIC):
        raise UserError(f"the kernel of %{call.instruction} can't be read: it is not MLIR bytecode", call.place)
    try:
        with guard.reading(str(call.place), len(call.payload.body)):
            kernel = unpack.kernel_from_payload(call.payload, module.context)
    except unpack.KernelError as error:
        raise UserError(f"the kernel of %{call.instruction} can't be read: {error}", call.place) from None
    functions = Kernel(kernel.operation).functions  # an older JAX names the function only
    wanted = symbol_of(kernel.operation) or next(iter(functions), "") or call.instruction
    symbol = unpack.unique_symbol(wanted, symbols)
    added = kernel.operation.clone(ip=ir.InsertionPoint(module.body))
    added.operation.attributes["sym_name"] = ir.StringAttr.get(symbol, context=module.context)
    return symbol


def _bytes_of(path: str) -> bytes:
    if not path:
        raise UserError("can't read the input '': its name is empty", notes=["give a file, a directory or '-'"])
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise _unreadable(path, error) from None
    except ValueError:
        raise UserError("can't read the input: no file can have this name", Place(repr(path))) from None


def _unreadable(path: str, error: OSError) -> UserError:
    return UserError(f"can't read the input: {(error.strerror or str(error)).lower()}", Place(name_of(path)))


def _unzipped(data: bytes, name: str) -> bytes:
    """What is inside gzip, however often it was compressed."""
    while data.startswith(GZIP_MAGIC):
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
                data = file.read(MAX_UNZIPPED + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise UserError(f"this gzip data is truncated or corrupted: {str(error).lower()}", Place(name)) from None
        if len(data) > MAX_UNZIPPED:
            raise UserError(f"this gzip data holds more than {MAX_UNZIPPED >> 30} GiB", Place(name))
    return data
