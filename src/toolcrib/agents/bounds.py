"""Whether more or less than a number, or before or after a day, is meant: in a task's words, and in a condition.

English words, and the names that interfaces commonly give to comparisons. What is not recognised has no bound and is
not judged.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from toolcrib.contracts import Json, JsonObject

Side: TypeAlias = Literal["above", "below", "equal"]


@dataclass(frozen=True, slots=True)
class Bound:
    """On which side of a value others must be."""

    side: Side
    inclusive: bool
    """Whether the value itself is meant too."""


_SAID: Final[Sequence[tuple[str, Bound]]] = (
    (r"at least|minimum of|not less than|no less than|not below|not under", Bound("above", inclusive=True)),
    (r"at most|up to|maximum of|no more than|not more than|not above|not over", Bound("below", inclusive=True)),
    (
        r"over|above|beyond|after|exceed|exceeds|exceeding|(?:more|greater|larger|higher|bigger|later) than",
        Bound("above", inclusive=False),
    ),
    (
        r"under|below|before|(?:less|fewer|smaller|lower|cheaper|earlier) than|prior to",
        Bound("below", inclusive=False),
    ),
)
_BEFORE: Final = tuple((re.compile(rf"\b(?:{words})(?: the| an?)?$"), bound) for words, bound in _SAID)
"""Of the words right before a value; the longer wordings stand first."""
_BEHIND: Final = (
    (re.compile(r"^(?:usd |dollars |euros? )?(?:or|and) (?:more|above|over|higher|up|later|after)\b"), "above"),
    (re.compile(r"^(?:usd |dollars |euros? )?(?:or|and) (?:less|below|under|lower|fewer|earlier|before)\b"), "below"),
)
_ABOVE: Final = frozenset(("gt", "gte", "ge", "greater", "more", "above", "over", "after", "min", "minimum", "since"))
_BELOW: Final = frozenset(("lt", "lte", "le", "less", "fewer", "below", "under", "before", "max", "maximum", "until"))
_EQUAL: Final = frozenset(("eq", "equal", "equals", "is"))
_INCLUSIVE: Final = frozenset(("gte", "ge", "lte", "le", "min", "minimum", "max", "maximum", "equal", "equals", "eq"))
_FILLING: Final = frozenset(("than", "or", "is", "to"))
_SIGNS: Final = {
    ">": Bound("above", inclusive=False),
    ">=": Bound("above", inclusive=True),
    "<": Bound("below", inclusive=False),
    "<=": Bound("below", inclusive=True),
    "=": Bound("equal", inclusive=True),
    "==": Bound("equal", inclusive=True),
}


def said_bound(before: Sequence[str], behind: Sequence[str]) -> Bound | None:
    """What the folded words around a value in a task say, or null."""
    text, rest = " ".join(before[-4:]), " ".join(behind[:3])
    for pattern, side in _BEHIND:
        if pattern.search(rest):
            return Bound("above" if side == "above" else "below", inclusive=True)
    return next((bound for pattern, bound in _BEFORE if pattern.search(text)), None)


def written_bound(around: JsonObject, value: Json, name: str) -> Bound | None:
    """What a condition says of its value: by the operator beside it, or by its own name, such as `min_amount`.

    Args:
        around: The object that the value stands in.
        value: The value.
        name: Its name there.
    """
    for item in around.values():
        if isinstance(item, str) and item != value and (bound := _operator(item)) is not None:
            return bound
    words = _words(name)
    sides = {side for side, known in (("above", _ABOVE), ("below", _BELOW)) if not known.isdisjoint(words)}
    if len(sides) != 1:
        return None
    return Bound("above" if "above" in sides else "below", inclusive=not _INCLUSIVE.isdisjoint(words))


def _operator(text: str) -> Bound | None:
    """The bound that an operator's name says, if every word of it is one that such names are made of."""
    if text in _SIGNS:
        return _SIGNS[text]
    words = _words(text)
    if not words or not words <= _ABOVE | _BELOW | _EQUAL | _FILLING:
        return None
    inclusive = not _INCLUSIVE.isdisjoint(words)
    if not _ABOVE.isdisjoint(words):
        return Bound("above", inclusive=inclusive)
    if not _BELOW.isdisjoint(words):
        return Bound("below", inclusive=inclusive)
    return None if _EQUAL.isdisjoint(words) else Bound("equal", inclusive=True)


def _words(name: str) -> frozenset[str]:
    """The words of a name that is written with underscores or with capitals inside."""
    return frozenset(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").replace("-", " ").lower().split())
