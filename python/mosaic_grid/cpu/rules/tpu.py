"""What is left of `tpu`: elementwise functions, counting, masks, what asks for the place in the grid, and hints."""

from __future__ import annotations

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.bits import width_of
from mosaic_grid.cpu.devices import PARTITIONS, REPLICAS, stated
from mosaic_grid.cpu.faults import Said, What
from mosaic_grid.cpu.lowering import Lowering, Rule, UnsupportedError
from mosaic_grid.cpu.prints import text_of
from mosaic_grid.cpu.rules.attributes import integer, integers
from mosaic_grid.cpu.rules.shape import shape_of_result
from mosaic_grid.cpu.rules.vector import box
from mosaic_grid.cpu.types import lowered
from mosaic_grid.cpu.wide import widen, widened
from mosaic_grid.ir_types import Value


def _iota(_: Lowering, op: ir.Operation) -> Value:
    """The position in the listed dimensions, taken together in row-major order: the last one counts fastest."""
    kind = lowered(op.results[0].type)
    result, stride = None, 1
    for axis in reversed(integers(op, "dimensions")):
        position = build.iota(kind.shape, axis, kind.element_type)
        if stride != 1:
            position = hlo.multiply(position, build.constant(stride, kind.shape, kind.element_type))
        result = position if result is None else hlo.add(result, position)
        stride *= kind.shape[axis]
    return build.constant(0, kind.shape, kind.element_type) if result is None else result


def _reciprocal(low: Lowering, op: ir.Operation) -> Value:
    """Exact, also where the kernel asks for an approximation or less than the full range: that is the TPU's affair."""

    def inverse(value: Value) -> Value:
        return hlo.divide(build.constant(1, build.shape_of(value), build.element_of(value)), value)

    return widened(inverse, low.value(op.operands[0]))


def _logistic(low: Lowering, op: ir.Operation) -> Value:
    return widened(hlo.logistic, low.value(op.operands[0]))


def _weird(low: Lowering, op: ir.Operation) -> Value:
    """Whether a float is NaN or infinite."""
    return hlo.not_(hlo.is_finite(widen(low.value(op.operands[0]))))


def _create_mask(low: Lowering, op: ir.Operation) -> Value:
    """The first half of the operands are the lower ends of a box, the second the upper ones, which are outside."""
    shape = shape_of_result(op)
    bounds = [low.index(operand) for operand in op.operands]
    if len(bounds) != 2 * len(shape):
        raise UnsupportedError(f"{len(bounds) // 2} pairs of bounds for a mask with {len(shape)} dimensions")
    return box(shape, bounds[: len(shape)], bounds[len(shape) :])


def _create_subelement_mask(_: Lowering, op: ir.Operation) -> Value:
    """Packed rows from one to another; where these are in the wrong order, all rows but those between."""
    shape = shape_of_result(op)
    if len(shape) not in (2, 3):
        raise UnsupportedError(f"a mask with {len(shape)} dimensions")
    start, stop = integer(op, "from"), integer(op, "to")
    packing = shape[2] if len(shape) == 3 else 1
    row = hlo.multiply(build.iota(shape, 0), build.constant(packing, shape, build.i32_type()))
    if packing > 1:
        row = hlo.add(row, build.iota(shape, 2))
    first, last = (build.constant(bound, shape, build.i32_type()) for bound in sorted((start, stop)))
    between = hlo.and_(build.compare(row, first, "GE"), build.compare(row, last, "LT"))
    return between if start <= stop else hlo.not_(between)


def _same(low: Lowering, op: ir.Operation) -> Value:
    return low.value(op.operands[0])


def _iteration_bound(low: Lowering, op: ir.Operation) -> Value:
    """The size of a dimension of the grid in this launch."""
    return build.as_value(low.bounds[integer(op, "dim")])


def _device_id(_: Lowering, op: ir.Operation) -> Value:
    """The device's number among those that the program is for, which are partitions of one or replicas."""
    if (stated(op, PARTITIONS) or 1) > 1:
        return build.convert(hlo.partition_id(), build.i32_type())
    if (stated(op, REPLICAS) or 1) > 1:
        return build.convert(hlo.replica_id(), build.i32_type())
    return build.i32(0)


def _assert(low: Lowering, op: ir.Operation) -> None:
    """What the kernel's author checks: a fault where it doesn't hold and everything is recorded, else nothing."""
    if low.faults is not None and low.faults.everything:
        broken = hlo.not_(low.value(op.operands[0]))
        text = ir.StringAttr(op.attributes["msg"]).value
        low.faults.note(low, broken, What.FAILED, op, low.faults.root, said=Said(text))


def _log(low: Lowering, op: ir.Operation) -> None:
    """What the kernel's author prints is printed; recorded where everything is, of vectors the text alone."""
    if low.prints is not None:
        low.prints.add(low, op)
    if low.faults is None or not low.faults.everything:
        return
    values = [low.value(operand) for operand in op.operands if not isinstance(operand.type, ir.MemRefType)]
    scalars = [value for value in values if not build.shape_of(value) and width_of(build.element_of(value)) <= 32]
    if len(scalars) < len(op.operands):
        scalars = []
    floats = tuple(build.is_float(build.element_of(value)) for value in scalars)
    numbers = [_bits_of(value) for value in scalars]
    text = text_of(op)
    low.faults.note(low, build.true(), What.LOGGED, op, low.faults.root, details=numbers, said=Said(text, floats))


def _bits_of(scalar: Value) -> Value:
    """An i32: an integer as it is, of a float the bits as f32."""
    element = build.element_of(scalar)
    if build.is_float(element):
        return build.bitcast(build.convert(scalar, ir.F32Type.get()), build.i32_type())
    return build.convert(scalar, build.i32_type())


def _nothing(_: Lowering, __: ir.Operation) -> None:
    """For people and profilers."""


RULES: dict[str, Rule] = {
    "cf.assert": _assert,
    "tpu.assume_multiple": _same,
    "tpu.create_mask": _create_mask,
    "tpu.create_subelement_mask": _create_subelement_mask,
    "tpu.delay": _nothing,
    "tpu.device_id": _device_id,
    "tpu.iota": _iota,
    "tpu.iteration_bound": _iteration_bound,
    "tpu.log": _log,
    "tpu.log_buffer": _log,
    "tpu.logistic": _logistic,
    "tpu.reciprocal": _reciprocal,
    "tpu.trace_start": _nothing,
    "tpu.trace_stop": _nothing,
    "tpu.trace_value": _nothing,
    "tpu.weird": _weird,
}
