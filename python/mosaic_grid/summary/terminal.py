"""A summary for a terminal: the facts of the plain one, in colours, in tables without lines, within 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mosaic_grid.summary import plain as words
from mosaic_grid.summary.facts import LaunchSummary, Summary, WindowSummary
from mosaic_grid.targets import Target

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text


# the width of "prefetch": both kinds of table have their second column there
_LABEL = 8


def render_rich(summary: Summary, console: Console, name: str = "") -> None:
    """Prints a summary to a rich console, after a heading with the program's name if it is given."""
    from rich.text import Text

    if name:
        told = f": {words.contents_text(summary)}{words.target_text(summary)}\n"
        console.print(Text(name, style="bold cyan").append(told, style="default"))
    elif not summary.launches:
        console.print(Text(words.nothing_text(summary)))
    for number, launch in enumerate(summary.launches):
        if number:
            console.print()
        title = Text(words.title_text(launch), style="bold")
        console.print(title.append(f"  {words.kind_text(launch)}", style="not bold dim"))
        console.print(_grid(launch))
        console.print(_operands(launch))
        console.print(_costs(launch, summary.target))


def _grid(launch: LaunchSummary) -> Table:
    table = _pairs()
    if launch.place:
        table.add_row("from", _dim(str(launch.place)))
    table.add_row("launch", _dim(words.launches_text(launch).removeprefix("launched ")))
    table.add_row("grid", words.grid_text(launch))
    for axis, dimension in enumerate(launch.grid):
        table.add_row("", _plain(words.dimension_text(axis, dimension), "green" if dimension.is_parallel else ""))
    return table


def _costs(launch: LaunchSummary, target: Target | None) -> Table:
    table = _pairs()
    for line in words.memory_texts(launch, target):
        space, _, text = line.partition(": ")
        table.add_row(space, _plain(text))
    table.add_row("cores", _cores(launch, target))
    return table


def _operands(launch: LaunchSummary) -> Table:
    """Windows, prefetch operands and scratch: a row each, details under the block and under the index map."""
    table = _table()
    table.add_column(style="cyan", no_wrap=True, min_width=_LABEL)
    table.add_column(overflow="fold", max_width=22)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for window in launch.windows:
        table.add_row(f"{window.role} {window.number}", _plain(window.name), _block(window), _map(window, launch))
    for kind, buffers in (("prefetch", launch.prefetch), ("scratch", launch.scratch)):
        for buffer in buffers:
            table.add_row(kind, _plain(buffer.name), str(buffer.array), _dim(buffer.space))
    return table


def _block(window: WindowSummary) -> Text:
    block, *rest = words.shape_texts(window)
    return _plain(block).append("".join(f"\n{line}" for line in rest), style="dim")


def _map(window: WindowSummary, launch: LaunchSummary) -> Text:
    details = [window.space, "whole" if window.whole else words.copies_text(window)]
    if window.alias:
        details.append(f"in place of {window.alias}")
    told = ", ".join(details)
    if window.whole:
        return _dim(told)
    return _plain(words.index_map_text(window, launch)).append(f"\n{told}", style="dim")


def _cores(launch: LaunchSummary, target: Target | None) -> Text:
    cores = launch.cores
    text = words.cores_text(cores, target)
    if cores is None:
        return _plain(text)
    style = "bold red" if cores.used is None else "green" if cores.used == cores.available else "bold yellow"
    if launch.fallback:
        style = "yellow"
    advice = words.advice_text(launch)
    return _plain(text, style).append(f"\n{advice}" if advice else "", style="not bold default")


def _plain(text: str, style: str = "") -> Text:
    """Text as it is: brackets are no markup."""
    from rich.text import Text

    return Text(text, style=style)


def _dim(text: str) -> Text:
    return _plain(text, "dim")


def _pairs() -> Table:
    table = _table()
    table.add_column(style="cyan", no_wrap=True, min_width=_LABEL)
    table.add_column(overflow="fold")
    return table


def _table() -> Table:
    from rich.table import Table

    return Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0), expand=False)
