"""`jax_mosaic_grid_contracts`: what is promised of the integer arguments of functions, for all programs."""

from __future__ import annotations

import atexit
import dataclasses
import difflib
import threading
from collections.abc import Mapping

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.control import functions_of
from mosaic_grid.dataflow.promises import Input, arguments_of, named_inputs, told_of
from mosaic_grid.dataflow.unknowns import Unknowns
from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.jax_hook import options
from mosaic_grid.jax_hook.told import logger
from mosaic_grid.symbolic.contract_syntax import parse
from mosaic_grid.symbolic.contracts import split_contracts

UNUSED = "unused-contract"


@dataclasses.dataclass
class _Seen:
    """The contracts that some program of this process has had the arguments of, and what is to be said of others."""

    used: set[str] = dataclasses.field(default_factory=set[str])
    unused: dict[str, Diagnostic] = dataclasses.field(default_factory=dict[str, Diagnostic])
    told: set[str] = dataclasses.field(default_factory=set[str])
    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)

    def tell(self) -> None:
        """Says at the end of the process which contracts were for nothing."""
        for text, diagnostic in self.unused.items():
            if text not in self.used | self.told:
                logger.warning("%s", "\n".join(diagnostic.lines()))


_seen = _Seen()


def contracts_about(program: ir.Operation) -> tuple[str, ...]:
    """The contracts whose names are all arguments of this program: a process lowers many, and most lack some."""
    if not options.contracts.value:
        return ()
    names = _inputs(program)
    return tuple(each for each in split_contracts(options.contracts.value) if not _missing(each, names))


def unused_contracts(program: ir.Operation) -> list[Diagnostic]:
    """A warning for each contract with a name that this program has almost: each once, for it is for all programs.

    One whose names are nothing like its arguments may be for another program. If none has had them by the end of the
    process that is said then.
    """
    if not options.contracts.value:
        return []
    inputs, said = _inputs(program), list[Diagnostic]()
    with _seen.lock:
        for text in split_contracts(options.contracts.value):
            name = _missing(text, inputs)
            if not name:
                _seen.used.add(text)
            elif text not in _seen.used | _seen.told:
                near = difflib.get_close_matches(name, inputs, 1)
                if not _seen.unused:
                    atexit.register(_seen.tell)
                found = _seen.unused.setdefault(text, _diagnostic(text, name, near, inputs))
                if near:
                    _seen.told.add(text)
                    said.append(found)
    return said


def forget() -> None:
    """Forgets which contracts programs have had the arguments of."""
    with _seen.lock:
        for known in (_seen.used, _seen.unused, _seen.told):
            known.clear()
        atexit.unregister(_seen.tell)


def _inputs(program: ir.Operation) -> dict[str, Input]:
    return named_inputs(arguments_of(functions_of(program).values(), Unknowns()))


def _missing(contract: str, inputs: Mapping[str, Input]) -> str:
    """A name in a contract that isn't one of the inputs; empty where all are."""
    return next((leaf.name for leaf in sym.inputs_of(parse(contract)) if leaf.name not in inputs), "")


def _diagnostic(text: str, name: str, near: list[str], inputs: Mapping[str, Input]) -> Diagnostic:
    meant = f"; did you mean {near[0]}?" if near else ""
    message = f"contract '{text}' says nothing of this program, which has no integer argument '{name}'{meant}"
    why = note("of JAX_MOSAIC_GRID_CONTRACTS each program takes the contracts that speak of its own arguments")
    return Diagnostic(Severity.WARNING, message, name=UNUSED, notes=(note(told_of(inputs)), why))
