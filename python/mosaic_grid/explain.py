"""`--explain`: what the catalogue says of diagnostics."""

from __future__ import annotations

from collections.abc import Sequence

from mosaic_grid.catalogue import CATALOGUE, Entry, listing
from mosaic_grid.errors import UserError
from mosaic_grid.pass_options import nearest


def explain(names: Sequence[str]) -> str:
    """The entries of these names, or the list of all where there are none. Raises `UserError` for an unknown name."""
    if not names:
        return f"{listing()}\n--explain NAME says more of one of them\n"
    return "\n\n".join(entry(name).text() for name in names)


def entry(name: str) -> Entry:
    """The diagnostic of this name; brackets, as it is printed in, may stand around it. Raises `UserError`."""
    found = CATALOGUE.get(name.strip("[]"))
    if found is None:
        hint = nearest(name, CATALOGUE)
        raise UserError(f"there is no diagnostic '{name}'{hint}", notes=["--explain lists them"])
    return found
