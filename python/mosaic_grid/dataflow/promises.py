"""The user's contracts about a program: read against the integer arguments of its public functions.

An argument goes by its name in the user's function, or by `%arg2` for the third one, whatever its name.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.control import Function, functions_of, is_private
from mosaic_grid.dataflow.tensors import FEW, Each, Tensor, Uniform, extent, spread
from mosaic_grid.dataflow.unknowns import Unknowns
from mosaic_grid.errors import UserError
from mosaic_grid.ir_types import Value
from mosaic_grid.symbolic.contract_syntax import ANY_SIZE, ContractError
from mosaic_grid.symbolic.contracts import Contract, ContradictionError, contracts_of

_LISTED = 8


@dataclasses.dataclass(frozen=True)
class Input:
    """An integer argument: its `name`, the values of its elements, and its `shape`, negative where it is dynamic."""

    name: str
    values: sym.Range
    shape: tuple[int, ...]

    @property
    def rank(self) -> int:
        """0 for a scalar."""
        return len(self.shape)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape, with as many elements as there can be where it is dynamic."""
        return tuple(size if size >= 0 else ANY_SIZE for size in self.shape)


@dataclasses.dataclass(frozen=True)
class InputArgument:
    """An integer argument of a public function that nothing calls, with the unknown that it is."""

    value: Value
    tensor: Tensor
    number: int

    @property
    def input(self) -> Input:
        """What contracts may say of it."""
        shape = tuple(ir.RankedTensorType(self.value.type).shape)
        return Input(unknown_of(self.tensor), extent([self.tensor])[0], shape)


def arguments_of(functions: Iterable[Function], unknowns: Unknowns) -> list[InputArgument]:
    """The arguments, in order: asked before anything else they get the names they have in the user's function."""
    found: list[InputArgument] = []
    for function in functions:
        if is_private(function.op) or function.calls or function.results is None:
            continue
        for number, argument in enumerate(function.op.regions[0].blocks[0].arguments):
            tensor = unknowns.of(argument)
            if tensor is not None and unknown_of(tensor):
                found.append(InputArgument(argument, tensor, number))
    return found


def named_inputs(arguments: Iterable[InputArgument]) -> dict[str, Input]:
    """The inputs by every name they go by, their own before their numbers."""
    given = [(argument.number, argument.input) for argument in arguments]
    by_number = {f"%arg{number}": known for number, known in given}
    by_name = {known.name: known for _, known in given}
    return by_name | {name: known for name, known in by_number.items() if name not in by_name}


def unknown_of(tensor: Tensor) -> str:
    """The name of the unknown that a tensor is; empty for any other tensor."""
    expr = tensor.expr if isinstance(tensor, Uniform | Each) else None
    return expr.name if isinstance(expr, sym.Param | sym.Load) else ""


@dataclasses.dataclass(frozen=True)
class Promises:
    """What the contracts say of a program: `known` are the inputs they narrow, `arrays` those they speak of."""

    contracts: tuple[Contract, ...] = ()
    known: Mapping[str, sym.Expr] = dataclasses.field(default_factory=dict[str, sym.Expr])
    arrays: frozenset[str] = frozenset()

    def narrowed(self, tensor: Tensor) -> Tensor:
        """An input with the range and the divisor that the contracts leave it."""
        known = self.known.get(unknown_of(tensor))
        if known is None:
            return tensor
        return Uniform(known) if isinstance(tensor, Uniform) else Each(known)


def check_contracts(program: ir.Operation, texts: Sequence[str]) -> None:
    """Raises `UserError` for contracts that aren't about the program, or that no inputs keep."""
    if texts:
        named = named_inputs(arguments_of(functions_of(program).values(), Unknowns()))
        promises_of(texts, named)


def promises_of(texts: Sequence[str], inputs: Mapping[str, Input]) -> Promises:
    """The contracts about these inputs, by every name they go by. Raises `UserError` where one can't be kept."""
    if not texts:
        return Promises()
    ranges = {name: known.values for name, known in inputs.items()}
    shapes = {name: known.sizes for name, known in inputs.items() if known.rank}
    try:
        contracts = contracts_of(texts, ranges, partial(_by_name, inputs), shapes)
    except ContractError as error:
        raise unreadable(error) from None
    except ContradictionError as error:
        raise UserError(str(error), notes=_ranges_of(error.conflict)) from None
    from mosaic_grid.symbolic.proofs import narrowed  # isl is loaded only where there is a contract

    leaves = [leaf for contract in contracts for leaf in sym.inputs_of(contract.condition)]
    arrays = frozenset(leaf.name for leaf in leaves if isinstance(leaf, sym.Load))
    return Promises(contracts, narrowed(contracts), arrays)


def _by_name(inputs: Mapping[str, Input], text: str, condition: sym.Expr) -> sym.Expr:
    """The condition of a contract about the inputs by their own names."""
    for leaf in sym.inputs_of(condition):
        _check(text, leaf, inputs)
    for whole in sym.totals_of(condition):
        _check_sum(text, whole, inputs)

    def named(part: sym.Expr) -> sym.Expr | None:
        match part:
            case sym.Param(name, values):
                return sym.parameter(inputs[name].name, values)
            case sym.Load(name, index, values):
                return sym.load(inputs[name].name, index, values)
        return None

    def summed(part: sym.Expr) -> sym.Expr | None:
        if not isinstance(part, sym.Total):
            return named(part)
        body = sym.substitute(part.body, named)
        # few are written out, as the program's own sums are
        few = spread(Each(body), part.shape) if math.prod(part.shape) <= FEW else None
        return sym.total(body, part.shape) if few is None else sym.add(*few)

    return sym.substitute(condition, summed)


def _check_sum(text: str, whole: sym.Total, inputs: Mapping[str, Input]) -> None:
    """Raises `UserError` where nobody knows how many elements are added up."""
    for leaf in sym.leaves_of(whole.body):
        if not isinstance(leaf, sym.Load) or leaf.index:
            continue
        if inputs[leaf.name].sizes != whole.shape:
            message = f"contract '{text}': {leaf.name} differs in shape from an array that it is summed up with"
            raise UserError(message)
        if min(inputs[leaf.name].shape) < 0:
            raise UserError(f"contract '{text}': how many elements {leaf.name} has isn't known")


def _check(text: str, leaf: sym.Param | sym.Load, inputs: Mapping[str, Input]) -> None:
    """Raises `UserError` where an unknown of a contract isn't an input of that kind."""
    known = inputs.get(leaf.name)
    if known is None:
        near = difflib.get_close_matches(leaf.name, inputs, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UserError(
            f"contract '{text}': the program has no integer argument '{leaf.name}'{hint}", notes=[told_of(inputs)]
        )
    index = leaf.index if isinstance(leaf, sym.Load) else ()
    if isinstance(leaf, sym.Param) and known.rank:
        wanted = f"write {leaf.name}[*] for each of its elements"
        raise UserError(f"contract '{text}': '{leaf.name}' is an array", notes=[wanted])
    if isinstance(leaf, sym.Load) and not known.rank:
        raise UserError(f"contract '{text}': '{leaf.name}' is a scalar", notes=[f"write {leaf.name} without an index"])
    if index and len(index) != known.rank:
        message = f"contract '{text}': '{leaf.name}' has {known.rank} dimensions, and {leaf} has {len(index)} indices"
        raise UserError(message)
    for place, size in zip(index, known.shape, strict=False):
        if isinstance(place, sym.Const) and (place.value < 0 or 0 <= size <= place.value):
            raise UserError(f"contract '{text}': {leaf} isn't in {leaf.name}, whose shape is {list(known.shape)}")


def told_of(inputs: Mapping[str, Input]) -> str:
    """The inputs there are, each by the name it has in the user's function."""
    names = [f"{name}[*]" if known.rank else name for name, known in inputs.items() if name == known.name]
    if not names:
        return "it has none"
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"it has {', '.join(names[:_LISTED])}{more}"


def _ranges_of(conflict: Iterable[Contract]) -> list[str]:
    leaves = dict.fromkeys(leaf for contract in conflict for leaf in sym.leaves_of(contract.condition))
    return [f"{leaf.name}{'[*]' if isinstance(leaf, sym.Load) else ''} is in {leaf.range}" for leaf in leaves]


def unreadable(error: ContractError) -> UserError:
    """A contract that can't be read, as the user is told: with the place under it."""
    message = f"contract '{error.text}', column {error.column}: {error.message}"
    return UserError(message, notes=[error.text, " " * (error.column - 1) + "^"] if len(error.text) <= 100 else [])
