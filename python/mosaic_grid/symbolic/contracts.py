"""Contracts: what the user promises of the unknowns, each a truth value, together without contradiction."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping

from mosaic_grid.symbolic.contract_syntax import parse
from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.ranges import Range


@dataclasses.dataclass(frozen=True)
class Contract:
    """`condition` is 1 wherever the contract `text` is kept.

    A load without an index in it stands for every element: the condition holds for each place of the arrays.
    """

    text: str
    condition: Expr

    def __str__(self) -> str:
        return self.text


class ContradictionError(ValueError):
    """Contracts that no values keep; `conflict` is a smallest part of them that none keep."""

    def __init__(self, conflict: tuple[Contract, ...]) -> None:
        super().__init__(conflict)
        self.conflict = conflict

    def __str__(self) -> str:
        texts = [f"'{contract}'" for contract in self.conflict]
        if len(texts) == 1:
            return f"contract {texts[0]} is never true of the integers its unknowns can be"
        return f"contracts {', '.join(texts[:-1])} and {texts[-1]} contradict each other"


def split_contracts(text: str) -> tuple[str, ...]:
    """The contracts in a list such as `n >= 1, n <= min(m, 64)`: a comma within parentheses or brackets is none."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return tuple(part.strip() for part in parts)


def contracts_of(
    texts: Iterable[str],
    ranges: Mapping[str, Range] | None = None,
    read: Callable[[str, Expr], Expr] = lambda text, condition: condition,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> tuple[Contract, ...]:
    """The contracts in the syntax of `contract_syntax`, which tells what `ranges` and `shapes` are.

    `read` may change a condition.

    Raises `ContractError` for one that can't be read, and `ContradictionError` where no values keep all.
    """
    contracts = tuple(Contract(text, read(text, parse(text, ranges, shapes))) for text in texts)
    if contracts:
        # isl is loaded only where there is something to decide
        from mosaic_grid.symbolic.proofs.conflicts import conflict_in

        conflict = conflict_in(contracts)
        if conflict:
            raise ContradictionError(conflict)
    return contracts
