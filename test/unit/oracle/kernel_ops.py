"""The ops of kernels that touch memory, shapes and control flow. A memref is the numpy array it stands for."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
from jaxlib.mlir import ir

from oracle import elementwise
from oracle.code import Compiler, Frame, Function, Rule, Step, procedure, pure, store
from oracle.machine import OracleError
from oracle.values import Array, dtype_of, shape_of

REDUCTIONS = {"add": np.add, "mul": np.multiply, "maximumf": np.maximum, "minimumf": np.minimum}
REDUCTIONS |= {"maxsi": np.maximum, "minsi": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or}

PLAIN_MATMUL = "#tpu.dot_dimension_numbers<[1], [0], [0], [1], [0, 0, 1, 1], [], []>"


def region_of(memory: Array, indices: tuple[Array, ...], shape: tuple[int, ...]) -> tuple[slice, ...]:
    """The part of `shape` that begins at `indices`. Raises `OracleError` where it is not all inside."""
    extent = (1,) * (len(indices) - len(shape)) + shape
    starts = [int(index) for index in indices]
    if any(start < 0 or start + n > size for start, n, size in zip(starts, extent, memory.shape, strict=True)):
        raise OracleError(f"an access of {shape} at {tuple(starts)} in memory of {memory.shape}")
    return tuple(slice(start, start + n) for start, n in zip(starts, extent, strict=True))


def _load(op: ir.Operation) -> Function:
    shape = shape_of(op.results[0].type)

    def load(memory: Array, *indices: Array) -> Array:
        return memory[region_of(memory, indices, shape)].reshape(shape).copy()

    return _plain(op, load)


def _store(op: ir.Operation) -> Callable[..., Sequence[Array]]:
    shape = shape_of(op.operands[0].type)

    def write(value: Array, memory: Array, *indices: Array) -> tuple[()]:
        part = memory[region_of(memory, indices, shape)]
        part[...] = value.reshape(part.shape)
        return ()

    return _plain(op, write)


def _plain[T: Callable[..., object]](op: ir.Operation, function: T) -> T:
    """`function`, for a load or store without mask, strides and addition."""
    attributes = op.attributes
    segments = "operandSegmentSizes"  # the last one is the mask's
    masked = segments in attributes and list(ir.DenseI32ArrayAttr(attributes[segments]))[-1] != 0
    strided = "strides" in attributes and any(n != 1 for n in ir.DenseI32ArrayAttr(attributes["strides"]))
    adds = "add" in attributes and ir.BoolAttr(attributes["add"]).value
    if masked or strided or adds:
        raise NotImplementedError(f"the oracle has no {op.name} with a mask, strides or add")
    return function


def _broadcast(op: ir.Operation) -> Function:
    shape = shape_of(op.results[0].type)
    return lambda value: np.broadcast_to(value, shape)


def reshape(op: ir.Operation) -> Function:
    """The same elements in the result's shape."""
    shape = shape_of(op.results[0].type)
    return lambda value: np.reshape(value, shape)


def _extract(op: ir.Operation) -> Function:
    if len(op.operands) > 1:
        raise NotImplementedError("the oracle has no vector.extract at a dynamic position")
    position = tuple(ir.DenseI64ArrayAttr(op.attributes["static_position"]))
    return lambda value: np.asarray(value[position])


def _reduce(op: ir.Operation) -> Function:
    kind = str(op.attributes["kind"]).removeprefix("#vector.kind<").removesuffix(">")
    if kind not in REDUCTIONS:
        raise NotImplementedError(f"the oracle has no reduction {kind}")
    function, axes = REDUCTIONS[kind], tuple(ir.DenseI64ArrayAttr(op.attributes["reduction_dims"]))
    return lambda value, start: function(start, function.reduce(value, axis=axes, dtype=value.dtype))


def _iota(op: ir.Operation) -> Function:
    shape, dtype = shape_of(op.results[0].type), dtype_of(op.results[0].type)
    dimensions = list(ir.DenseI32ArrayAttr(op.attributes["dimensions"]))
    if len(dimensions) != 1:
        raise NotImplementedError("the oracle has no tpu.iota over several dimensions")
    value = np.indices(shape, dtype)[dimensions[0]]
    return lambda: value


def _matmul(op: ir.Operation) -> Function:
    found = re.sub(r"\s+", " ", str(op.attributes["dimension_numbers"]))
    if found != PLAIN_MATMUL:
        raise NotImplementedError(f"the oracle has no tpu.matmul with {found}")
    dtype = dtype_of(op.results[0].type)
    return lambda a, b, start: np.add(np.matmul(a.astype(dtype), b.astype(dtype)), start)


def _iteration_bound(op: ir.Operation, compiler: Compiler) -> Step:
    axis, results = ir.IntegerAttr(op.attributes["dim"]).value, compiler.slots(list(op.results))

    def step(frame: Frame) -> None:
        store(frame, results, [np.asarray(frame.bounds[axis], np.int32)])

    return step


def _if(op: ir.Operation, compiler: Compiler) -> Step:
    condition, results = compiler.slots([op.operands[0]]), compiler.slots(list(op.results))
    then, *otherwise = [compiler.block(region.blocks[0]) for region in op.regions if len(region.blocks)]

    def step(frame: Frame) -> None:
        if frame.values[condition[0]]:
            store(frame, results, then.run(frame))
        elif otherwise:
            store(frame, results, otherwise[0].run(frame))

    return step


def _for(op: ir.Operation, compiler: Compiler) -> Step:
    low, high, by, *start = compiler.slots(list(op.operands))
    results, body = compiler.slots(list(op.results)), compiler.block(op.regions[0].blocks[0])
    dtype = dtype_of(op.operands[0].type)

    def step(frame: Frame) -> None:
        carried = tuple(frame.values[slot] for slot in start)
        for index in range(int(frame.values[low]), int(frame.values[high]), int(frame.values[by])):
            carried = body.run(frame, (np.asarray(index, dtype), *carried))
        store(frame, results, carried)

    return step


RULES: dict[str, Rule] = {
    **elementwise.RULES,
    **dict.fromkeys(("vector.load", "memref.load", "tpu.vector_load"), pure(_load)),
    **dict.fromkeys(("vector.store", "memref.store", "tpu.vector_store"), procedure(_store)),
    "vector.broadcast": pure(_broadcast),
    "vector.shape_cast": pure(reshape),
    "vector.extract": pure(_extract),
    "vector.multi_reduction": pure(_reduce),
    "tpu.iota": pure(_iota),
    "tpu.matmul": pure(_matmul),
    "tpu.iteration_bound": _iteration_bound,
    "scf.if": _if,
    "scf.for": _for,
}
