"""How much isl may do for one question: more than that is an answer too, "too complex", and never a hang."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import islpy as isl

MOST = 300_000
"""How many of isl's operations one question may take; a real kernel's takes a few thousand."""

_EXCEEDED = "maximal number of operations exceeded"


class UndecidedError(Exception):
    """A question that isl gave no answer to; the text says why, as a reason."""


class TooComplexError(UndecidedError):
    """A question took more operations than it may."""

    def __init__(self) -> None:
        super().__init__("too complex")


@contextlib.contextmanager
def limited(context: isl.Context, most: int = MOST) -> Iterator[None]:
    """Lets isl do `most` operations inside, then raises `TooComplexError`; the context is as good as new after it.

    Any other failure of isl's is an `UndecidedError`: some are known on sets of many pieces.
    """
    context.reset_operations()
    context.set_max_operations(most)
    try:
        yield
    except isl.Error as error:
        raise TooComplexError() if _EXCEEDED in str(error) else UndecidedError(f"isl fails: {error}") from error
    finally:
        context.set_max_operations(0)
        context.reset_operations()
