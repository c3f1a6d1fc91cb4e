"""Finds documents by words: Okapi BM25 (Robertson and Zaragoza, 2009) over title and text, on plain stems.

Small on purpose: it ranks a few dozen documents, and like any search engine it knows nothing of what is true.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_WORD: Final = re.compile(r"[a-z0-9]+")
_SUFFIXES: Final = ("ings", "ing", "es", "ed", "s", "e")
_COMMON: Final = frozenset(
    {"a", "an", "and", "are", "by", "do", "does", "for", "from", "how", "in", "is", "it", "its", "me", "much", "of"}
    | {"on", "or", "our", "that", "the", "this", "to", "was", "what", "when", "where", "which", "who", "with"}
)
_K1: Final = 1.4
_B: Final = 0.6
_TITLE_WEIGHT: Final = 4
_SNIPPET: Final = 220


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that a query finds."""

    index: int
    """Its place among the documents."""
    score: float


class Index:
    """Documents, ready to be searched.

    Args:
        documents: Title and text of each.
    """

    def __init__(self, documents: Sequence[tuple[str, str]]) -> None:
        self._counts = [Counter(_TITLE_WEIGHT * stems(title) + stems(text)) for title, text in documents]
        self._texts = [text for _, text in documents]
        self._mean = sum(counts.total() for counts in self._counts) / max(len(documents), 1)
        self._found_in = Counter(stem for counts in self._counts for stem in counts)

    def search(self, query: str) -> list[Hit]:
        """The documents that have a word of the query, the best first."""
        wanted = set(stems(query))
        scored = (Hit(index, self._score(wanted, counts)) for index, counts in enumerate(self._counts))
        return sorted((hit for hit in scored if hit.score > 0), key=lambda hit: (-hit.score, hit.index))

    def snippet(self, index: int, query: str) -> str:
        """The part of a document's text where the query's words are densest."""
        wanted = set(stems(query))
        words = self._texts[index].split()
        width = 30
        starts = range(0, max(len(words) - width // 2, 1), width // 2)
        best = max(starts, key=lambda start: len(wanted & set(stems(" ".join(words[start : start + width])))))
        return " ".join(words[best : best + width])[:_SNIPPET]

    def _score(self, wanted: set[str], counts: Counter[str]) -> float:
        length = _K1 * (1 - _B + _B * counts.total() / self._mean)
        return sum(self._rarity(stem) * counts[stem] * (_K1 + 1) / (counts[stem] + length) for stem in wanted)

    def _rarity(self, stem: str) -> float:
        found = self._found_in[stem]
        return math.log(1 + (len(self._counts) - found + 0.5) / (found + 0.5))


def stems(text: str) -> list[str]:
    """The text's words without common ones and without their endings."""
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in _COMMON]


def _stem(word: str) -> str:
    suffix = next((end for end in _SUFFIXES if word.endswith(end) and len(word) - len(end) >= 3), "")
    return word.removesuffix(suffix)
