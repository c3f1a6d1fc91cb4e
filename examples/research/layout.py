"""What every page of this web has around its text, as pages have: menus, a cookie notice, scripts, advertisements."""

from collections.abc import Sequence
from html import escape
from typing import Final

_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<meta name="last-modified" content="{updated}">
<style>nav a {{ margin: 4px }} .cookies {{ position: fixed; bottom: 0 }}</style>
<script>window.analytics = {{ page: "{title}", price: "$0" }};</script>
</head>
<body>
<header><a href="{home}">{site}</a>
<nav><ul><li><a href="{home}">Home</a></li><li><a href="{home}pricing">Pricing</a></li>
<li><a href="{home}about">About</a></li><li><a href="{home}login">Log in</a></li></ul></nav></header>
<div class="cookies" role="dialog">We use cookies. <button>Accept all</button> <button>Refuse all</button></div>
<main>
<h1>{title}</h1>
{body}
<p><small>Last updated: <time datetime="{updated}">{updated}</time></small></p>
</main>
<aside><h2>Advertisement</h2><p>Forklifts from $99 per day!</p></aside>
<footer>{site} - Imprint - Privacy - <a href="{home}jobs">Jobs</a></footer>
</body>
</html>
"""


def page(*, title: str, updated: str, home: str, site: str, body: str) -> str:
    """A whole HTML page around a body, which is HTML already; `home` is the address of the site's first page."""
    return _PAGE.format(title=escape(title), updated=updated, home=escape(home), site=escape(site), body=body)


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """An HTML table of plain texts."""
    lines = [_row("th", head), *(_row("td", row) for row in rows)]
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def _row(cell: str, texts: tuple[str, ...]) -> str:
    return "<tr>" + "".join(f"<{cell}>{escape(text)}</{cell}>" for text in texts) + "</tr>"
