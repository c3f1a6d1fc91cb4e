"""What somebody may have meant: the known names that are closest to a wrong one."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Final

_MOST_COMPARED: Final = 500
_MOST_SHOWN: Final = 8


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
