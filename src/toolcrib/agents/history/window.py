"""Which turns of a conversation a prompt shows, and which of them with short results. Numbers only.

The window moves in jumps and never back: as long as the turns fit, the prompt of the next turn begins with all of this
one, and a provider's cache serves it; when they do not fit any more, so much gives way at once that the next ones will.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Window(NamedTuple):
    """The turns that a prompt shows; turns are counted from 1."""

    first: int = 1
    """The first turn that is shown."""
    short: int = 1
    """Turns before this one are shown with short results."""


class Size(NamedTuple):
    """Estimated tokens of a turn."""

    whole: int
    short: int
    """With short results."""


def moved(
    window: Window, sizes: Mapping[int, Size], upcoming: int, *, most_turns: int | None, room: int | None
) -> Window:
    """The window for the next turn.

    Args:
        window: As the turn before had it.
        sizes: Of every turn from the window's first to the last one.
        upcoming: The next turn.
        most_turns: Turns that are shown at most; null for any number.
        room: Tokens that they may have; null for any number.
    """
    first, short = window
    if most_turns is not None and upcoming - first > most_turns:
        first = upcoming - (most_turns + 1) // 2
    if room is None or _total(Window(first, short), sizes, upcoming) <= room:
        return Window(first, max(first, short))
    goal = room // 2
    while short < upcoming and _total(Window(first, short), sizes, upcoming) > goal:
        short += 1
    while first < upcoming and _total(Window(first, short), sizes, upcoming) > goal:
        first += 1
    return Window(first, max(first, short))


def _total(window: Window, sizes: Mapping[int, Size], upcoming: int) -> int:
    shown = range(window.first, upcoming)
    return sum(sizes[turn].short if turn < window.short else sizes[turn].whole for turn in shown)
