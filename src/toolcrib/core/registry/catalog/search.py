"""Ranked search over tools.

BM25 over the words of names, titles, descriptions, tags and parameters (Robertson and Zaragoza 2009, equation 3.15,
with weighted fields). Words are compared without case and plural; an unknown word matches as a prefix. Equal scores
are ordered by name, so results are deterministic. In catalogues of many thousand tools, a word that more than a tenth
of them have only ranks the results of the other words (docs/benchmarks.md).
"""

import math
import re
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from heapq import nlargest, nsmallest
from itertools import islice, takewhile
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
_COMMON_FROM: Final = 2_000
_COMMON_SHARE: Final = 0.1
"""A word is common if more tools have it than either of these."""
_MOST_ORDERED: Final = 1_000
"""Tools that common words are looked up for."""
_SWEPT_FROM: Final = 1_000


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
    """An index of tools by the words that they are described with.

    Args:
        tools: What can be found; of several with one name the last counts.
    """

    def __init__(self, tools: Iterable[ToolDefinition] = ()) -> None:
        self._lay_out({tool.name: tool for tool in tools}.values())

    def _lay_out(self, tools: Iterable[ToolDefinition]) -> None:
        """Index these tools and no others, numbered without gaps."""
        left = list(tools)
        self._numbers: dict[str, int] = {}
        self._tools: list[ToolDefinition | None] = []
        """By number; null for one that was taken out."""
        self._groups: list[str] = []
        self._lengths = array("d")
        self._length = 0.0
        """Of all that can be found."""
        self._postings: dict[str, _Postings] = {}
        self._words: list[str] | None = None
        """In order; null while it has to be made anew."""
        self._best: dict[str, list[int]] = {}
        """Where common words count most, until something changes."""
        for tool in left:
            self.add(tool)

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, tool: ToolDefinition) -> None:
        """Make a tool findable, in the place of an earlier one with its name."""
        self.discard(tool.name)
        number, weights = len(self._tools), _weights(tool)
        self._numbers[tool.name] = number
        self._tools.append(tool)
        self._groups.append(group_of(tool))
        length = sum(weights.values())
        self._lengths.append(length)
        self._length += length
        for word, weight in weights.items():
            postings = self._postings.get(word)
            if postings is None:
                postings = self._postings[word] = _Postings()
                self._words = None
            postings.add(number, weight)
        self._best.clear()

    def discard(self, name: str) -> None:
        """Have a tool not be found any more, if it is known."""
        number = self._numbers.pop(name, None)
        tool = None if number is None else self._tools[number]
        if number is None or tool is None:
            return
        self._tools[number] = None
        for word in _weights(tool):
            self._postings[word].removed += 1
        self._length -= self._lengths[number]
        self._best.clear()
        if len(self._tools) > _SWEPT_FROM and len(self._tools) > 2 * len(self._numbers):
            self._lay_out(tool for tool in self._tools if tool is not None)

    def find(
        self, query: str, *, limit: int = 10, group: str | None = None, among: AbstractSet[str] | None = None
    ) -> list[Hit]:
        """The tools that answer a query best, best first.

        Args:
            query: Words in any order; empty for all tools by name.
            limit: At most so many.
            group: Only tools of this group, or of the groups below it: `crm` for `crm/deals`.
            among: Only tools of these names; null for all.
        """

        def fits(number: int) -> bool:
            tool, found = self._tools[number], self._groups[number]
            in_group = group is None or found == group or found.startswith(f"{group}/")
            return in_group and tool is not None and (among is None or tool.name in among)

        words = list(dict.fromkeys(_words(query)))
        if not words:
            names = (name for name in sorted(self._numbers) if fits(self._numbers[name]))
            return [Hit(name, 0.0) for name in islice(names, limit)]
        scores = self._scores([term for word in words if (term := self._term(word)) is not None], fits)
        best = nsmallest(limit, scores.items(), key=lambda found: (-found[1], self._name(found[0])))
        return [Hit(self._name(number), score) for number, score in best]

    def groups(self) -> Sequence[ToolGroup]:
        """All groups by name."""
        counted = Counter(self._groups[number] for number in self._numbers.values())
        return [ToolGroup(name, count) for name, count in sorted(counted.items())]

    def _name(self, number: int) -> str:
        tool = self._tools[number]
        return "" if tool is None else tool.name

    def _scores(self, terms: Sequence["_Term"], fits: Callable[[int], bool]) -> dict[int, float]:
        """Scores by number. A word that much of a large catalogue has tells little: it orders what others found."""
        common = max(_COMMON_FROM, len(self._numbers) * _COMMON_SHARE)
        rare = [term for term in terms if len(term.postings) <= common]
        frequent = sorted((term for term in terms if len(term.postings) > common), key=lambda term: len(term.postings))
        scores: defaultdict[int, float] = defaultdict(float)
        for term in rare:
            for number, score in self._score_postings(term, term.postings):
                scores[number] += score
        if not rare:
            for term in frequent:
                scores.update(dict.fromkeys(self._most(term), 0.0))
        found = {number: score for number, score in scores.items() if fits(number)}
        if not frequent:
            return found
        kept = nlargest(_MOST_ORDERED, found, key=found.__getitem__) if rare else list(found)
        held = {number: found[number] for number in kept}
        for term in frequent:
            for number, score in self._score_postings(term, term.postings.of(kept)):
                held[number] += score
        return held

    def _term(self, word: str) -> "_Term | None":
        """Where a word stands; one that stands nowhere is taken for the beginning of others."""
        known = self._postings.get(word)
        if known is not None:
            return _Term(word, known, 1.0)
        if len(word) < _SHORTEST_PREFIX:
            return None
        if self._words is None:
            self._words = sorted(self._postings)
        first, best = bisect_left(self._words, word), dict[int, float]()
        for begun in takewhile(lambda known: known.startswith(word), islice(self._words, first, None)):
            for number, weight in self._postings[begun]:
                best[number] = max(weight, best.get(number, 0.0))
        return _Term(word, _Postings(sorted(best.items())), _PREFIX) if best else None

    def _score_postings(self, term: "_Term", postings: Iterable[tuple[int, float]]) -> Iterator[tuple[int, float]]:
        count, total = len(term.postings) - term.postings.removed, len(self._numbers)
        factor = term.share * (_K1 + 1) * math.log(1 + (total - count + 0.5) / (count + 0.5))
        least, slope = _K1 * (1 - _B), _K1 * _B * len(self._numbers) / (self._length or 1.0)
        lengths = self._lengths
        return ((number, factor * weight / (weight + least + slope * lengths[number])) for number, weight in postings)

    def _most(self, term: "_Term") -> list[int]:
        """The tools that a common word says most about."""
        known = self._best.get(term.word)
        if known is None:
            scored = self._score_postings(term, term.postings)
            best = nsmallest(_MOST_ORDERED, scored, key=lambda found: (-found[1], self._name(found[0])))
            known = self._best[term.word] = [number for number, _ in best]
        return known


class _Postings:
    """Numbers of the tools that have a word, in order, each with what the word weighs there."""

    __slots__ = ("_numbers", "_weights", "removed")

    def __init__(self, found: Iterable[tuple[int, float]] = ()) -> None:
        self._numbers, self._weights = array("I"), array("f")
        self.removed = 0
        """How many of the tools were taken out since."""
        for number, weight in found:
            self.add(number, weight)

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[tuple[int, float]]:
        return zip(self._numbers, self._weights, strict=True)

    def add(self, number: int, weight: float) -> None:
        """Add a tool with a higher number than all before it."""
        self._numbers.append(number)
        self._weights.append(weight)

    def of(self, numbers: Iterable[int]) -> Iterator[tuple[int, float]]:
        """The postings of some tools."""
        mine, weights = self._numbers, self._weights
        for number in numbers:
            place = bisect_left(mine, number)
            if place < len(mine) and mine[place] == number:
                yield number, weights[place]


@dataclass(frozen=True, slots=True)
class _Term:
    """One word of a query and where it stands."""

    word: str
    postings: _Postings
    share: float


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
