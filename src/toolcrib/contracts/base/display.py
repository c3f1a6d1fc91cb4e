"""Short texts of values for `repr`, notebooks and terminals: of bounded length, on one line, and escaped in HTML."""

from collections.abc import Iterable, Sequence
from reprlib import Repr
from typing import Any, Final, NamedTuple

_LONGEST: Final = 160
_short = Repr()
_short.maxlevel = 3
_short.maxdict = _short.maxlist = _short.maxtuple = _short.maxset = 5
_short.maxstring = _short.maxother = _LONGEST


class DisplayRow(NamedTuple):
    """A line of a tree: what it is, how it stands, and more about it."""

    depth: int
    title: str
    status: str = ""
    detail: str = ""


def short(value: object, limit: int = _LONGEST) -> str:
    """The value on one line, cut to so many characters. Large values are not written out to be cut."""
    return clipped(value if isinstance(value, str) else _short.repr(value), limit)


def clipped(text: str, limit: int = _LONGEST) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text[: limit * 4].split())
    return line if len(line) <= limit and len(text) <= limit * 4 else f"{line[: limit - 1]}…"


def fields_in_short(name: str, /, **fields: object) -> str:
    """`Name(field=value, ...)` without the fields that are null or empty."""
    shown = (f"{key}={_short.repr(value)}" for key, value in fields.items() if value not in (None, "", ()))
    return f"{name}({', '.join(clipped(text) for text in shown)})"


def html_table(caption: str, facts: Iterable[tuple[str, object]], rows: Sequence[DisplayRow] = ()) -> str:
    """A table of facts, and under it one of rows. Every text is escaped, and there are no scripts."""
    from html import escape  # noqa: PLC0415 - only when something is drawn

    def cell(value: object) -> str:
        return escape(short(value))

    lines = ['<div class="toolcrib">', f"<strong>{escape(clipped(caption))}</strong>", "<table>"]
    lines += [f"<tr><th>{escape(key)}</th><td>{cell(value)}</td></tr>" for key, value in facts if value is not None]
    lines.append("</table>")
    if rows:
        lines.append("<table><tr><th>step</th><th>status</th><th></th></tr>")
        lines += [
            f'<tr><td style="text-align:left;padding-left:{row.depth + 0.5}em">{cell(row.title)}</td>'
            f'<td>{cell(row.status)}</td><td style="text-align:left">{cell(row.detail)}</td></tr>'
            for row in rows
        ]
        lines.append("</table>")
    return "".join([*lines, "</div>"])


def rich_tree(caption: str, facts: Iterable[tuple[str, object]], rows: Sequence[DisplayRow] = ()) -> Any:
    """The same for terminals, as a `rich.tree.Tree`; rich is loaded now. Markup in texts has no effect."""
    from rich.text import Text  # noqa: PLC0415 - only when something is drawn
    from rich.tree import Tree  # noqa: PLC0415

    root = Tree(Text(clipped(caption), style="bold"))
    for key, value in facts:
        if value is not None:
            root.add(Text(f"{key}: {short(value)}"))
    branches = [root]
    for row in rows:
        del branches[row.depth + 1 :]
        branches.append(branches[-1].add(Text("  ".join(filter(None, (row.title, row.status, short(row.detail)))))))
    return root
