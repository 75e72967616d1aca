"""The index maps of a kernel's windows as expressions of its grid indices and of its scalar-prefetch operands.

    index_map(kernel, window)  ->  (i // 4, table[j], 0)

Everything has an expression: an operation without a rule is an `Opaque` function of its operands, never an error.
"""

from __future__ import annotations

import dataclasses
import string
from collections.abc import Iterable, Sequence
from typing import cast

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.body import listing_of
from mosaic_grid.dataflow.control import defining
from mosaic_grid.dataflow.kernel_ops import rule_of, scalar_type
from mosaic_grid.dataflow.listing import in_order
from mosaic_grid.dataflow.unknowns import origin_of
from mosaic_grid.ir_types import Value
from mosaic_grid.location_text import text_of_name
from mosaic_grid.program import Kernel, ProgramError, Window

ANY_STEP = sym.Range(0, 2**31 - 2)
"""A grid index of a dimension whose bound is an i32."""

# the values of what is no integer are never looked at
_ANYTHING = sym.type_range(64, True)
# an expression of more nodes than this is of no use to a person
_LARGEST = 200
# attributes that change neither an integer result nor what it depends on
_PLAIN = frozenset({"i32", "index"})
_HINTS = frozenset({"overflowFlags", "fastmath"})


@dataclasses.dataclass(frozen=True)
class Opaque(sym.Load):
    """What an operation without a rule gives for the operands `index`; the same for the same operands."""


def prefetch_names(kernel: Kernel) -> tuple[str, ...]:
    """The prefetch operands by their names in the user's function, `prefetch0` where they have none; all different."""
    names: list[str] = []
    for k, argument in enumerate(kernel.prefetch):
        location = argument.location
        name = (text_of_name(location) if isinstance(location, ir.NameLoc) else "") or f"prefetch{k}"
        names.append(f"{name}_{k}" if name in names else name)
    return tuple(names)


def grid_indices(kernel: Kernel, exact: bool = True) -> tuple[sym.Expr, ...]:
    """The grid indices `i, j, k, ...`, outermost first; the name of a prefetch operand is left out.

    An `exact` index is below a static bound, so it is the constant 0 where there is one step. The others may be
    anything from 0 on, whatever the bound: what is made of them reads as it was written.
    """
    taken = set(prefetch_names(kernel))
    letters = (*string.ascii_lowercase[8:], *(f"i{n}" for n in range(len(kernel.grid))))
    names = (name for name in letters if name not in taken)
    ranges = [
        ANY_STEP if dimension.bound is None or not exact else sym.Range(0, max(dimension.bound, 1) - 1)
        for dimension in kernel.grid
    ]
    return tuple(sym.parameter(next(names), steps) for steps in ranges)


def index_map(kernel: Kernel, window: Window, indices: Sequence[sym.Expr] | None = None) -> tuple[sym.Expr, ...] | None:
    """The block that a window shows at a step of the grid: an index for each of the operand's dimensions.

    `indices` is the step, `grid_indices(kernel)` if left out. Returns `None` for a window without an index map; raises
    `ProgramError` where the map it names is not in the kernel.
    """
    if "transform_indices" not in window.params:
        return None
    indices = grid_indices(kernel) if indices is None else indices
    transform = window.params["transform_indices"]
    if isinstance(transform, ir.AffineMapAttr):
        return tuple(_affine(result, indices) for result in transform.value.results)
    symbol = ir.FlatSymbolRefAttr(transform).value
    if symbol not in kernel.functions:
        raise ProgramError(f"this kernel has a window whose index map @{symbol} is missing", kernel.body)
    key = (index_map, symbol, tuple(indices))
    if key not in kernel.memo:
        kernel.memo[key] = _Evaluation(kernel, kernel.functions[symbol], indices).results()
    return cast("tuple[sym.Expr, ...]", kernel.memo[key])


def moves(kernel: Kernel, window: Window) -> bool:
    """Whether a window may show another block at another step of the grid, as libtpu tells it.

    It does where the index map, with constants folded, still mentions the index of a dimension of more than one step.
    """
    indices = grid_indices(kernel, exact=False)
    blocks = index_map(kernel, window, indices) or ()
    stepping = {index for index, dimension in zip(indices, kernel.grid, strict=True) if dimension.bound != 1}
    return any(leaf in stepping for block in blocks for leaf in sym.leaves_of(block))


class _Evaluation:
    """One index map, evaluated once from the top."""

    def __init__(self, kernel: Kernel, function: ir.Operation, indices: Sequence[sym.Expr]) -> None:
        self._kernel = kernel
        self._function = function
        self._listing = listing_of(kernel)
        blocks = function.regions[0].blocks
        self._body = blocks[0] if len(blocks) == 1 else None
        arguments = list(blocks[0].arguments) if len(blocks) else []
        self._tables = dict(zip(arguments[len(indices) :], prefetch_names(kernel), strict=False))
        whole = {argument: sym.parameter(name, _ANYTHING) for argument, name in self._tables.items()}
        self._inputs = (*indices, *whole.values())
        self._known: dict[Value, sym.Expr] = {**dict(zip(arguments, indices, strict=False)), **whole}
        self._regions = 0

    def results(self) -> tuple[sym.Expr, ...]:
        """What the function returns."""
        if self._body is not None:
            return tuple(self._run(self._body))
        results = ir.FunctionType(ir.TypeAttr(self._function.attributes["function_type"]).value).results
        return tuple(self._unknown(self._function, k, kind) for k, kind in enumerate(results))

    def _run(self, block: ir.Block) -> list[sym.Expr]:
        """Evaluates a block's operations and returns what its terminator passes on."""
        lines = self._listing.of(block)
        for event in lines.events:
            self._known.update(zip(event.results, self._evaluate(event.op), strict=True))
        return self._all(lines.end.operands) if lines.end is not None else []

    def _all(self, values: Iterable[Value]) -> list[sym.Expr]:
        return [self._of(value) for value in values]

    def _of(self, value: Value) -> sym.Expr:
        known = self._known.get(value)
        if known is None:
            for goal in in_order(value, self._known, self._operands):
                self._compute(goal)
            known = self._known[value]
        return known

    def _operands(self, value: Value) -> Iterable[Value]:
        line = self._listing.computations.get(value)
        if line is not None:
            return line.operands
        # what is no integer isn't listed
        return () if value in self._listing.constants else defining(value)[0].operands

    def _compute(self, value: Value) -> None:
        """A value whose operands are known."""
        constant = self._listing.constants.get(value)
        if constant is not None:
            self._known[value] = constant
            return
        line = self._listing.computations.get(value)
        op, k = defining(value)
        if line is not None and line.rule is not None:
            kind = next(kind for result, kind in line.results if result == value)
            expr = line.rule(op, kind, self._all(line.operands))
            self._known[value] = self._bounded(op, k, self._result(op, k) if expr is None else expr)
        else:
            self._known.update(zip(op.results, self._evaluate(op), strict=True))

    def _evaluate(self, op: ir.Operation) -> list[sym.Expr]:
        if op.name == "scf.if" and len(op.results):
            return self._if(op)
        if len(op.regions):
            return [self._unknown(op, k, result.type) for k, result in enumerate(op.results)]
        return [self._bounded(op, k, self._result(op, k)) for k in range(len(op.results))]

    def _if(self, op: ir.Operation) -> list[sym.Expr]:
        condition = self._of(op.operands[0])
        then, other = (self._run(region.blocks[0]) for region in op.regions)
        joined = [sym.select(condition, *pair) for pair in zip(then, other, strict=True)]
        return [self._bounded(op, k, expr) for k, expr in enumerate(joined)]

    def _result(self, op: ir.Operation, k: int) -> sym.Expr:
        args, result = self._all(op.operands), op.results[k]
        kind = scalar_type(result.type)
        if kind is not None and op.name == "memref.load" and op.operands[0] in self._tables:
            return sym.load(self._tables[op.operands[0]], args[1:], kind.range, origin_of(result))
        if kind is not None and op.name == "tpu.iteration_bound":
            return self._bound(ir.IntegerAttr(op.attributes["dim"]).value)
        rule = rule_of(op)
        expr = rule(op, kind, args) if rule and kind else None
        if expr is not None:
            return expr
        return Opaque(_name(op, k), tuple(args), kind.range if kind else _ANYTHING, origin_of(result))

    def _bound(self, axis: int) -> sym.Expr:
        bound = self._kernel.grid[axis].bound
        # whoever asks is at a step, so there is one
        return (
            sym.constant(bound)
            if bound is not None
            else sym.parameter(f"num_programs({axis})", sym.Range(1, 2**31 - 1))
        )

    def _bounded(self, op: ir.Operation, k: int, expr: sym.Expr) -> sym.Expr:
        return expr if expr.size <= _LARGEST else self._unknown(op, k, op.results[k].type)

    def _unknown(self, op: ir.Operation, k: int, kind: ir.Type) -> sym.Expr:
        """A result that may depend on everything the index map is given; no two of them are equal."""
        self._regions += 1
        symbol = ir.StringAttr(self._function.attributes["sym_name"]).value
        integer = scalar_type(kind)
        name = f"{_name(op, k)}@{symbol}.{self._regions}"
        return Opaque(name, self._inputs, integer.range if integer else _ANYTHING)


def _name(op: ir.Operation, k: int) -> str:
    """The name of the function that the operation computes: results, attributes and types tell functions apart."""
    if op.name == "arith.constant":
        return str(op.attributes["value"])
    told = [f"{key} = {op.attributes[key]}" for key in op.attributes if key not in _HINTS] if not op.regions else []
    kinds = [str(value.type) for value in (*op.operands, *op.results)]
    if not _PLAIN.issuperset(kinds):
        told.append(" -> ".join(kinds))
    short = op.name.rpartition(".")[2] + (f"{{{', '.join(told)}}}" if told else "")
    return f"{short}#{k}" if k else short


def _affine(expr: ir.AffineExpr, indices: Sequence[sym.Expr]) -> sym.Expr:
    """An affine expression over the grid's indices, in mathematical integers."""
    match expr:
        case ir.AffineConstantExpr():
            return sym.constant(expr.value)
        case ir.AffineDimExpr():
            return indices[expr.position]
        case ir.AffineAddExpr():
            return sym.add(_affine(expr.lhs, indices), _affine(expr.rhs, indices))
        case ir.AffineMulExpr():
            return sym.mul(_affine(expr.lhs, indices), _affine(expr.rhs, indices))
        case ir.AffineFloorDivExpr() if 0 not in _affine(expr.rhs, indices).range:
            return sym.floordiv(_affine(expr.lhs, indices), _affine(expr.rhs, indices))
        case ir.AffineCeilDivExpr() if 0 not in _affine(expr.rhs, indices).range:
            return sym.ceildiv(_affine(expr.lhs, indices), _affine(expr.rhs, indices))
        case ir.AffineModExpr() if 0 not in _affine(expr.rhs, indices).range:
            return sym.mod(_affine(expr.lhs, indices), _affine(expr.rhs, indices))
    return Opaque(str(expr), tuple(indices), _ANYTHING)
