"""Suggestions: the known names closest to a wrong one. The cost is bounded for names of any length."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from itertools import islice

_CONSIDERED = 100
_SHOWN = 8
_WIDTH = 60
_CLOSE = 0.6


def shorten(text: str) -> str:
    """The text, or its first characters and an ellipsis, so that a message stays readable."""
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def listing(name: str, known: Iterable[str]) -> str:
    """Up to eight of the known names, the closest first, for the end of a message; `none` if there are none."""
    ranked = _rank(name, known)
    if not ranked:
        return "none"
    more = ", …" if len(ranked) > _SHOWN else ""
    return ", ".join(candidate for _, candidate in ranked[:_SHOWN]) + more


def suggestion(name: str, known: Iterable[str]) -> str:
    """`did you mean 'x'? `, or nothing if no known name is close."""
    ranked = _rank(name, known)
    return f"did you mean {ranked[0][1]!r}? " if ranked and ranked[0][0] <= -_CLOSE else ""


def _rank(name: str, known: Iterable[str]) -> list[tuple[float, str]]:
    matcher = SequenceMatcher(None, autojunk=False)
    matcher.set_seq2(shorten(name))
    ranked: list[tuple[float, str]] = []
    for candidate in map(shorten, map(str, islice(known, _CONSIDERED))):
        matcher.set_seq1(candidate)
        ranked.append((-matcher.ratio(), candidate))
    return sorted(ranked)
