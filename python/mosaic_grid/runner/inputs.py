"""What a program is run on: an array for each argument, from the command line's flags or from a seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from mosaic_grid.cpu.arrays import Array
from mosaic_grid.errors import Place, UserError
from mosaic_grid.runner import values
from mosaic_grid.runner.arguments import Argument, find, listed


@dataclasses.dataclass(frozen=True)
class Given:
    """What the user says of the inputs, as text; what is not said is random, from `seed` on.

    `inputs` are `NAME=VALUE`, `archives` files whose arrays are named like arguments, `bounds` are `NAME=N` or `N`.
    """

    inputs: tuple[str, ...] = ()
    archives: tuple[str, ...] = ()
    bounds: tuple[str, ...] = ()
    seed: int = 0


@dataclasses.dataclass(frozen=True)
class Inputs:
    """An array for each argument, and what a person should know of those that are random."""

    arrays: tuple[Array, ...]
    notes: tuple[str, ...] = ()


def choose(arguments: Sequence[Argument], given: Given) -> Inputs:
    """The inputs. What is given by itself goes before what an archive has for the same argument.

    Raises `UserError` where something doesn't fit, or a bound would have to be made up.
    """
    chosen: dict[int, Array] = {}
    by: dict[int, str] = {}

    def put(argument: Argument, array: Array, flag: str) -> None:
        earlier = by.get(argument.number)
        if earlier is not None and (earlier, flag) != ("--inputs", "--input"):
            flags = earlier if earlier == flag else f"{earlier} and by {flag}"
            raise UserError(f"{argument.label} is given twice, by {flags}")
        chosen[argument.number], by[argument.number] = array, flag

    for path in given.archives:
        for argument, array in _from_archive(path, arguments):
            put(argument, array, "--inputs")
    for text in given.inputs:
        argument, value = _assignment(text, arguments)
        put(argument, values.parse_value(value, argument.spec, argument.number, given.seed), "--input")
    for argument, count in _bounds(given.bounds, arguments):
        put(argument, values.from_literal(count, argument.spec), "--bounds")
    missing = [argument for argument in arguments if argument.number not in chosen]
    if open_bounds := [argument for argument in missing if argument.is_count and argument.bounds]:
        told = [f"{argument.label} is the bound of {_several(argument.bounds)}" for argument in open_bounds]
        flags = ",".join(f"{argument.key}=N" for argument in open_bounds)
        raise UserError("a bound of a grid is an argument, and it isn't given", notes=[*told, f"give --bounds {flags}"])
    for argument in missing:
        chosen[argument.number] = values.random(argument.spec, argument.number, given.seed)
    notes = [
        f"{each.label} is random, and the bound of {_several(each.bounds)} may depend on it"
        for each in missing
        if each.bounds
    ]
    return Inputs(tuple(chosen[argument.number] for argument in arguments), tuple(notes))


def _assignment(text: str, arguments: Sequence[Argument]) -> tuple[Argument, str]:
    """`NAME=VALUE` taken apart; a name may have an equals sign in it itself."""
    for argument in arguments:
        if argument.name and text.startswith(f"{argument.name}="):
            return argument, text.removeprefix(f"{argument.name}=")
    name, equals, value = text.partition("=")
    if not equals or not value:
        raise UserError(f"--input takes NAME=VALUE, got '{text}'", notes=[values.GRAMMAR, listed(arguments)])
    return find(arguments, name, "--input"), value


def _from_archive(path: str, arguments: Sequence[Argument]) -> list[tuple[Argument, Array]]:
    with values.load(path) as archive:
        if not hasattr(archive, "files"):
            message = "this is one array; --inputs takes an archive (.npz) of several, named like the arguments"
            raise UserError(message, Place(path), ["give it to --input NAME=FILE.npy"])
        found = []
        for key in archive.files:
            try:
                argument = find(arguments, key, "--inputs")
            except UserError as error:
                raise UserError(error.message, Place(path), error.notes) from None
            found.append((argument, values.from_array(values.read(archive, key, path), argument.spec)))
        return found


def _bounds(texts: Sequence[str], arguments: Sequence[Argument]) -> list[tuple[Argument, int]]:
    """The arguments that `--bounds` sets: by name any integer scalar, else those that bounds depend on, in order."""
    counts = [argument for argument in arguments if argument.is_count]
    in_order = [argument for argument in counts if argument.bounds]
    found: list[tuple[Argument, int]] = []
    unnamed = 0
    for item in [item.strip() for text in texts for item in text.split(",")]:
        name, equals, number = item.rpartition("=")
        try:
            value = int(number)
        except ValueError:
            raise UserError(f"--bounds takes N,... or NAME=N,..., got '{item}'", notes=[_known(counts)]) from None
        if equals:
            argument = _count(name, arguments, counts)
        elif unnamed < len(in_order):
            argument = in_order[unnamed]
            unnamed += 1
        else:
            message = f"--bounds gives more numbers than the program has bounds that are arguments: {len(in_order)}"
            raise UserError(message, notes=[_known(counts), *_arrays_behind(arguments)])
        found.append((argument, value))
    return found


def _count(name: str, arguments: Sequence[Argument], counts: Sequence[Argument]) -> Argument:
    try:
        argument = find(arguments, name, "--bounds")
    except UserError as error:
        raise UserError(error.message, notes=[_known(counts)]) from None
    if argument not in counts:
        message = f"--bounds: {argument.label} is {argument.spec}, not one integer"
        raise UserError(message, notes=[_known(counts), f"give it with --input {argument.key}=..."])
    return argument


def _arrays_behind(arguments: Sequence[Argument]) -> list[str]:
    """How the bounds are set that `--bounds` can't set: those that are computed from arrays."""
    return [
        f"the bound of {_several(each.bounds)} comes from {each.label}, {each.spec}: give --input {each.key}=..."
        for each in arguments
        if each.bounds and not each.is_count
    ]


def _known(counts: Sequence[Argument]) -> str:
    if not counts:
        return "no argument of the program is one integer"
    told = [f"{each.key} ({_several(each.bounds)})" if each.bounds else each.key for each in counts]
    return f"the arguments that are one integer: {', '.join(told)}"


def _several(names: Sequence[str]) -> str:
    """The first few in words."""
    told = 3
    more = f" and {len(names) - told} more" if len(names) > told else ""
    return ", ".join(names[:told]) + more
