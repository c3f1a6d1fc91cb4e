"""Output to a terminal or a file: the same text, with colours only on a terminal."""

import re
import sys
from contextvars import ContextVar
from decimal import Decimal
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

JSON_ONLY: Final = ContextVar("JSON_ONLY", default=False)
"""Whether the command prints JSON: then nothing else is printed, and no question is asked."""
_WIDTH: Final = 120
"""Columns where there is no terminal to ask."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def console(file: TextIO | None = None) -> "Console":
    """A console on stdout, or on a file."""
    from rich.console import Console

    where = file or sys.stdout
    return Console(file=where, width=None if where.isatty() else _WIDTH, highlight=False, soft_wrap=False)


def clean(text: str) -> str:
    """Text from outside without control characters."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def width_of(text: str) -> int:
    """Cells that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def plain(text: str, style: str = "") -> "Text":
    """Text from outside: no markup in it is read, no control character reaches the terminal."""
    from rich.text import Text

    return Text(clean(text), style=style)


def money(usd: Decimal | None) -> str:
    """US dollars to a millionth: `$0.004`."""
    if usd is None:
        return "unknown"
    return f"${usd:.6f}".rstrip("0").rstrip(".")


def cost(usd: Decimal | None, *, unknown: bool) -> str:
    """A cost that may be a lower bound: `$0.004 or more`."""
    return f"{money(usd)} or more" if unknown and usd is not None else money(usd)


def duration(milliseconds: int | None) -> str:
    """`456ms`, `3.2s`, `2m 05s`."""
    if milliseconds is None:
        return "…"
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.1f}s"
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    return f"{minutes}m {seconds:02}s"
