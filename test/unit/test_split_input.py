"""Splitting an input into chunks that keep their line numbers, and joining what becomes of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosaic_grid.errors import UserError
from mosaic_grid.split_input import join_output, split_input


@given(st.lists(st.sampled_from(["a", "// -----", "  // -----\t", "// ------", "// ----- x", ""])), st.booleans())
def test_lines_keep_their_numbers(lines: list[str], ended: bool) -> None:
    """Every line stands in exactly one chunk, at the number it has in the whole text; separators are in none."""
    chunks = split_input("\n".join(lines) + "\n" * ended)
    marks = [i for i, line in enumerate(lines) if line.strip() == "// -----"]
    assert len(chunks) == len(marks) + 1
    found = [(i, line) for chunk in chunks for i, line in enumerate(chunk.split("\n")) if line]
    assert found == [(i, line) for i, line in enumerate(lines) if line and i not in marks]


def test_own_separator() -> None:
    """Another separator is taken as it is, not as a pattern, and the default one then means nothing."""
    assert split_input("a\n.*\nb\n// -----\n", ".*") == ["a\n", "\n\nb\n// -----\n"]


def test_line_ends_of_windows() -> None:
    """A carriage return before the line end doesn't hide a separator."""
    assert split_input("a\r\n// -----\r\nb\r\n") == ["a\r\n", "\n\nb\r\n"]


def test_empty_separator() -> None:
    """An empty separator is a mistake."""
    with pytest.raises(UserError) as caught:
        split_input("a", " ")
    assert str(caught.value) == (
        "error: the separator of --split-input-file is empty\nnote: leave it out for '// -----'"
    )


def test_join() -> None:
    """Outputs are joined by separator lines, which the splitter takes apart again."""
    assert join_output(["a\n", "b", "", "c\n"]) == "a\n// -----\nb\n// -----\n// -----\nc\n"
    assert join_output(["a"]) == "a\n"
    assert join_output(["a", "b"], "%%") == "a\n%%\nb\n"
    assert [chunk.strip() for chunk in split_input(join_output(["a", "", "c"]))] == ["a", "", "c"]
