"""Ranked search over tools, for a model or a person who knows what is to be done and not which tool does it.

BM25 over the words of names, titles, descriptions, tags and parameters (Robertson and Zaragoza 2009, equation 3.15,
with weighted fields). Words are compared without case and plural; a word that no tool has matches those that it
begins. No model and no index on disk: five thousand tools are indexed in under a second and searched in milliseconds,
and equal scores are ordered by name, so that the same question has the same answer everywhere.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from toolcrib.contracts import ToolDefinition

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|\d+")
"""`searchDeals`, `search_deals` and `HTTPServer2` are several words."""
_COMMON: Final = frozenset(
    {*("a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "into", "is", "it", "of", "on", "or")}
    | {*("that", "the", "this", "to", "with")}
)
_K1: Final = 1.2
_B: Final = 0.75
_NAME: Final = 4.0
_TITLE: Final = 2.0
_TAG: Final = 2.0
_TEXT: Final = 1.0
_PARAMETER: Final = 0.5
_PREFIX: Final = 0.5
"""Weight of a word that is only begun, in proportion to a whole one."""
_SHORTEST_PREFIX: Final = 3
_MOST_TEXT: Final = 2_000
"""Characters of a description that are indexed."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A tool that was found."""

    name: str
    score: float
    """Higher is better; 0 where nothing was asked. Comparable within one search only."""


@dataclass(frozen=True, slots=True)
class ToolGroup:
    """Tools of one group."""

    name: str
    """As in `group_of`."""
    tools: int


def group_of(tool: ToolDefinition) -> str:
    """The group of a tool: `category/first tag`, or the category alone. An import makes it provider and group."""
    return f"{tool.category}/{tool.tags[0]}" if tool.tags else tool.category


class ToolSearch:
    """An index of some tools. It does not change; make another one when they do.

    Args:
        tools: What can be found; of several with one name the last counts.
    """

    def __init__(self, tools: Iterable[ToolDefinition]) -> None:
        by_name = {tool.name: tool for tool in tools}
        self._names = sorted(by_name)
        self._groups = [group_of(by_name[name]) for name in self._names]
        self._postings: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        lengths: list[float] = []
        for index, name in enumerate(self._names):
            weights = _weights(by_name[name])
            lengths.append(sum(weights.values()))
            for word, weight in weights.items():
                self._postings[word].append((index, weight))
        average = sum(lengths) / len(lengths) if lengths else 1.0
        self._norms = [_K1 * (1 - _B + _B * length / average) for length in lengths]
        self._words = sorted(self._postings)

    def find(self, query: str, *, limit: int = 10, group: str | None = None) -> list[Hit]:
        """The tools that answer a query best, best first.

        Args:
            query: Words in any order; empty for all tools by name.
            limit: At most so many.
            group: Only tools of this group, or of the groups below it: `crm` for `crm/deals`.
        """
        words = list(dict.fromkeys(_words(query)))
        allowed = [group is None or found == group or found.startswith(f"{group}/") for found in self._groups]
        if not words:
            return [Hit(name, 0.0) for name, fits in zip(self._names, allowed, strict=True) if fits][:limit]
        scores: defaultdict[int, float] = defaultdict(float)
        for word in words:
            for index, score in self._scores(word):
                if allowed[index]:
                    scores[index] += score
        ranked = sorted(scores.items(), key=lambda found: (-found[1], self._names[found[0]]))
        return [Hit(self._names[index], score) for index, score in ranked[:limit]]

    def groups(self) -> Sequence[ToolGroup]:
        """All groups by name."""
        return [ToolGroup(name, count) for name, count in sorted(Counter(self._groups).items())]

    def _scores(self, word: str) -> Iterator[tuple[int, float]]:
        if word in self._postings:
            yield from self._scored(self._postings[word], 1.0)
            return
        if len(word) < _SHORTEST_PREFIX:
            return
        best: dict[int, float] = {}
        for found in self._words:
            if found.startswith(word):
                for index, weight in self._postings[found]:
                    best[index] = max(weight, best.get(index, 0.0))
        yield from self._scored(list(best.items()), _PREFIX)

    def _scored(self, postings: list[tuple[int, float]], share: float) -> Iterator[tuple[int, float]]:
        count = len(postings)
        rarity = math.log(1 + (len(self._names) - count + 0.5) / (count + 0.5))
        for index, weight in postings:
            yield index, share * rarity * weight * (_K1 + 1) / (weight + self._norms[index])


def _weights(tool: ToolDefinition) -> dict[str, float]:
    """How much each word says about a tool."""
    found: defaultdict[str, float] = defaultdict(float)
    texts = [(_NAME, tool.name), (_TITLE, tool.title or ""), (_TEXT, (tool.long_description or tool.description))]
    texts += [(_TEXT, tool.usage or ""), (_TAG, tool.category)]
    texts += [(_TAG, tag) for tag in tool.tags]
    texts += [(_PARAMETER, name) for name in tool.parameter_names()]
    for weight, text in texts:
        for word in _words(text[:_MOST_TEXT]):
            found[word] += weight
    return found


def _words(text: str) -> Iterator[str]:
    for match in _WORD.finditer(text):
        word = match[0].lower()
        if word not in _COMMON:
            yield _singular(word)


def _singular(word: str) -> str:
    """`companies` and `deals` as one would look for them; a wrong form is wrong on both sides."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
