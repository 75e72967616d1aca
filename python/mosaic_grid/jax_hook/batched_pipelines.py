"""`jax.vmap` of an `emit_pipeline` whose grid differs between the elements: one pipeline over the steps of all.

JAX has no rule for it. The grids become one of a single dimension, as long as all of them; an index map, and the body,
first find out which element a step belongs to.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import jax
from jax import lax
from jax._src import core as jax_core
from jax._src import flattree as ft
from jax._src.interpreters import batching
from jax._src.interpreters import partial_eval as pe
from jax._src.pallas import core as pallas_core

from mosaic_grid.jax_hook import options
from mosaic_grid.jax_hook.internals import internal
from mosaic_grid.jax_hook.ragged import Position, Ragged


def patch(module: ModuleType) -> None:
    """Wraps the batching rule; grids that don't differ are left to it."""
    primitive = internal(module, "emit_pipeline_p")
    stock = internal(module, "_emit_pipeline_batching_rule", ("axis_data", "args_flat", "dims"))
    for name in (
        "EmitPipelinePrimitiveArgs",
        "PARALLEL",
        "ARBITRARY",
        "tracing_registry",
        "is_transformed_ref",
        "_zip_grid",
    ):
        internal(module, name)

    def batch(axis_data: Any, args: Any, dims: Any, **parameters: Any) -> Any:
        given = parameters["args_tree"].unflatten(args)
        first = len(given.all_index_map_consts)
        grid_dims = dims[first : first + len(given.dynamic_grid_spec)]
        if options.rewrites() and any(dim is not None for dim in grid_dims):
            _Batched(module, axis_data.size, given, list(dims), parameters).bind(primitive)
            return (), ()
        return stock(axis_data, args, dims, **parameters)

    batching.fancy_primitive_batchers[primitive] = batch


class _Batched:
    """One application of the rule: what the primitive was given, and the dimensions of it that are batched."""

    def __init__(self, module: Any, size: int, given: Any, dims: list[int | None], parameters: dict[str, Any]) -> None:
        self.module, self.size, self.given, self.parameters = module, size, given, parameters
        self.mapping = parameters["grid_mapping"]
        parts = [given.all_index_map_consts, given.dynamic_grid_spec, [None] * given.has_core_id, given.body_consts]
        self.map_dims, self.grid_dims, core, self.body_dims = (_taken(dims, len(part)) for part in parts)
        self.ref_dims = self._ref_dims(_taken(dims, len(given.refs_flat)))
        if given.allocations is not None or any(dim is not None for dim in core):
            raise NotImplementedError("Batching over custom allocations or cores is not supported.")
        bounds = module._zip_grid(
            [self._elements(*each) for each in zip(given.dynamic_grid_spec, self.grid_dims, strict=True)],
            self.mapping.grid,
        )
        listed = [bound if isinstance(bound, list) else [bound] * size for bound in bounds]
        self.steps = Ragged.of(list(zip(*listed, strict=True)))

    def bind(self, primitive: Any) -> None:
        """Binds the primitive with a grid of one dimension."""
        mappings = self._mappings()
        mapping = self.mapping.replace(
            grid=(pallas_core.dynamic_grid_dim,),
            block_mappings=tuple(mappings),
            index_map_avals=(pallas_core.index_map_grid_aval,),
            index_map_tree=jax.tree.structure(((0,), {})),
            vmapped_dims=(),
        )
        body = self._body(mapping)
        arguments = self.module.EmitPipelinePrimitiveArgs(
            all_index_map_consts=tuple(const for each in mappings for const in each.index_map_jaxpr.consts),
            dynamic_grid_spec=(self.steps.total,),
            core_id=self.given.core_id,
            body_consts=tuple(body.consts),
            refs_flat=self.given.refs_flat,
        )
        flat, tree = self.module.tracing_registry.flatten(arguments)
        semantics = self.parameters["dimension_semantics"]
        any_order = all(each == self.module.PARALLEL for each in semantics)
        changed = {
            "grid_mapping": mapping,
            "body_jaxpr": body,
            "args_tree": tree,
            "dimension_semantics": (self.module.PARALLEL if any_order else self.module.ARBITRARY,),
            "_explicit_indices": True,
        }
        primitive.bind(*flat, **{**self.parameters, **changed})

    def _ref_dims(self, flat: list[int | None]) -> list[int | None]:
        """The batched dimension of each operand: a part of an array has its array and indices in the flat list."""
        registry, is_part = self.module.tracing_registry, self.module.is_transformed_ref
        numbered = self.parameters["refs_tree"].unflatten(list(range(len(flat))))
        found: list[int | None] = []
        for operand in registry.flatten(numbered, is_part)[0]:
            dims = [flat[number] for number in registry.flatten(operand)[0]] if is_part(operand) else [flat[operand]]
            if is_part(operand) and any(dim is not None for dim in dims):
                raise NotImplementedError(
                    "Batching over dynamic grid values is not supported for parts of batched refs."
                )
            found.append(dims[0])
        return found

    def _elements(self, value: Any, dim: int | None) -> list[Any]:
        """A scalar of each element of the batch."""
        if dim is None:
            return [value] * self.size
        return [lax.index_in_dim(value, number, dim, keepdims=False) for number in range(self.size)]

    def _const(self, value: Any, dim: int | None, position: Position) -> Any:
        """What a function that is closed over a value sees of it at a step."""
        if dim is None:
            return value
        if value.ndim != 1:
            raise NotImplementedError("Batching over dynamic grid values together with arrays is not supported.")
        return position.of(self._elements(value, dim))

    def _mappings(self) -> list[Any]:
        mappings, consts, dims = [], list(self.given.all_index_map_consts), list(self.map_dims)
        for block, dim in zip(self.mapping.block_mappings, self.ref_dims, strict=True):
            count = len(block.index_map_jaxpr.consts)
            mappings.append(self._mapping(block, dim, consts[:count], dims[:count]))
            del consts[:count], dims[:count]
        return mappings

    def _mapping(self, block: Any, dim: int | None, consts: Sequence[Any], const_dims: Sequence[int | None]) -> Any:
        """The index map and the block of one operand, with the element as an index if the operand has one."""

        def index_map(step: Any) -> tuple[Any, ...]:
            position = self.steps.locate(step)
            known = [self._const(*each, position) for each in zip(consts, const_dims, strict=True)]
            flat = jax_core.eval_jaxpr(block.index_map_jaxpr, known, *position.indices)
            found = jax.tree.unflatten(block.index_map_out_tree, flat)
            indices = list(found) if isinstance(found, tuple) else [found]
            if dim is not None:
                indices.insert(dim, position.grid)
            return tuple(indices)

        with self.mapping.trace_env():
            traced, out = pe.trace_to_jaxpr(
                index_map,
                ft.flatten_args(pallas_core.index_map_grid_aval),
                block.index_map_jaxpr.debug_info.with_unknown_names(),
            )
        changed: dict[str, Any] = {"index_map_jaxpr": traced, "index_map_out_tree": out.tree}
        if dim is not None:
            array = block.array_aval
            shape = _inserted(array.shape, dim, self.size)
            changed["block_shape"] = _inserted(block.block_shape, dim, pallas_core.squeezed)
            changed["array_aval"] = jax_core.ShapedArray(shape, array.dtype)
        return dataclasses.replace(block, **changed, allow_captured_consts=True)

    def _body(self, mapping: Any) -> Any:
        """The body, which is told the number of a step, as it was for the indices of its element's grid."""
        stock = self.parameters["body_jaxpr"]
        explicit = self.parameters["_explicit_indices"]
        # the axes that the author knows: others come from vmaps that were there before
        own = [axis for axis in range(len(self.mapping.grid)) if axis not in self.mapping.vmapped_dims]
        consts = list(zip(self.given.body_consts, self.body_dims, strict=True))

        def body(step: Any, local: Any, *refs: Any) -> None:
            position = self.steps.locate(step)
            indices = [position.indices[axis] for axis in own]
            known = [self._const(*each, position) for each in consts]
            axes = [pallas_core.GridAxis(position.indices[axis], position.bounds[axis]) for axis in own]
            with pallas_core.grid_env(axes):
                jax_core.eval_jaxpr(stock, known, *([*indices, local] if explicit else []), *refs)

        scalar = pallas_core.index_map_grid_aval
        refs = [variable.aval for variable in stock.invars[len(own) + 1 if explicit else 0 :]]
        with mapping.trace_env():
            traced, _ = pe.trace_to_jaxpr(
                body, ft.flatten_args(scalar, scalar, *refs), stock.debug_info.with_unknown_names()
            )
        return traced


def _taken(items: list[Any], count: int) -> list[Any]:
    """The first items, which go."""
    taken = items[:count]
    del items[:count]
    return taken


def _inserted(items: Sequence[Any], place: int, item: Any) -> tuple[Any, ...]:
    return (*items[:place], item, *items[place:])
