"""What a task mentions: words, names, quoted texts, numbers and dates, read from its wording alone.

Language matters little for numbers, dates and quotes; names and the meaning of common words are those of English. A
reading is generous: it is there to find what a plan says and the task does not, and the other way round.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Final, NamedTuple

from toolcrib.agents.bounds import Bound, said_bound
from toolcrib.agents.words import COMMON, MONTHS, NO_NAMES, NUMBERS, RELATIVE

_TOKEN: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_QUOTED: Final = re.compile(
    r"[\"\u201c\u00ab]([^\"\u201d\u00bb]+)[\"\u201d\u00bb]|(?<!\w)['\u2018]([^'\u2019]+)['\u2019](?!\w)"
)
_NAME: Final = re.compile(
    r"(?<!\w)[A-Z\u00c0-\u00de][\w'\u2019&.-]*"
    r"(?:\s+(?:(?:of|de|van|von|der|la|&)\s+)?[A-Z\u00c0-\u00de][\w'\u2019&-]*)*"
)
_SENTENCE_END: Final = ".!?:;\n"
_NUMBER: Final = re.compile(
    r"(?<![\w.])[$€£]?\s?(\d[\d.,]*)(?:\s?(k|m|mio|thousand|million|bn|billion)\b)?(?!\w)", re.IGNORECASE
)
_SCALES: Final = {"k": 3, "thousand": 3, "m": 6, "mio": 6, "million": 6, "bn": 9, "billion": 9}
_MONTH_PATTERN: Final = "|".join(f"{name[:3]}(?:{name[3:]})?\\.?" for name in MONTHS)
_ISO: Final = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})(?:T[\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?")
_SLASHED: Final = re.compile(r"\b(\d{1,2})[./](\d{1,2})[./](\d{4})\b")
_DAY_MONTH: Final = re.compile(
    rf"\b(?:(\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?)?({_MONTH_PATTERN})\b"
    r"(?:\s+(\d{1,2})(?:st|nd|rd|th)?\b(?!\d))?(?:,?\s+(\d{4}))?",
    re.IGNORECASE,
)
_QUARTER: Final = re.compile(r"\bQ([1-4])(?:[\s/]*(?:of\s+)?(\d{4}))?\b", re.IGNORECASE)
_YEAR: Final = re.compile(r"\b((?:19|20)\d\d)\b")


@dataclass(frozen=True, slots=True)
class Period:
    """Days that a task speaks of, in one year or in any."""

    first: date
    last: date
    any_year: bool = False

    def touches(self, day: date) -> bool:
        """Whether a day lies in it or is the one just before or after it."""
        if self.any_year:
            day = day.replace(year=self.first.year, day=min(day.day, 28) if day.month == 2 else day.day)
        return self.first - timedelta(days=1) <= day <= self.last + timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Limit:
    """A number or a period that a task gives as a bound, such as "over 50k"."""

    bound: Bound
    numbers: frozenset[Decimal] = frozenset()
    """All that the number may mean; empty for a period."""
    period: Period | None = None

    def is_at(self, text: str) -> bool:
        """Whether it is this number, or a day of this period."""
        number, day = as_number(text), as_day(text)
        if number is not None:
            return number in self.numbers
        return day is not None and self.period is not None and self.period.touches(day)


@dataclass(frozen=True, slots=True)
class Mentions:
    """What a task mentions; made by `read_mentions`."""

    words: tuple[str, ...]
    """All words, folded, in their order."""
    numbers: frozenset[Decimal]
    counted: tuple[frozenset[Decimal], ...]
    """Of these, the ones that are written in digits, each with all that it may mean: a plan is expected to use them."""
    periods: tuple[Period, ...]
    dates: tuple[tuple[str, Period], ...]
    """Of these, the ones that are written with a day or a year beside more, as they are written: a plan uses them."""
    limits: tuple[Limit, ...]
    relative: bool
    """Whether days are meant that only a calendar can tell, such as next week."""
    quoted: tuple[str, ...]
    names: tuple[str, ...]
    whole: Mapping[str, str]
    """Names with the first word of their sentence, which may belong to them, where it is no common word."""

    def has(self, text: str) -> bool:
        """Whether the task has these words in this order, upper or lower case and accents alike."""
        return within(folded(text), self.words)

    def has_day(self, day: date) -> bool:
        """Whether a day may follow from what the task says."""
        return self.relative or any(period.touches(day) for period in self.periods)


def read_mentions(task: str) -> Mentions:
    """What the task mentions."""
    words = folded(task)
    rest, dated = _periods(task)
    counts, named = tuple(_numbers(rest)), dict(_names(rest))
    counted = tuple(numbers for numbers, _ in counts)
    years = frozenset(Decimal(found) for found in _YEAR.findall(task))
    return Mentions(
        words=words,
        numbers=frozenset[Decimal]().union(*counted)
        | years
        | frozenset(Decimal(NUMBERS[word]) for word in words if word in NUMBERS),
        counted=counted,
        periods=tuple(found.period for found in dated),
        dates=tuple((found.text, found.period) for found in dated if found.exact),
        limits=(
            *(Limit(bound, numbers=numbers) for numbers, bound in counts if bound),
            *(Limit(found.bound, period=found.period) for found in dated if found.bound),
        ),
        relative=not RELATIVE.isdisjoint(words),
        quoted=tuple(first or second for first, second in _QUOTED.findall(task)),
        names=tuple(named),
        whole={name: whole for name, whole in named.items() if name != whole},
    )


def folded(text: str) -> tuple[str, ...]:
    """The words of a text without case, accents and possessive endings."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    letters = "".join(letter for letter in plain if not unicodedata.combining(letter)).replace("\u2019", "'")
    return tuple(word.removesuffix("'s").replace("'", "") for word in _TOKEN.findall(letters))


def within(part: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    """Whether words stand in others, side by side and in this order."""
    width = len(part)
    return bool(width) and any(whole[start : start + width] == part for start in range(len(whole) - width + 1))


def stem(word: str) -> str:
    """An English word without its commonest endings, good enough to compare `closing` with `close`."""
    for ending in ("ing", "ies", "ed", "es", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def as_number(text: str) -> Decimal | None:
    """The number that a text is, or null."""
    return Decimal(text) if re.fullmatch(r"-?\d{1,20}(\.\d{1,10})?", text) else None


def as_day(text: str) -> date | None:
    """The day that a text is, or begins with as moments do; null if there is none."""
    found = _ISO.fullmatch(text)
    return _day(*map(int, found.groups())) if found else None


def _names(task: str) -> Iterator[tuple[str, str]]:
    """Runs of capitalised words, without and with the first of a sentence, which says nothing about being a name."""
    for found in _NAME.finditer(task):
        name = found[0].strip(" .'\u2019-&")
        before = task[: found.start()].rstrip(" \"'(\u201c\u2018")
        if not name or not name[0].isupper():
            continue
        first, whole = "", re.sub(r"['\u2019]s$", "", name)
        if not before or before[-1] in _SENTENCE_END:
            first, _, name = name.partition(" ")
        name = re.sub(r"['\u2019]s$", "", name.strip())
        if name and name[0].isupper() and not NO_NAMES.issuperset(folded(name)):
            yield name, name if COMMON.issuperset(folded(first)) else whole


def _numbers(text: str) -> Iterator[tuple[frozenset[Decimal], Bound | None]]:
    """All that each number may mean, and what bound it is."""
    for match in _NUMBER.finditer(text):
        power = Decimal(10) ** _SCALES.get((match[2] or "").lower(), 0)
        yield frozenset(Decimal(reading) * power for reading in _readings(match[1].strip(".,"))), _bound(match)


def _bound(match: re.Match[str]) -> Bound | None:
    text = match.string
    return said_bound(folded(text[: match.start()]), folded(text[match.end() :]))


def _readings(digits: str) -> set[str]:
    """The number that digits mean; both of them if a separator may mean thousands or decimals."""
    found: set[str] = set()
    for thousands, decimal in ((",", "."), (".", ",")):
        whole, _, fraction = digits.partition(decimal)
        groups = whole.split(thousands)
        grouped = all(len(group) == 3 for group in groups[1:]) and groups[0]
        if grouped and (not fraction or fraction.isdigit()) and "".join(groups).isdigit():
            found.add("".join(groups) + (f".{fraction}" if fraction else ""))
    return found


class _Dated(NamedTuple):
    """A period where a task speaks of it."""

    text: str
    period: Period
    bound: Bound | None
    exact: bool
    """Whether it is more than the name of a month or a year alone, which may be something else."""


def _periods(task: str) -> tuple[str, list[_Dated]]:
    """The task without the days that it speaks of, and these."""
    found: list[_Dated] = []
    for pattern, read in (
        (_ISO, _from_iso),
        (_SLASHED, _from_slashed),
        (_DAY_MONTH, _from_month),
        (_QUARTER, _from_quarter),
    ):
        for match in pattern.finditer(task):
            exact = any(letter.isdigit() for letter in match[0])
            found += [_Dated(match[0], period, _bound(match), exact) for period in read(match)]
        task = pattern.sub(" ", task)
    for match in _YEAR.finditer(task):
        year = int(match[1])
        found.append(_Dated(match[0], Period(date(year, 1, 1), date(year, 12, 31)), _bound(match), exact=False))
    return task, found


def _from_iso(match: re.Match[str]) -> list[Period]:
    day = _day(int(match[1]), int(match[2]), int(match[3]))
    return [Period(day, day)] if day else []


def _from_slashed(match: re.Match[str]) -> list[Period]:
    first, second, year = int(match[1]), int(match[2]), int(match[3])
    days = {_day(year, first, second), _day(year, second, first)} - {None}
    return [Period(day, day) for day in days if day]


def _from_month(match: re.Match[str]) -> list[Period]:
    month = next(number for number, name in enumerate(MONTHS, start=1) if name.startswith(match[2].lower()[:3]))
    year = int(match[4] or 2000)
    number = match[1] or match[3]
    if number is None:
        return [Period(date(year, month, 1), _last(year, month), any_year=not match[4])]
    day = _day(year, month, int(number))
    return [Period(day, day, any_year=not match[4])] if day else []


def _from_quarter(match: re.Match[str]) -> list[Period]:
    year, last = int(match[2] or 2000), int(match[1]) * 3
    return [Period(date(year, last - 2, 1), _last(year, last), any_year=not match[2])]


def _last(year: int, month: int) -> date:
    following = date(year + month // 12, month % 12 + 1, 1)
    return following - timedelta(days=1)


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
