"""HTML as text that can be read: without scripts, menus, notices and everything that a reader would not see.

Hidden text goes too, because it is written for machines: orders to whoever reads a page are often hidden in it. What
is left is still a stranger's text.
"""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_TEXT: Final = 12_000
"""Characters of text that are kept of a page."""
MAX_LINKS: Final = 40

_NOISE: Final = "script, style, noscript, template, nav, header, footer, aside, form, button, svg, iframe, dialog"
_UNSEEN: Final = (
    "[hidden], [aria-hidden=true], [role=dialog], [style*='display:none'], [style*='display: none'], "
    "[style*='visibility:hidden'], [style*='visibility: hidden']"
)
_BLOCKS: Final = "p, li, tr, pre, blockquote, dt, dd, div, section, article, table, ul, ol, br, hr, figcaption"
_HEADINGS: Final = {f"h{level}": "#" * level for level in range(1, 7)}
_BREAK: Final = "\x1e"
"""Stands for the end of a line until white space is cleaned up."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link on a page."""

    text: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a reader sees of a page."""

    url: str
    title: str
    updated: str | None
    """When the page says that it was changed last."""
    text: str
    """Headings start with `#`, items of lists with `-`; cells of a table are parted by `|`."""
    truncated: bool
    """Whether there was more text than fits."""
    links: list[Link]


def readable(html: bytes, url: str) -> Page:
    """Read a page that was found at an address."""
    tree = LexborHTMLParser(html)
    for selector in (_NOISE, _UNSEEN):
        for node in tree.css(selector):
            node.decompose()
    title, stamp = tree.css_first("title"), tree.css_first("time[datetime]")
    main = tree.css_first("main, article") or tree.body
    links = [] if main is None else _links(main, url)
    text = "" if main is None else _text(main)
    return Page(
        url=url,
        title=_clean(title.text()) if title is not None else "",
        updated=stamp.attributes.get("datetime") if stamp is not None else None,
        text=text[:MAX_TEXT],
        truncated=len(text) > MAX_TEXT,
        links=links,
    )


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


def _links(main: LexborNode, url: str) -> list[Link]:
    found: dict[str, Link] = {}
    for anchor in main.css("a[href]"):
        target = urljoin(url, anchor.attributes.get("href") or "")
        if urlsplit(target).scheme in {"http", "https"}:
            found.setdefault(target, Link(_clean(anchor.text()), target))
    return list(found.values())[:MAX_LINKS]


def _clean(text: str) -> str:
    return " ".join(text.split())
