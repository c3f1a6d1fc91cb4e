"""The pages of the documentation and their links: which there are, what they link to, and which link leads nowhere.

`python -m tools.docs.pages` links the first use of each term of `TERMS` to the glossary, where a page does not.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

CONFIG: Final = Path("mkdocs.yml")
DOCS: Final = Path("docs")
GENERATED: Final = "generated"
"""Folder of the pages that are made from code; it is no folder of `docs`."""
NOT_PAGES: Final = {"decisions"}
"""Folders of `docs` whose files are linked to, and are no pages of the site."""

_FENCE: Final = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
_HEADING: Final = re.compile(r"^#{1,6} +(.*?) *$", re.MULTILINE)


def config(root: Path) -> dict[str, Any]:
    """The configuration of the site."""
    return yaml.safe_load((root / CONFIG).read_text(encoding="utf-8"))


def pages(root: Path) -> Mapping[str, str]:
    """The text of each page that is written by hand, by its path below `docs`."""
    found = sorted((root / DOCS).rglob("*.md"))
    relative = {page.relative_to(root / DOCS): page for page in found}
    return {
        path.as_posix(): page.read_text(encoding="utf-8")
        for path, page in relative.items()
        if path.parts[0] not in NOT_PAGES
    }


Nav: TypeAlias = "str | dict[str, Nav] | list[Nav]"
"""A page, a section with its title, or what is in a section."""


def navigation(nav: Nav) -> Iterator[str]:
    """The paths of all pages of a navigation, in its order."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for below in nav.values():
            yield from navigation(below)
    else:
        for below in nav:
            yield from navigation(below)


def prune(nav: Nav, known: set[str]) -> Nav:
    """A navigation without the pages that are not known, and without sections that are then empty."""
    if isinstance(nav, str):
        return nav if nav in known else ""
    if isinstance(nav, list):
        kept = [prune(each, known) for each in nav]
        return [each for each in kept if each]
    return {title: kept for title, below in nav.items() if (kept := prune(below, known))}


def prose(text: str) -> str:
    """A page without its fenced blocks."""
    return _FENCE.sub("", text)


def links(text: str) -> list[str]:
    """The targets of the links of a page; code has none."""
    return _LINK.findall(re.sub(r"`[^`\n]*`", "", prose(text)))


def anchors(text: str) -> set[str]:
    """The names of the headings of a page, as links name them."""
    found: set[str] = set()
    for heading in _HEADING.findall(prose(text)):
        name = slug(heading)
        number, unique = 1, name
        while unique in found:
            unique, number = f"{name}_{number}", number + 1
        found.add(unique)
    return found


def slug(heading: str) -> str:
    """The name of a heading in links.

    >>> slug("Agents as `steps`, and more")
    'agents-as-steps-and-more'
    """
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower())


def broken_links(folder: Path, text: str) -> Iterator[str]:
    """The relative links of a page in a folder that lead to no file, or to no heading of a page."""
    for link in links(text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = folder / path if path else None
        is_missing = target is not None and not target.exists()
        if is_missing or (anchor and anchor not in anchors(target.read_text(encoding="utf-8") if target else text)):
            yield link


TERMS: Final = {
    "loss report": "tools-and-definitions",
    "revision": "tools-and-definitions",
    "envelope": "runs",
    "idempotency key": "runs",
    "journal": "runs",
    "lease": "runs",
    "pin": "easily-confused",
    "unknown outcome": "runs",
    "principal": "rules-and-rights",
    "realm": "rules-and-rights",
    "tainted": "rules-and-rights",
}
"""Terms that a reader may not know, with their section of the glossary. A page links the first use of each."""

_UNREAD: Final = (
    re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE),
    re.compile(r"^(?:    .*|#.*)$", re.MULTILINE),
    re.compile(r"`[^`\n]*`"),
    re.compile(r"\]\([^)]*\)"),
)
"""Code, headings and the targets of links."""


def first_uses(text: str) -> Iterator[tuple[str, int, int]]:
    """The first use of each term that is not linked there: the term, and where it begins and ends."""
    read = text
    for unread in _UNREAD:
        read = unread.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), read)
    linked = [(found.start(), found.end()) for found in re.finditer(r"\[[^\]]*\](?=\()", text)]
    for term in TERMS:
        words = term.replace(" ", r"\s")
        found = re.search(rf"(?<![\w-]){words}s?(?![\w-])", read, re.IGNORECASE)
        if found and not any(begin < found.start() < end for begin, end in linked):
            yield term, found.start(), found.end()


def checks_terms(path: str) -> bool:
    """Whether a page must link terms: not the glossary itself, nor pages that speak in the words of others."""
    return path != "glossary.md" and not path.startswith(("specifications", "comparisons"))


def with_links(path: str, text: str) -> str:
    """A page with a link at the first use of each term.

    >>> with_links("tutorials/a.md", "A realm is a tenant.")
    'A [realm](../glossary.md#rules-and-rights) is a tenant.'
    """
    up = "../" * path.count("/")
    for term, begin, end in sorted(first_uses(text), key=lambda use: -use[1]):
        text = f"{text[:begin]}[{text[begin:end]}]({up}glossary.md#{TERMS[term]}){text[end:]}"
    return text


def main(root: Path) -> int:
    """Link the terms of all pages; prints which pages were changed."""
    for path, text in pages(root).items():
        if checks_terms(path) and (linked := with_links(path, text)) != text:
            (root / DOCS / path).write_text(linked, encoding="utf-8")
            print(f"linked terms in {DOCS / path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
