"""The matrix unit by hand: matrices wait in registers, and products in accumulators or a queue, until they are taken.

Each unit has staging registers, the matrix that was loaded from one of them, accumulators by address, and a queue of
rows. All of it is state of a core beside memory, as what each operation leaves to the next one. The queue has room for
more rows than that of any TPU: a kernel that needs more can't be compiled for one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.lowering import Lowering, Rule, UnsupportedError
from mosaic_grid.cpu.roots import Kind, Root
from mosaic_grid.cpu.rules.attributes import flag, integer
from mosaic_grid.cpu.rules.matmul import common_type, contract, is_rounded, of_matrices
from mosaic_grid.cpu.stored import stored
from mosaic_grid.cpu.touches import nested
from mosaic_grid.cpu.types import lowered
from mosaic_grid.ir_types import Value

_PUSH, _ACCUMULATE, _POP = "tpu.matmul_push_rhs", "tpu.matmul_acc_lhs", "tpu.matmul_pop"
_ENQUEUE, _DEQUEUE = "tpu.matmul_lhs_fifo", "tpu.matmul_pop_fifo"
_QUEUED_ROWS = 1024
_SUBLANES, _LANES = 8, 128


@dataclasses.dataclass(frozen=True)
class _Matrix:
    """The type of what a register holds."""

    shape: tuple[int, ...]
    element: ir.Type


def start(low: Lowering, body: ir.Operation) -> None:
    """Makes the state of the units that a kernel uses; to be called before its first step. Each core has its own.

    A register of which it can't be said once and for all what it holds isn't made; its operations are refused.
    """
    ops = [op for op in nested(body) if op.name in RULES]
    for unit in sorted({_unit(op) for op in ops}):
        own = [op for op in ops if _unit(op) == unit]
        pushed = {_matrix(op) for op in own if op.name == _PUSH}
        if len(pushed) != 1:
            continue
        (matrix,) = pushed
        registers = {_register(op) for op in own if op.name == _PUSH}
        for name in (_loaded(unit), *(_staged(unit, each) for each in registers)):
            low.forget(Root(name, matrix.shape, matrix.element, Kind.REGISTER))
        _start_accumulators(low, unit, own, matrix)
        _start_queue(low, unit, own, matrix)


def _start_accumulators(low: Lowering, unit: int, own: Iterable[ir.Operation], matrix: _Matrix) -> None:
    held: dict[int, set[_Matrix]] = {}
    for op in own:
        if op.name in (_ACCUMULATE, _POP):
            held.setdefault(_address(op), set()).add(_product(op, matrix))
    end = 0
    for address in sorted(held):
        if len(held[address]) == 1 and address >= end:
            (product,) = held[address]
            rows, columns = product.shape
            end = address + math.ceil(rows / _SUBLANES) * math.ceil(columns / _LANES)
            root = Root(_accumulator(unit, address), product.shape, product.element, Kind.REGISTER)
            low.memory.state[root] = build.constant(0, root.shape, root.element)


def _start_queue(low: Lowering, unit: int, own: Iterable[ir.Operation], matrix: _Matrix) -> None:
    products = [_product(op, matrix) for op in own if op.name in (_ENQUEUE, _DEQUEUE)]
    if len({(product.shape[1], product.element) for product in products}) != 1:
        return
    together = math.gcd(*(product.shape[0] for product in products))
    most = max(_QUEUED_ROWS, *(product.shape[0] for product in products))
    shape = (math.ceil(most / together), together, products[0].shape[1])
    low.forget(Root(_queue(unit), shape, products[0].element, Kind.REGISTER))
    for name in (_first(unit), _end(unit)):
        low.memory.state[Root(name, (), build.i32_type(), Kind.REGISTER)] = build.i32(0)


def _push(low: Lowering, op: ir.Operation) -> None:
    """Stages a matrix."""
    value = low.value(op.operands[0])
    _set(low, _staged(_unit(op), _register(op)), build.transpose(value, [1, 0]) if flag(op, "transpose") else value)


def _accumulate(low: Lowering, op: ir.Operation) -> None:
    """Adds a product to an accumulator."""
    name = _accumulator(_unit(op), _address(op))
    before = _get(low, name)
    _set(low, name, hlo.add(before, _multiplied(low, op, build.element_of(before))))


def _pop(low: Lowering, op: ir.Operation) -> Value:
    """Takes what an accumulator holds, and leaves zeros."""
    name = _accumulator(_unit(op), _address(op))
    value = _get(low, name)
    _set(low, name, build.zeros_like(value))
    return build.reshape(value, lowered(op.results[0].type).shape)


def _enqueue(low: Lowering, op: ir.Operation) -> None:
    """Puts the rows of a product at the end of the queue."""
    name, end = _queue(_unit(op)), _end(_unit(op))
    queue = _get(low, name)
    places, together, columns = build.shape_of(queue)
    product = _multiplied(low, op, build.element_of(queue))
    for first in range(0, build.shape_of(product)[0], together):
        part = build.reshape(build.slice_(product, [first, 0], [together, columns]), (1, together, columns))
        queue = build.update(queue, part, [_advance(low, end, places), 0, 0])
    _set(low, name, queue)


def _dequeue(low: Lowering, op: ir.Operation) -> Value:
    """Takes rows from the front of the queue."""
    kind, first = lowered(op.results[0].type), _first(_unit(op))
    queue = _get(low, _queue(_unit(op)))
    places, together, columns = build.shape_of(queue)
    count = math.prod(kind.shape) // (together * columns)
    parts = [
        build.dynamic_slice(queue, [_advance(low, first, places), 0, 0], [1, together, columns]) for _ in range(count)
    ]
    return build.reshape(build.concatenate(parts, 0), kind.shape)


def _advance(low: Lowering, name: str, places: int) -> Value:
    """The place that a counter is at, which then goes on to the next."""
    place = _get(low, name)
    _set(low, name, hlo.remainder(hlo.add(place, build.i32(1)), build.i32(places)))
    return place


def _multiplied(low: Lowering, op: ir.Operation, element: ir.Type) -> Value:
    """The product with the loaded matrix, which may have to be loaded first."""
    unit, lhs = _unit(op), low.value(op.operands[0])
    if "load_staged_rhs" in op.attributes:
        _set(low, _loaded(unit), _get(low, _staged(unit, integer(op, "load_staged_rhs"))))
    rhs = _get(low, _loaded(unit))
    if build.element_of(lhs) != build.element_of(rhs):
        raise UnsupportedError("matrices of different types, of which one is taken for the other")
    left, right = common_type(lhs, rhs, element, rounded=is_rounded(low, op))
    return contract(left, right, of_matrices(lhs, rhs, transposed=False), element)


def _get(low: Lowering, name: str) -> Value:
    return low.memory.whole(_root(low, name))


def _set(low: Lowering, name: str, value: Value) -> None:
    root = _root(low, name)
    if build.shape_of(value) != root.shape:
        raise UnsupportedError(f"{list(build.shape_of(value))} for {name}, which holds {list(root.shape)}")
    # behind a barrier, or XLA makes a chain of many of them a single operation, for which it takes minutes
    [low.memory.state[root]] = build.barrier(stored(value))


def _root(low: Lowering, name: str) -> Root:
    found = next((root for root in low.memory.state if root.kind is Kind.REGISTER and root.name == name), None)
    if found is None:
        raise UnsupportedError(f"{name} holds matrices of several types or sizes, or nobody fills it")
    return found


def _matrix(op: ir.Operation) -> _Matrix:
    """What an operation pushes, as it is multiplied with."""
    kind = lowered(op.operands[0].type)
    return _Matrix(tuple(reversed(kind.shape)) if flag(op, "transpose") else tuple(kind.shape), kind.element_type)


def _product(op: ir.Operation, matrix: _Matrix) -> _Matrix:
    """What an operation puts into an accumulator or the queue, or takes from there."""
    if len(op.results):
        kind = lowered(op.results[0].type)
        return _Matrix((math.prod(kind.shape[:-1]), kind.shape[-1]), kind.element_type)
    sum_ = ir.F32Type.get() if build.is_float(matrix.element) else build.i32_type()
    return _Matrix((lowered(op.operands[0].type).shape[0], matrix.shape[1]), sum_)


def _unit(op: ir.Operation) -> int:
    return integer(op, "mxu_index")


def _register(op: ir.Operation) -> int:
    return integer(op, "staging_register") if "staging_register" in op.attributes else 0


def _address(op: ir.Operation) -> int:
    return integer(op, "acc")


def _staged(unit: int, register: int) -> str:
    return f"staging register {register} of matrix unit {unit}"


def _loaded(unit: int) -> str:
    return f"what is loaded into matrix unit {unit}"


def _accumulator(unit: int, address: int) -> str:
    return f"accumulator {address} of matrix unit {unit}"


def _queue(unit: int) -> str:
    return f"the queue of matrix unit {unit}"


def _first(unit: int) -> str:
    return f"the front of the queue of matrix unit {unit}"


def _end(unit: int) -> str:
    return f"the end of the queue of matrix unit {unit}"


RULES: dict[str, Rule] = {
    _PUSH: _push,
    _ACCUMULATE: _accumulate,
    _POP: _pop,
    _ENQUEUE: _enqueue,
    _DEQUEUE: _dequeue,
}
