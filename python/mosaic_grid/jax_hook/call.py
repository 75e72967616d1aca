"""A lowered program inside of `jax.jit`: its StableHLO becomes a function of the module that JAX is making.

It is a primitive whose lowering merges the program in, as `jax.export` does with an exported one. Most of what this
takes is in JAX's public names; what isn't documented is called in `_merged` alone, and a change of it is told as one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Never

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func

from mosaic_grid.cpu.arrays import TensorSpec
from mosaic_grid.errors import UserError

_run = Primitive("mosaic_run")
_run.multiple_results = True
_LONGEST = 300
"""How many characters of a tree are told."""


@dataclasses.dataclass(frozen=True)
class Program:
    """Bytecode as a parameter of a primitive: JAX prints those."""

    bytecode: bytes

    def __repr__(self) -> str:
        return f"<{len(self.bytecode)} bytes>"


def is_traced(value: object) -> bool:
    """Whether JAX is tracing a function of this value."""
    return isinstance(value, jax.core.Tracer)


def call(program: bytes, arguments: Sequence[TensorSpec], results: Sequence[TensorSpec], args: Sequence[Any]) -> Any:
    """Calls a program in the function that is being traced; returns a tuple of traced arrays.

    `program` is bytecode of a module of StableHLO, whose `@main` takes `arguments` and returns `results`. Under
    `jax.vmap` it is called for one element after the other. Raises `UserError` where `args` don't fit.
    """
    if len(args) != len(arguments):
        raise UserError(f"the program takes {len(arguments)} arguments; it got {len(args)}")
    arrays = [_fitting(arg, spec) for arg, spec in zip(args, arguments, strict=True)]
    kinds = tuple((spec.shape, spec.dtype) for spec in results)

    def one(*arrays: Any) -> Any:
        return tuple(_run.bind(*arrays, program=Program(program), results=kinds))

    return jax.custom_batching.sequential_vmap(one)(*arrays)


def flat_arguments(program: object, args: Sequence[Any]) -> list[Any] | None:
    """The arguments of `@main` of what JAX lowered or exported, from those of the function; `None` for anything else.

    Trees become their leaves, and what JAX has dropped, because the function doesn't use it, goes. Raises `UserError`
    where the arguments aren't trees of the same structure as those that the function was lowered for, or that was
    lowered with some by keyword.
    """
    if isinstance(program, jax.stages.Lowered):
        try:
            kept = program._lowering.compile_args["kept_var_idx"]
        except (AttributeError, KeyError, TypeError):
            kept = None
    elif isinstance(program, jax.export.Exported):
        kept = program.module_kept_var_idx
    else:
        return None
    tree: Any = program.in_tree
    by_position, by_keyword = tree.children()
    if by_keyword.num_leaves:
        notes = ["lower it with all of them by position, or run its text, lowered.as_text(): that takes a flat list of "
                 "the arrays of @main, in order"]  # fmt: skip
        raise UserError("the function was lowered with arguments by keyword, and run takes none", notes=notes)
    try:
        leaves: list[Any] = tree.flatten_up_to((tuple(args), {}))
    except (ValueError, TypeError):
        wanted = len(by_position.children())
        notes = [f"it takes {wanted} argument{'s' * (wanted != 1)}, and got {len(args)}"] if wanted != len(args) else []
        notes += [f"it was lowered for {_structure(by_position)}, where * is an array",
                  f"it got {_structure(jax.tree.structure(tuple(args)))}"]  # fmt: skip
        raise UserError("the arguments don't have the structure of those that the function was lowered for",
                        notes=notes) from None  # fmt: skip
    return leaves if kept is None else [leaf for number, leaf in enumerate(leaves) if number in kept]


def _structure(tree: Any) -> str:
    """A tree without its leaves, in Python's notation, not too long."""
    text = str(tree).removeprefix("PyTreeDef(").removesuffix(")")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def bytes_of(program: object) -> bytes | None:
    """What JAX lowered or exported as MLIR bytecode, or as a StableHLO portable artifact; `None` for anything else."""
    if isinstance(program, jax.export.Exported):
        return bytes(program.mlir_module_serialized)
    if isinstance(program, jax.stages.Lowered):
        module: Any = program.compiler_ir("stablehlo")
        return mlir.module_to_bytecode(module)
    return None


def _fitting(arg: Any, spec: TensorSpec) -> Any:
    array = arg if is_traced(arg) else jnp.asarray(arg, None if hasattr(arg, "dtype") else spec.dtype)
    if array.shape != spec.shape or array.dtype != spec.dtype:
        raise UserError(f"{spec.name} is {spec}; it got {array.dtype} of shape {list(array.shape)}")
    return array


def _types(*_: Any, program: Program, results: Any) -> list[Any]:
    return [jax.core.ShapedArray(shape, dtype) for shape, dtype in results]


def _evaluate(*arrays: Any, **parameters: Any) -> Any:
    return jax.jit(lambda *each: _run.bind(*each, **parameters))(*arrays)


def _lower(context: Any, *operands: Any, program: Program, results: Any) -> Any:
    return _merged(context, operands, program.bytecode)


def _merged(context: Any, operands: Sequence[Any], program: bytes) -> Any:
    """The results of a call of the program, which is merged into the module that is being made."""
    try:
        into = context.module_context
        module = ir.Module.parse(program, context=into.context)
        main: Any = ir.SymbolTable(module.operation)["main"]
        types = main.type.results
        symbol = mlir.merge_mlir_modules(into.module, "mosaic_run", module, dst_symtab=into.symbol_table)
        return func.CallOp(types, ir.FlatSymbolRefAttr.get(symbol), list(operands)).results
    except (AttributeError, TypeError, KeyError) as error:
        raise UserError(f"a program can't be run under jax.jit: JAX {jax.__version__} is too new or too old",
                        notes=[str(error)]) from error  # fmt: skip


def _refuse_platform(context: Any, *operands: Any, program: Program, results: Any) -> Never:
    raise UserError("mosaic_grid.run works on the CPU, and this function is compiled for another platform",
                    notes=["jit it for the CPU: jax.jit(f, device=...), or JAX_PLATFORMS=cpu"])  # fmt: skip


def _refuse_derivative(primals: Any, tangents: Any, **_: Any) -> Never:
    raise UserError("a lowered program can't be differentiated: JAX no longer knows what it computes",
                    notes=["lower the gradient, jax.jit(jax.grad(f)), and run that"])  # fmt: skip


_run.def_abstract_eval(_types)
_run.def_impl(_evaluate)
mlir.register_lowering(_run, _refuse_platform)
mlir.register_lowering(_run, _lower, platform="cpu")
ad.primitive_jvps[_run] = _refuse_derivative
