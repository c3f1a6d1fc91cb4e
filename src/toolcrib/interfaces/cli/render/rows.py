"""Tables: aligned for a terminal, tab-separated for a file or a pipe. Nothing that a person may copy is cut.

On a terminal that is too narrow for a row, the columns that do not fit continue on an indented line below.
"""

import sys
from collections.abc import Sequence
from typing import Final

from toolcrib.interfaces.cli.render.console import clean, width_of

_GAP: Final = "  "
_INDENT: Final = "    "
_LEAST: Final = 24
"""Cells to which a column that gives way may be shortened."""


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[str]], *, gives_way: bool = False) -> None:
    """Print a table of text on stdout.

    Args:
        columns: The titles.
        rows: The cells of each row; line breaks in them are printed as spaces.
        gives_way: Whether the last column, a description, may be shortened to keep a row on one line.
    """
    cells = [[" ".join(clean(cell).split()) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in (columns, *cells):
            print("\t".join(row))
        return
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    title, *lines = lay_out(columns, cells, console.width, gives_way=gives_way)
    console.print(title, style="bold", markup=False)
    for line in lines:
        console.print(line, markup=False)


def lay_out(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int, *, gives_way: bool = False) -> list[str]:
    """The lines of a table for a terminal; a row is more than one line if it does not fit.

    Args:
        columns: The titles.
        rows: The cells of each row, without line breaks.
        width: Cells of a line.
        gives_way: Whether the last column may be shortened.

    Returns:
        The titles, as one text, and a text for each row; each may have several lines.
    """
    widths = [max(map(width_of, column)) for column in zip(columns, *rows, strict=True)]
    room = width - sum(widths[:-1]) - len(_GAP) * (len(widths) - 1)
    if gives_way and room >= _LEAST:
        widths[-1] = min(widths[-1], room)
        rows = [[*row[:-1], _shorten(row[-1], widths[-1])] for row in rows]
    groups = _fit(widths, width)
    return [_row(cells, widths, groups) for cells in (columns, *rows)]


def _fit(widths: Sequence[int], width: int) -> list[list[int]]:
    """The columns of each line: as many as fit, in order."""
    groups: list[list[int]] = [[]]
    used = 0
    for index, each in enumerate(widths):
        if groups[-1] and used + len(_GAP) + each > width:
            groups.append([])
            used = len(_INDENT) - len(_GAP)
        used += each + (len(_GAP) if groups[-1] or len(groups) > 1 else 0)
        groups[-1].append(index)
    return groups


def _row(cells: Sequence[str], widths: Sequence[int], groups: Sequence[Sequence[int]]) -> str:
    lines = [
        _GAP.join(cells[at] + " " * (widths[at] - width_of(cells[at])) for at in group).rstrip() for group in groups
    ]
    return "\n".join([lines[0], *(f"{_INDENT}{line}" for line in lines[1:] if line)])


def _shorten(text: str, width: int) -> str:
    if width_of(text) <= width:
        return text
    while width_of(text) >= width:
        text = text[:-1]
    return f"{text.rstrip()}…"
