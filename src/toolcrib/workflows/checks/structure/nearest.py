"""What somebody may have meant: the known names that are closest to a wrong one."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Final

_MOST_COMPARED: Final = 500
_MOST_SHOWN: Final = 8
_MOST_SUGGESTIONS: Final = 100
_MOST_WORK: Final = 4_000_000
"""Pairs of characters, of a name and of those that it is compared with, for all suggestions about one definition."""


def near(name: str, known: Iterable[str]) -> str:
    """What to write instead: the closest name, else those that there are.

    Args:
        name: That is not known.
        known: Those that are; the first 500 are looked at.
    """
    names = sorted(islice(known, _MOST_COMPARED))
    found = get_close_matches(name, names, n=1)
    if found:
        return f"did you mean {found[0]!r}?"
    more = ", …" if len(names) > _MOST_SHOWN else ""
    return f"there is: {', '.join(names[:_MOST_SHOWN])}{more}" if names else "there is none"


class Nearest:
    """The same for one definition: after a hundred suggestions its author has enough to do, and there are no more.

    Long names are compared slowly: when that was too much work, there are no more either.
    """

    def __init__(self) -> None:
        self._left = _MOST_SUGGESTIONS
        self._work = _MOST_WORK

    def take(self) -> bool:
        """Count one suggestion; false if there are no more."""
        self._left -= 1
        return self._left >= 0

    def near(self, name: str, known: Iterable[str]) -> str | None:
        """As the function of this name, or null."""
        names = list(islice(known, _MOST_COMPARED))
        self._work -= len(name) * sum(map(len, names))
        return near(name, names) if self._work >= 0 and self.take() else None
