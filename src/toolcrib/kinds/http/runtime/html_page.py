"""A program that reads HTML from standard input and writes the readable content as JSON to standard output.

`formats` runs it in a separate process, because untrusted HTML can block or crash a parser. It therefore imports
nothing of this library. Content that a reader does not see is left out: scripts, menus, notices, and hidden text,
which may contain prompt injections. The output is still untrusted content.
"""

import json
import resource
import sys
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

CPU_S: Final = 5
MEMORY: Final = 2**30
"""Bytes of the process."""
MAX_LINKS: Final = 200
MAX_TABLES: Final = 20
MAX_SPAN: Final = 100
"""Columns or rows that one cell may take."""

_NOISE: Final = "script, style, noscript, template, nav, header, footer, aside, form, button, svg, iframe, dialog"
_UNSEEN: Final = (
    "[hidden], [aria-hidden=true], [role=dialog], [style*='display:none'], [style*='display: none'], "
    "[style*='visibility:hidden'], [style*='visibility: hidden']"
)
_BLOCKS: Final = "p, li, tr, pre, blockquote, dt, dd, div, section, article, table, ul, ol, br, hr, figcaption"
_HEADINGS: Final = {f"h{level}": "#" * level for level in range(1, 7)}
_BREAK: Final = "\x1e"
"""Stands for the end of a line until white space is cleaned up."""


def read_page(html: str, url: str) -> dict[str, Any]:
    """What a reader sees: `{url, title, text, links, tables}`.

    Args:
        html: The document.
        url: Where it was found, for its relative links.

    Returns:
        The text is Markdown as far as headings, lists and cells go; links are `{text, url}`, absolute, each address
        once; tables are `{caption, columns, rows}`.
    """
    tree = LexborHTMLParser(html)
    for selector in (_NOISE, _UNSEEN):
        for node in tree.css(selector):
            node.decompose()
    title = tree.css_first("title")
    main = tree.css_first("main, article") or tree.body
    found: dict[str, Any] = {"url": url, "title": _clean(title.text()) if title is not None else ""}
    if main is None:
        return {**found, "text": "", "links": [], "tables": []}
    links, tables = _links(main, url), [_table(table) for table in main.css("table")[:MAX_TABLES]]
    return {**found, "text": _text(main), "links": links, "tables": [table for table in tables if table["rows"]]}


def _text(main: LexborNode) -> str:
    for cell in main.css("td + td, td + th, th + td, th + th"):
        cell.insert_before(" | ")
    for item in main.css("li"):
        item.insert_before(f"{_BREAK}- ")
    for name, mark in _HEADINGS.items():
        for heading in main.css(name):
            heading.insert_before(f"{_BREAK}{mark} ")
            heading.insert_after(_BREAK)
    for block in main.css(_BLOCKS):
        if block.tag != "li":
            block.insert_before(_BREAK)
        block.insert_after(_BREAK)
    lines = (_clean(line) for line in main.text().split(_BREAK))
    return "\n".join(line for line in lines if line)


def _links(main: LexborNode, url: str) -> list[dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for anchor in main.css("a[href]"):
        target = _absolute(url, anchor.attributes.get("href") or "")
        if target is not None:
            found.setdefault(target, {"text": _clean(anchor.text()), "url": target})
    return list(found.values())[:MAX_LINKS]


def _absolute(base: str, reference: str) -> str | None:
    try:
        target = urljoin(base, reference)
        return target if urlsplit(target).scheme in {"http", "https"} else None
    except ValueError:
        return None


def _table(table: LexborNode) -> dict[str, Any]:
    """The table as a grid: a cell that spans several columns or rows is in each of them."""
    caption = table.css_first("caption")
    lines = table.css("tr")
    grid = _grid(lines)
    headed = bool(lines) and lines[0].css_first("th") is not None
    width = max(map(len, grid), default=0)
    rows = [row + [""] * (width - len(row)) for row in grid]
    return {
        "caption": _clean(caption.text()) if caption is not None else "",
        "columns": rows[0] if headed and rows else [f"column {number}" for number in range(1, width + 1)],
        "rows": rows[1:] if headed else rows,
    }


def _grid(lines: list[LexborNode]) -> list[list[str]]:
    grid: list[list[str]] = []
    carried: dict[int, tuple[int, str]] = {}
    """By column: the number of further rows that a cell from above spans, and its text."""
    for line in lines:
        row: list[str] = []
        for cell in line.css("td, th"):
            _carry(row, carried)
            text, rows = _clean(cell.text()), _span(cell, "rowspan")
            for _ in range(_span(cell, "colspan")):
                if rows > 1:
                    carried[len(row)] = (rows - 1, text)
                row.append(text)
        _carry(row, carried)
        grid.append(row)
    return [row for row in grid if row]


def _carry(row: list[str], carried: dict[int, tuple[int, str]]) -> None:
    while (above := carried.pop(len(row), None)) is not None:
        left, text = above
        if left > 1:
            carried[len(row)] = (left - 1, text)
        row.append(text)


def _span(cell: LexborNode, name: str) -> int:
    span = cell.attributes.get(name) or "1"
    return min(max(int(span), 1), MAX_SPAN) if span.isdecimal() else 1


def _clean(text: str) -> str:
    return " ".join(text.split())


def main() -> None:
    """Read one page. The first line of the input is its address."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    url, _, html = sys.stdin.buffer.read().decode().partition("\n")
    sys.stdout.write(json.dumps(read_page(html, url)))


if __name__ == "__main__":
    main()
