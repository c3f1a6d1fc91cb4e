"""Which of several values some words mean, by the letters that their names share with the words.

`won` means `Closed won` among the stages of a deal, since no other stage is called so; `Rafael` means nobody where
three people are called so. Synonyms and translations share no letters: those are asked about.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from toolcrib.agents.evidence.words import matches, shares_stem, stands_in, words_of
from toolcrib.contracts import Json

Fit: TypeAlias = Literal["whole", "part", "tie", "none"]
"""whole: the name stands in the words. part: a part of it does, and of no other as much. tie: of others as much."""

_LETTERS: Final = 3
"""Fewest letters that a part of a name must share with the words to mean it."""
_STEM: Final = 0.7
"""What a word counts of which only the beginning is shared."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """How well some words name a value."""

    fit: Fit
    others: tuple[str, ...] = ()
    """Names that they fit as well."""


def meaning_of(name: str, names: Iterable[str], words: Sequence[str]) -> Meaning:
    """How well words name a value.

    Args:
        name: What the value is called.
        names: What all values are called that there are; the same name may stand there more than once.
        words: Folded words.
    """
    spelled = words_of(name)
    others = {other: words_of(other) for other in dict.fromkeys(names) if words_of(other) != spelled}
    if stands_in(spelled, words):
        longer = [other for other, parts in others.items() if stands_in(spelled, parts) and stands_in(parts, words)]
        return Meaning("none", tuple(longer)) if longer else Meaning("whole")
    if any(stands_in(parts, words) for parts in others.values()):
        return Meaning("none")
    own = _shared(spelled, words)
    if own < _LETTERS:
        return Meaning("none")
    scores: Mapping[str, float] = {other: _shared(parts, words) for other, parts in others.items()}
    if any(score > own for score in scores.values()):
        return Meaning("none")
    tied = tuple(other for other, score in scores.items() if score == own)
    return Meaning("tie", tied) if tied else Meaning("part")


def called(value: Json, labels: Mapping[str, str]) -> str:
    """What people call a value."""
    return labels.get(str(value), str(value).replace("_", " "))


def _shared(name: Sequence[str], words: Sequence[str]) -> float:
    """Letters of a name that stand in the words, as whole words or as their beginnings."""
    return sum(max((_letters(part, word) for word in words), default=0.0) for part in name)


def _letters(part: str, word: str) -> float:
    if matches(part, word) and len(part) >= _LETTERS:
        return float(len(part))
    return _STEM * len(part) if shares_stem(part, word) else 0.0
