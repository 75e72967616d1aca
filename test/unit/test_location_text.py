"""Files and names of locations are read whatever bytes they hold."""

from __future__ import annotations

import pytest
from jaxlib.mlir import ir

from mosaic_grid.context import create_context
from mosaic_grid.diagnostics import place_of
from mosaic_grid.errors import Place
from mosaic_grid.location_text import text_of_name

NAMES = {
    "kernel.py": "kernel.py",
    r"\C3\A9.py": "é.py",
    r"a\FFb.py": "a\N{REPLACEMENT CHARACTER}b.py",
    r"a\\b \22c\22.py": 'a\\b "c".py',
}


@pytest.mark.parametrize(("written", "name"), NAMES.items())
def test_file(written: str, name: str) -> None:
    """A file name is told, with a stand-in for bytes that are no text; reading those must not end the process."""
    with create_context():
        location = ir.Operation.parse(f'module {{}} loc("{written}":3:4)').location
        assert place_of(location) == Place(name, 3, 4)


@pytest.mark.parametrize(("written", "name"), NAMES.items())
def test_name(written: str, name: str) -> None:
    """The same for the name of an argument."""
    with create_context():
        location = ir.Operation.parse(f'module {{}} loc("{written}"("file.py":1:2))').location
        assert isinstance(location, ir.NameLoc)
        assert text_of_name(location) == name
