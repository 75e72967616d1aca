"""The one MLIR context everything runs in: StableHLO, SDY, CHLO, MHLO, the upstream dialects JAX ships, and `tpu`.

Only `jaxlib.mlir` and `jaxlib.mosaic` are imported, never `jax`: start-up is what a user of a command-line tool feels.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, cast

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, mhlo, sdy, stablehlo
from jaxlib.mosaic.python import tpu


def create_context() -> ir.Context:
    """A context with every dialect a lowered JAX program may hold.

    Unregistered dialects are allowed: `stable_mosaic` is one, and so are the discardable `mosaic.*` attributes of the
    unpacked form.
    """
    context = ir.Context()
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    context.allow_unregistered_dialects = True
    register_tpu(context)
    with context:
        stablehlo.register_dialect(context)
        sdy.register_dialect(context)
        chlo.register_dialect(context)
        mhlo.register_mhlo_dialect(context)
    return context


def register_tpu(context: ir.Context) -> None:
    """Adds the dialect of kernels to a context, if it isn't there yet."""
    with context:
        tpu.register_dialect(context)


def unknown_location() -> ir.Location:
    """The location of ops that no one wrote, to be entered as the default one; a context must be current."""
    return ir.Location.unknown()


def _read_locations_from_attributes() -> None:
    """Lets an attribute that is a location be read from a dictionary or an array.

    The bindings' casters for locations take a `Location` only, so `array[i]` on an array of locations is a TypeError.
    What worked before works as before.
    """

    def teach(kind: Any) -> None:  # the stubs know neither the caster's registry nor a location's type id
        def cast(value: ir.Location | ir.Attribute) -> ir.Location:
            # called for every location of a kernel, twice
            result: ir.Location = kind(value) if isinstance(value, location) else from_attr(value)
            return result

        bindings.register_type_caster(kind.static_typeid, replace=True)(cast)

    bindings: Any = ir
    location, from_attr = ir.Location, ir.Location.from_attr
    for kind in (ir.UnknownLoc, ir.NameLoc, ir.FileLineColLoc, ir.CallSiteLoc, ir.FusedLoc):
        teach(kind)


_read_locations_from_attributes()


def _keep_jax_out() -> None:
    """Keeps the bindings from importing JAX when they look for the Python side of a dialect that has none.

    `jaxlib.mosaic.python.tpu` adds the package below to that search. It exists only where JAX itself is built; looking
    for it elsewhere imports `jax` first, nearly a second, for every program with an op of an unknown dialect.
    """
    sys.modules.setdefault("jax.jaxlib.mosaic.python", cast(ModuleType, None))


def _name_the_tpu_dialect() -> None:
    """Says where the Python side of `tpu` is: it is loaded, but looked for here first, without success, at every op."""
    sys.modules.setdefault("jaxlib.mlir.dialects.tpu", tpu)


_keep_jax_out()
_name_the_tpu_dialect()
