"""Compiling and running a StableHLO program on the CPU, with the PJRT client of jaxlib. JAX is not imported.

This is a private corner of jaxlib: `jaxlib._jax` has no stable interface, and JAX is its one user. All of it that is
needed here stands in this module. What is called may move or change its signature with any release of jaxlib; that is
reported as a `ClientError` that says so, and not as whatever Python makes of it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxlib import _jax, xla_client
from jaxlib.mlir import ir

from mosaic_grid.cpu.arrays import Array, TensorSpec, spec_of
from mosaic_grid.cpu.xla_options import COMPILER_OPTIONS, SCHEDULER
from mosaic_grid.errors import UserError
from mosaic_grid.write import write_bytecode

QUICK = ("xla_backend_optimization_level", 0)
"""LLVM optimises nothing. Some of its passes take time that grows with the square of a loop's length."""


class ClientError(Exception):
    """The interface of jaxlib's CPU client is not the one that this module knows."""


@dataclasses.dataclass(frozen=True)
class Executable:
    """A compiled program; calling it with an array for each argument of `@main` returns an array for each result."""

    arguments: tuple[TensorSpec, ...]
    results: tuple[TensorSpec, ...]
    _loaded: Any

    def __call__(self, *arrays: Array) -> list[Array]:
        """Runs the program and waits for it. Shapes and types must fit: nothing is converted. Results are read-only.

        Raises:
            UserError: an array doesn't fit the argument, or the program failed.
        """
        inputs = _checked(self.arguments, arrays)
        with _guarded("running"):
            _, device = _client()
            sharding = _sharding(device)
            buffers = [
                _jax.batched_device_put(spec, sharding, [array], [device], enable_x64=True)
                for spec, array in zip(self.arguments, inputs, strict=True)
            ]
            handlers = [_result_handler(spec, sharding) for spec in self.results]
            outputs = self._loaded.execute_sharded(buffers).consume_with_handlers(handlers)
            return [spec.read(output) for spec, output in zip(self.results, outputs, strict=True)]


def compile_program(module: ir.Operation, *, quick: bool = False) -> Executable:
    """Compiles a module of StableHLO (and CHLO) whose public function `@main` is the program.

    A `quick` compilation of a large program takes a tenth of the time, and the program maybe five times as long.

    Raises:
        UserError: there is no such function, it takes or returns what is no array of static shape, it needs more than
            one device, or XLA refuses the program.
    """
    _refuse_many_devices(module)
    arguments, results = _signature(module)
    options = [*COMPILER_OPTIONS.items(), *([QUICK] if quick else [])]
    with _guarded("compiling"):
        try:
            loaded = _compile(module, options)
        except _jax.JaxRuntimeError as error:
            if SCHEDULER not in str(error):
                raise
            # an XLA without it schedules as it likes: slower, with the same results
            loaded = _compile(module, [(name, value) for name, value in options if name != SCHEDULER])
    return Executable(arguments, results, loaded)


def _compile(module: ir.Operation, options: Sequence[tuple[str, str | int]]) -> Any:
    """The program as XLA loads it."""
    client, device = _client()
    compile_options = _jax.CompileOptions()
    compile_options.env_option_overrides = list(options)
    return client.compile_and_load(write_bytecode(module), _jax.DeviceList((device,)), compile_options)


@functools.cache
def _sharding(device: Any) -> Any:
    """That of an array on the device, with what jaxlib asks those of JAX's for."""

    class Sharding(_jax.SingleDeviceSharding):  # type: ignore[misc]  # not annotated
        memory_kind = None

        def _to_xla_hlo_sharding(self, dimensions: int) -> Any:
            return xla_client.HloSharding.replicate()

    return Sharding(device)


def _result_handler(spec: TensorSpec, sharding: Any) -> Any:
    """What makes an array of a result; jaxlib 0.10 has JAX look at it, which isn't here, unless it is told not to."""
    try:
        return _jax.array_result_handler(spec, sharding, True, _skip_checks=True)
    except TypeError:
        return _jax.array_result_handler(spec, sharding, True)


@functools.cache
def _client() -> tuple[Any, Any]:
    """The client and its one device, made once for a process."""
    client: Any = xla_client.make_cpu_client(num_devices=1)
    return client, client.local_devices()[0]


@contextlib.contextmanager
def _guarded(doing: str) -> Iterator[None]:
    """Tells XLA's refusal of a program from an interface that has changed."""
    try:
        yield
    except _jax.JaxRuntimeError as error:
        message, *rest = str(error).splitlines() or [""]
        raise UserError(f"{doing} the program on the CPU failed: {message}", notes=rest[:10]) from None
    except (AttributeError, TypeError, ImportError) as error:
        raise ClientError(f"{doing}: jaxlib's CPU client isn't the one that is known here: {error}") from error


def _refuse_many_devices(module: ir.Operation) -> None:
    """One device runs the program; JAX states how many it was lowered for."""
    counts = [ir.IntegerAttr(module.attributes[key]).value if key in module.attributes else 1 for key in _DEVICES]
    if math.prod(counts) > 1:
        parts = ", ".join(f"{key} = {count}" for key, count in zip(_DEVICES, counts, strict=True))
        raise UserError(f"the program needs {math.prod(counts)} devices ({parts}); on the CPU there is one")


_DEVICES = ("mhlo.num_replicas", "mhlo.num_partitions")


def _signature(module: ir.Operation) -> tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...]]:
    """What `@main` takes and returns."""
    for op in module.regions[0].blocks[0].operations:
        if op.operation.name == "func.func" and op.operation.attributes["sym_name"].value == "main":
            kind = ir.FunctionType(op.operation.attributes["function_type"].value)
            blocks = op.operation.regions[0].blocks
            if not len(blocks):
                break
            names = [_name(argument) for argument in blocks[0].arguments]
            arguments = [
                spec_of(t, f"argument {i}{name}") for i, (t, name) in enumerate(zip(kind.inputs, names, strict=True))
            ]
            return tuple(arguments), tuple(spec_of(t, f"result {i}") for i, t in enumerate(kind.results))
    raise UserError("the program has no function @main that could be run")


def _name(argument: ir.Value[Any]) -> str:
    """What the author calls an argument, in brackets, where its location says so."""
    location = argument.location
    return f" ({location.name_str})" if isinstance(location, ir.NameLoc) else ""


def _checked(specs: Sequence[TensorSpec], arrays: Sequence[Array]) -> list[Array]:
    if len(specs) != len(arrays):
        raise UserError(f"the program takes {len(specs)} arguments, it got {len(arrays)}")
    found = [np.asarray(array) for array in arrays]
    for spec, array in zip(specs, found, strict=True):
        if array.shape != spec.shape or array.dtype != spec.dtype:
            raise UserError(f"{spec.name} of the program is {spec}, it got {TensorSpec('', array.shape, array.dtype)}")
    return found
