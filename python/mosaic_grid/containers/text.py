"""MLIR text, with the user's file name in its locations."""

from __future__ import annotations

import re
from itertools import accumulate

from jaxlib.mlir import ir

from mosaic_grid import guard
from mosaic_grid.containers import bytecode, failures
from mosaic_grid.errors import Place, UserError
from mosaic_grid.location_text import file_of

MAX_NESTING = 1000
"""MLIR's parser recurses, and overflows the stack somewhere between 1000 and 5000 nested regions."""

_OPENERS, _CLOSERS = b"([{<", b")]}>"
_NOT_BRACKETS = bytes(set(range(256)) - set(_OPENERS + _CLOSERS + b"-"))
_STEP = [1 if byte in _OPENERS else -1 if byte in _CLOSERS else 0 for byte in range(256)]
_STRING_OR_COMMENT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|//[^\n]*', re.DOTALL)

# Bytes beyond ASCII may stand in strings, but not in names of ops: see `bytecode.read_names`.
_HIGH_ESCAPE = re.compile(r"\\[89A-Fa-f][0-9A-Fa-f]")

_NOT_ONE_OP = "source must contain a single top-level operation"
_UNNAMED = "-"


def parse(text: str, name: str, context: ir.Context) -> ir.Operation:
    """The module in `text`; several ops, none, or one that is no module get a module around them, as in `mlir-opt`.

    Locations and errors say `name`. Raises `UserError` where MLIR refuses the text.
    """
    _check_nesting(text, name)
    if not _HIGH_ESCAPE.search(text):
        return _parse(text, name, context)
    if guard.first_crash([text.encode()], prepare_text):
        raise UserError("the name of an op in this text is not UTF-8, as its escapes (\\XX) spell it", Place(name))
    with guard.reading(name, len(text)):
        module = _parse(text, name, context)
        bytecode.read_names(module)
        return module


def prepare_text(context: ir.Context, data: bytes) -> None:
    """What is tried on text with odd escapes in a child process before it is read here."""
    bytecode.read_names(ir.Module.parse(data.decode("utf-8"), context=context).operation)


def _parse(text: str, name: str, context: ir.Context) -> ir.Operation:
    """The text as one op, or as several."""
    try:
        op = ir.Operation.parse(text, source_name=name, context=context).operation
    except ir.MLIRError as error:
        if any(_NOT_ONE_OP in said.message for said in error.error_diagnostics):
            return _parse_ops(text, name, context)
        raise failures.user_error(error, name, text=text) from None
    if op.name == "builtin.module":
        return op
    with ir.Location.file(name, 1, 1, context=context):
        module = ir.Module.create()
    op.clone(ip=ir.InsertionPoint(module.body))
    return module.operation


def _parse_ops(text: str, name: str, context: ir.Context) -> ir.Operation:
    """The text's ops in an implicit module.

    Wrapping the text would move the columns, and aliases may only stand outside of any op; parsing into a module has no
    parameter for the file's name, so it is put into the locations afterwards.
    """
    try:
        module = ir.Module.parse(text, context=context).operation
    except ir.MLIRError as error:
        raise failures.user_error(error, name, text=text) from None

    def named(location: ir.Location) -> ir.Location:
        if isinstance(location, ir.FileLineColLoc) and file_of(location) == _UNNAMED:
            return ir.Location.file(name, location.start_line, location.start_col, context=context)
        return location

    def visit(op: ir.Operation) -> ir.WalkResult:
        op.location = named(op.location)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    argument.set_location(named(argument.location))
        return ir.WalkResult.ADVANCE

    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    return module


def _check_nesting(text: str, name: str) -> None:
    """Raises `UserError` for text that would overflow the stack of MLIR's parser.

    An upper bound is enough for nearly all text, and cheap: all but brackets and minus signs go first, which takes the
    `>` of `<-1>` for an arrow's, that closes nothing. Only what exceeds the limit is looked at without its strings.
    """
    data = text.encode()
    if _depth(data.translate(None, _NOT_BRACKETS).replace(b"->", b"")) <= MAX_NESTING:
        return
    code = _STRING_OR_COMMENT.sub(b"", data).replace(b"->", b"")
    if _depth(code) > MAX_NESTING:
        message = f"brackets nest more than {MAX_NESTING} deep, which MLIR's parser does not survive"
        raise UserError(message, Place(name))


def _depth(data: bytes) -> int:
    """How deep brackets nest."""
    return max(accumulate(map(_STEP.__getitem__, data)), default=0)
