"""The outer program: StableHLO on scalars and small arrays, calls, and launches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from mosaic_grid.program import KERNEL, Program, block_of, symbol_of
from oracle.code import Code, Compiler, Frame, Function, Rule, Step, procedure, pure, store
from oracle.elementwise import constant, divide
from oracle.grid import CompiledKernel, compile_kernel, launch
from oracle.kernel_ops import reshape
from oracle.machine import Launched, Machine
from oracle.values import Array, dtype_of, poisoned, shape_of

COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def run_program(module: ir.Operation, inputs: Sequence[Array], machine: Machine | None = None) -> list[Array]:
    """The results of one run of a program: see `Interpreter`."""
    return Interpreter(module).run(inputs, machine or Machine())


class Interpreter:
    """A program that can be run many times: its functions and kernels are compiled when they are first needed.

    Raises `NotImplementedError` for an op or type the oracle doesn't have, and `OracleError` for a wrong program.
    """

    def __init__(self, module: ir.Operation) -> None:
        self._program, self._machine = Program(module), Machine()
        functions = (op.operation for op in block_of(module) if op.operation.name == "func.func")
        self._functions = {symbol_of(op) or "": op for op in functions}
        self._code: dict[str, Code] = {}
        self._kernels: dict[str, CompiledKernel] = {}

    def run(self, inputs: Sequence[Array], machine: Machine) -> list[Array]:
        """The results of the public function `main`; `inputs` are left as they are."""
        self._machine = machine
        with np.errstate(all="ignore"):
            return [np.asarray(result) for result in self._run("main", [np.asarray(value) for value in inputs])]

    def _run(self, name: str, arguments: Sequence[Array]) -> tuple[Array, ...]:
        if name not in self._code:
            rules = {**RULES, "func.call": procedure(self._call), "stablehlo.custom_call": procedure(self._launch)}
            self._code[name] = Compiler(rules).block(self._functions[name].regions[0].blocks[0])
        return self._code[name].run(Frame({}), arguments)

    def _call(self, op: ir.Operation) -> Callable[..., Sequence[Array]]:
        name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value

        def call(*arguments: Array) -> tuple[Array, ...]:
            return self._run(name, arguments)

        return call

    def _launch(self, op: ir.Operation) -> Callable[..., Sequence[Array]]:
        if KERNEL not in op.attributes:
            raise NotImplementedError(f"the oracle has no custom call {op.attributes['call_target_name']}")
        symbol = ir.FlatSymbolRefAttr(op.attributes[KERNEL]).value
        aliases = _aliases(op)
        kinds = [result.type for result in op.results]

        def run(*operands: Array) -> tuple[Array, ...]:
            if symbol not in self._kernels:
                self._kernels[symbol] = compile_kernel(self._program.kernels[symbol])
            outputs = [poisoned(shape_of(kind), dtype_of(kind)) for kind in kinds]
            shared = [_read_only(operand) for operand in operands]
            for result, operand in aliases.items():
                outputs[result][...] = operands[operand]
                shared[operand] = outputs[result]  # the input and the output are one buffer
            self._machine.launches.append(Launched(symbol, operands))
            if not self._machine.dry:
                launch(self._kernels[symbol], shared, outputs, self._machine)
            return tuple(outputs)

        return run


def _aliases(op: ir.Operation) -> dict[int, int]:
    """Which result is which operand."""
    if "output_operand_aliases" not in op.attributes:
        return {}
    found = [stablehlo.OutputOperandAlias(alias) for alias in ir.ArrayAttr(op.attributes["output_operand_aliases"])]
    return {next(iter(alias.output_tuple_indices), 0): alias.operand_index for alias in found}


def _read_only(operand: Array) -> Array:
    view = np.asarray(operand).view()
    view.flags.writeable = False
    return view


def _divide(op: ir.Operation) -> Function:
    return divide if dtype_of(op.results[0].type).kind == "i" else np.divide


def _compare(op: ir.Operation) -> Function:
    return COMPARISONS[stablehlo.ComparisonDirectionAttr(op.attributes["comparison_direction"]).value]


def _convert(op: ir.Operation) -> Function:
    dtype = dtype_of(op.results[0].type)
    return lambda value: value.astype(dtype)


def _concatenate(op: ir.Operation) -> Function:
    axis = ir.IntegerAttr(op.attributes["dimension"]).value
    return lambda *parts: np.concatenate(parts, axis)


def _broadcast(op: ir.Operation) -> Function:
    shape, axes = shape_of(op.results[0].type), tuple(ir.DenseI64ArrayAttr(op.attributes["broadcast_dimensions"]))
    if axes:
        raise NotImplementedError("the oracle has no stablehlo.broadcast_in_dim but of scalars")
    return lambda value: np.broadcast_to(value, shape)


def _case(op: ir.Operation, compiler: Compiler) -> Step:
    choice, results = compiler.slots(list(op.operands)), compiler.slots(list(op.results))
    branches = [compiler.block(region.blocks[0]) for region in op.regions]

    def step(frame: Frame) -> None:
        number = int(frame.values[choice[0]])
        # an index out of range picks the last branch
        chosen = branches[number if 0 <= number < len(branches) else -1]
        store(frame, results, chosen.run(frame))

    return step


RULES: dict[str, Rule] = {
    "stablehlo.constant": pure(constant),
    "stablehlo.add": pure(lambda op: np.add),
    "stablehlo.subtract": pure(lambda op: np.subtract),
    "stablehlo.multiply": pure(lambda op: np.multiply),
    "stablehlo.divide": pure(_divide),
    "stablehlo.minimum": pure(lambda op: np.minimum),
    "stablehlo.maximum": pure(lambda op: np.maximum),
    "stablehlo.clamp": pure(lambda op: lambda low, value, high: np.minimum(np.maximum(value, low), high)),
    "stablehlo.and": pure(lambda op: np.bitwise_and),
    "stablehlo.or": pure(lambda op: np.bitwise_or),
    "stablehlo.compare": pure(_compare),
    "stablehlo.select": pure(lambda op: np.where),
    "stablehlo.convert": pure(_convert),
    "stablehlo.reshape": pure(reshape),
    "stablehlo.concatenate": pure(_concatenate),
    "stablehlo.broadcast_in_dim": pure(_broadcast),
    "stablehlo.case": _case,
}
