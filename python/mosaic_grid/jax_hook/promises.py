"""`jax_mosaic_grid_contracts`: what is promised of the integer arguments of functions, for all programs."""

from __future__ import annotations

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.control import functions_of
from mosaic_grid.dataflow.promises import arguments_of, named_inputs
from mosaic_grid.dataflow.unknowns import Unknowns
from mosaic_grid.jax_hook import options
from mosaic_grid.symbolic.contract_syntax import parse
from mosaic_grid.symbolic.contracts import split_contracts


def contracts_about(program: ir.Operation) -> tuple[str, ...]:
    """The contracts whose names are all arguments of this program: a process lowers many, and most lack some."""
    if not options.contracts.value:
        return ()
    names = named_inputs(arguments_of(functions_of(program).values(), Unknowns()))
    listed = split_contracts(options.contracts.value)
    return tuple(each for each in listed if all(leaf.name in names for leaf in sym.leaves_of(parse(each))))
