"""Matches words in any language: quotations in a task, labels by shared letters, and labels in calls.

Case, accents, punctuation and endings such as `Globex's` are ignored; scripts without spaces are compared by
character. `won` means `Closed won` if no other stage shares as many letters, and a first name that three people share
means none of them. Synonyms and translations are left to a model. A model may use labels where a call needs ids: they
are replaced, also in pairs such as `{"property": "stage", "value": "Negotiation"}`; an ambiguous label is refused with
its values.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from functools import cached_property, lru_cache
from typing import Final, Literal, TypeAlias, cast

from toolcrib.contracts import Json, JsonObject, JsonSchema
from toolcrib.core.providers import ReferenceList, resolve
from toolcrib.core.registry import LABELS

_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # kana and Han
)
"""Scripts that put no spaces between words."""
_TOKEN: Final = re.compile(rf"\d+|[{_UNSPACED}]|[^\W\d_{_UNSPACED}]+")
_APOSTROPHES: Final = "'\u2019\u02bc"
_QUOTED: Final = re.compile(r"[\"\u201c\u201e\u00ab\u300c]([^\"\u201c\u201d\u00bb\u300d]+)[\"\u201d\u201c\u00bb\u300d]")

_ALIKE: Final = 0.8
"""How alike two words must be, of 1, for one to be a misspelling of the other."""
_ENOUGH: Final = 0.75
"""Share of a quotation's letters that must stand in the text, in their order."""
_ENDING: Final = 3
"""Most letters that an inflected word has beyond its stem."""
_SHORTEST_STEM: Final = 4
_NAME: Final = 60
"""Most characters of what may be a name."""
_MOST_SEARCHED: Final = 3_000
"""Words of a text in which misspelled quotations are looked for."""


@dataclass(frozen=True, slots=True)
class WordToken:
    """A word, a number or a character of a text."""

    folded: str
    """Without case and accents."""
    start: int
    end: int


def fold(text: str) -> str:
    """The text without case and accents, in compatibility form: full-width letters are letters."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


def tokens_of(text: str) -> tuple[WordToken, ...]:
    """The words, numbers and characters of a text, in order."""
    return tuple(
        WordToken(word, found.start(), found.end())
        for found in _TOKEN.finditer(_one_to_one(text))
        if (word := fold(found[0]))
    )


def words_of(text: str) -> tuple[str, ...]:
    """The same, folded."""
    return _words_of_name(text) if len(text) <= _NAME else _words_of(text)


def _words_of(text: str) -> tuple[str, ...]:
    return tuple(token.folded for token in tokens_of(unicodedata.normalize("NFC", text)))


@lru_cache(maxsize=2048)
def _words_of_name(text: str) -> tuple[str, ...]:
    """Kept, since the same few names are looked for again and again."""
    return _words_of(text)


def stands_in(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether words stand in others side by side, each as it is or with an ending."""
    return next(_places(part, whole), None) is not None


def matches(word: str, candidate: str) -> bool:
    """Whether a word was said: as it is, or with an ending of a few letters."""
    if word == candidate:
        return True
    return len(word) >= _SHORTEST_STEM and candidate.startswith(word) and len(candidate) - len(word) <= _ENDING


def shares_stem(one: str, other: str) -> bool:
    """Whether two words begin alike over most of their length, as forms of one word do."""
    shorter = min(len(one), len(other))
    if one == other:
        return True
    common = next((place for place in range(shorter) if one[place] != other[place]), shorter)
    return common >= _SHORTEST_STEM and common >= 0.6 * max(len(one), len(other))


class Passage:
    """A text in which quotations are found.

    Args:
        text: The text.
    """

    def __init__(self, text: str) -> None:
        self.text = unicodedata.normalize("NFC", text)

    @cached_property
    def tokens(self) -> tuple[WordToken, ...]:
        """Its words, numbers and characters."""
        return tokens_of(self.text)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The same, folded."""
        return tuple(token.folded for token in self.tokens)

    def find(self, quotation: str, places_taken: Iterable[int] = ()) -> frozenset[int] | None:
        """The places of a quotation's words among the text's, null if it is not a quotation of it.

        Near-verbatim is enough: words may be left out of it, misspelled in it or corrected in it.

        Args:
            quotation: What is said to stand in the text.
            places_taken: Places that others stand at already; another occurrence is preferred.
        """
        wanted = words_of(quotation)
        if not wanted:
            return None
        spans = [range(start, start + len(wanted)) for start in _exact(wanted, self.words)]
        used = frozenset(places_taken)
        if spans:
            return frozenset(min(spans, key=lambda span: len(used.intersection(span))))
        return self._nearly(wanted)

    def find_value(self, value: str) -> frozenset[int] | None:
        """The places of a value's words, each as it is or with an ending; null if they do not stand side by side."""
        wanted = words_of(value)
        start = next(_places(wanted, self.words), None)
        return None if start is None else frozenset(range(start, start + len(wanted)))

    def words_at(self, places: Iterable[int]) -> tuple[str, ...]:
        """The folded words at some places, in the order of the text."""
        return tuple(self.words[place] for place in sorted(places))

    def text_at(self, places: Iterable[int]) -> str:
        """The text from the first of some places to the last."""
        ordered = sorted(places)
        return self.text[self.tokens[ordered[0]].start : self.tokens[ordered[-1]].end] if ordered else ""

    def runs(self, places: Iterable[int]) -> list[tuple[int, ...]]:
        """Places that stand side by side, together."""
        found: list[list[int]] = []
        for place in sorted(places):
            if found and found[-1][-1] == place - 1:
                found[-1].append(place)
            else:
                found.append([place])
        return [tuple(run) for run in found]

    def is_ending(self, place: int) -> bool:
        """Whether a word hangs on the one before it by an apostrophe, as in `Globex's` and `Globex'in`."""
        if place == 0:
            return False
        between = self.text[self.tokens[place - 1].end : self.tokens[place].start]
        return between in _APOSTROPHES and bool(between)

    def quotations(self) -> list[frozenset[int]]:
        """The places of what stands in quotation marks."""
        spans = [found.span(1) for found in _QUOTED.finditer(self.text)]
        return [
            frozenset(place for place, token in enumerate(self.tokens) if start <= token.start and token.end <= end)
            for start, end in spans
        ]

    def _nearly(self, wanted: Sequence[str]) -> frozenset[int] | None:
        if len(self.words) > _MOST_SEARCHED:
            return None
        known = set(self.words)
        corrected = [word if word in known else _closest(word, known) for word in wanted]
        blocks = SequenceMatcher(None, corrected, self.words, autojunk=False).get_matching_blocks()
        places = [place for block in blocks for place in range(block.b, block.b + block.size)]
        length = sum(len(self.words[place]) for place in places)
        if not places or length < _ENOUGH * sum(map(len, wanted)) or places[-1] - places[0] > 3 * len(wanted) + 6:
            return None
        return frozenset(places)


def _closest(word: str, known: Iterable[str]) -> str:
    near = get_close_matches(word, known, n=1, cutoff=_ALIKE) if len(word) >= _SHORTEST_STEM else []
    return near[0] if near else word


def _exact(part: Sequence[str], whole: Sequence[str]) -> Iterator[int]:
    width, wanted = len(part), tuple(part)
    return (start for start in range(len(whole) - width + 1) if tuple(whole[start : start + width]) == wanted)


def _places(part: Sequence[str], whole: Sequence[str]) -> Iterator[int]:
    """Where words stand in others side by side, each as it is or with an ending."""
    width = len(part)
    if not width:
        return iter(())
    first = part[0]
    return (
        start
        for start in range(len(whole) - width + 1)
        if whole[start].startswith(first)  # for most places this decides
        and all(matches(one, other) for one, other in zip(part, whole[start : start + width], strict=True))
    )


def _one_to_one(text: str) -> str:
    """The text with full-width forms as plain ones, every character in its place."""
    if text.isascii():
        return text
    return "".join(plain if len(plain := unicodedata.normalize("NFKC", letter)) == 1 else letter for letter in text)


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
    own = _letters_in_common(spelled, words)
    if own < _LETTERS:
        return Meaning("none")
    scores: Mapping[str, float] = {other: _letters_in_common(parts, words) for other, parts in others.items()}
    if any(score > own for score in scores.values()):
        return Meaning("none")
    tied = tuple(other for other, score in scores.items() if score == own)
    return Meaning("tie", tied) if tied else Meaning("part")


def label_of(value: Json, labels: Mapping[str, str]) -> str:
    """What people call a value."""
    return labels.get(str(value), str(value).replace("_", " "))


def _letters_in_common(name: Sequence[str], words: Sequence[str]) -> float:
    """Letters of a name that stand in the words, as whole words or as their beginnings."""
    return sum(max((_letters(part, word) for word in words), default=0.0) for part in name)


def _letters(part: str, word: str) -> float:
    if matches(part, word) and len(part) >= _LETTERS:
        return float(len(part))
    return _STEM * len(part) if shares_stem(part, word) else 0.0


def spoken(schema: JsonSchema) -> JsonSchema:
    """The schema, where a labelled value may be written as its label, if no other value has the same."""
    return cast("JsonSchema", _spoken(schema))


def replace_labels(value: Json, lists: Mapping[str, ReferenceList]) -> Json:
    """The value with labels in place of which the values stand.

    Args:
        value: What a model wrote.
        lists: Reference lists by the name of the property whose values they are.
    """
    if isinstance(value, list):
        return [replace_labels(item, lists) for item in cast("list[Json]", value)]
    if not isinstance(value, dict):
        return value
    node = cast("JsonObject", value)
    pair = list_named_in(node, lists)
    return {name: _resolve_labels(item, lists.get(name, pair), lists) for name, item in node.items()}


def list_named_in(node: JsonObject, lists: Mapping[str, ReferenceList]) -> ReferenceList | None:
    """The list of the property that an object names as a value, as filters do; null if it names none."""
    return next((lists[item] for item in node.values() if isinstance(item, str) and item in lists), None)


def _resolve_labels(value: Json, values: ReferenceList | None, lists: Mapping[str, ReferenceList]) -> Json:
    if values is not None and isinstance(value, str):
        found = resolve(values, value)
        return value if found is None else found.value
    if values is not None and isinstance(value, list):
        return [_resolve_labels(item, values, lists) for item in cast("list[Json]", value)]
    if values is not None and isinstance(value, dict):
        inner = cast("JsonObject", value)
        return {name: _resolve_labels(item, lists.get(name, values), lists) for name, item in inner.items()}
    return replace_labels(value, lists)


def _spoken(node: Json) -> Json:
    if isinstance(node, list):
        return [_spoken(item) for item in cast("list[Json]", node)]
    if not isinstance(node, dict):
        return node
    schema = {name: _spoken(item) if name != LABELS else item for name, item in cast("JsonObject", node).items()}
    if LABELS in schema:
        counts = Counter(cast("Mapping[str, str]", schema[LABELS]).values())
        own = [label for label, count in counts.items() if count == 1 and label not in schema["enum"]]
        schema["enum"] = [*schema["enum"], *own]
    return schema
