"""Tables as text, CSV and TSV (RFC 4180 and what goes by its name): text to columns and rows, all of them strings."""

import csv
from typing import Final

from toolcrib.contracts import JsonObject

MAX_COLUMNS: Final = 1_000

_DELIMITERS: Final = ",;\t|"
_SAMPLE: Final = 8_192


def read_delimited(text: str, *, tabs: bool = False) -> JsonObject:
    """A table: `{columns, rows}`. The first line names the columns; the delimiter is the one that fits the first lines.

    Args:
        text: All of it.
        tabs: Whether the delimiter is known to be a tab.

    Raises:
        ValueError: It is none: a field is not closed, or there are too many columns.
    """
    lines = text.splitlines(keepends=True)
    delimiter = "\t" if tabs else _delimiter(text[:_SAMPLE])
    try:
        rows = [row for row in csv.reader(lines, delimiter=delimiter, strict=True) if row]
    except csv.Error as problem:
        raise ValueError(f"it is no table of delimited text: {problem}") from None
    width = max(map(len, rows), default=0)
    if width > MAX_COLUMNS:
        raise ValueError(f"it has {width} columns, and {MAX_COLUMNS} is the most")
    if not rows:
        return {"columns": [], "rows": []}
    columns = [name or f"column {number}" for number, name in enumerate(_filled(rows[0], width), 1)]
    return {"columns": columns, "rows": [_filled(row, width) for row in rows[1:]]}


def _filled(row: list[str], width: int) -> list[str]:
    return [*row, *[""] * (width - len(row))]


def _delimiter(sample: str) -> str:
    """The one that stands equally often in the most of the first lines; the comma if none does."""
    lines = [line for line in sample.splitlines()[:20] if line.strip()]
    counts = {mark: [line.count(mark) for line in lines] for mark in _DELIMITERS}
    return max(_DELIMITERS, key=lambda mark: _evenness(counts[mark]))


def _evenness(counts: list[int]) -> tuple[int, int]:
    first = counts[0] if counts else 0
    return (sum(count == first for count in counts) if first else 0, first)
