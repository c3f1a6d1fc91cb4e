"""Reads numbers and dates in text: `50,000`, `50.000`, `50k`, `2M`, `五万`, and dates computed from today's.

Numbers are read as far as Unicode and the SI define them; a model decides about words such as `fifty`. A plan names
the calculation of a date, which is checked and gives one date:

    today + 1 week            the same day of next week
    today + 1 month, end of month
    today, start of quarter
    today + 1 week, friday    the Friday of next week; weeks begin on Monday
"""

import re
import unicodedata
from calendar import monthrange
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

_DIGITS: Final = re.compile(r"(?<![A-Za-z0-9_.,])[-\u2212]?\d(?:[\d.,'\u2019\u00a0\u202f ]*\d)?")
_PREFIXES: Final = {"k": 3, "m": 6, "g": 9}
"""Of the SI, as people write them behind a number."""
_PREFIXED: Final = re.compile(r"\s?([kmg])(?![^\W\d_])", re.IGNORECASE)
_ABBREVIATED: Final = re.compile(r"\s?[^\W\d_]{2,5}\.\s*\w|[A-Za-z]")
"""A short word with a full stop behind a number, or a letter, which may be a multiple such as thousand, or a unit."""
_SEPARATORS: Final = re.compile(r"['\u2019\u00a0\u202f ]")
_TENS: Final = 10


def numbers_in(text: str) -> frozenset[Decimal]:
    """All that the numbers of a text may mean; both readings where a separator may stand for thousands or decimals."""
    return frozenset(reading for readings in number_spans(text) for reading in readings[1])


def number_spans(text: str) -> Iterator[tuple[tuple[int, int], frozenset[Decimal]]]:
    """Each number of a text: where it stands, and all that it may mean."""
    plain = "".join(_as_digit(letter) for letter in text)
    for found in _DIGITS.finditer(plain):
        scale, end = _scale(plain, found.end())
        yield (found.start(), end), frozenset(reading * scale for reading in _readings(found[0]))
    for start, end, value in _han(text):
        yield (start, end), frozenset((value,))


def may_be_more(text: str) -> bool:
    """Whether an abbreviation follows a number of a text, so that it may mean a multiple of it."""
    return any(_ABBREVIATED.match(text, end) for (_, end), _ in number_spans(text))


def as_number(value: object) -> Decimal | None:
    """The number that a value is, or null; texts are numbers only if they are nothing else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    text = str(value)
    return Decimal(text) if re.fullmatch(r"-?\d{1,20}(\.\d{1,10})?", text) else None


def _as_digit(letter: str) -> str:
    """A decimal digit of any script as one of ours."""
    return str(unicodedata.decimal(letter)) if unicodedata.category(letter) == "Nd" else letter


def _scale(text: str, end: int) -> tuple[Decimal, int]:
    """What the number before a place is multiplied by: a prefix of the SI, or a Han numeral such as 万."""
    prefix = _PREFIXED.match(text, end)
    if prefix:
        return Decimal(10) ** _PREFIXES[prefix[1].lower()], prefix.end()
    scale = Decimal(1)
    while end < len(text) and (value := _numeral(text[end])) is not None and value >= _TENS:
        scale, end = scale * value, end + 1
    return scale, end


def _readings(written: str) -> frozenset[Decimal]:
    """The number that digits with separators mean; both of them if a separator may mean thousands or decimals."""
    digits = _SEPARATORS.sub("", written).replace("\u2212", "-")
    found: set[Decimal] = set()
    for thousands, decimal in ((",", "."), (".", ",")):
        whole, _, fraction = digits.partition(decimal)
        groups = whole.split(thousands)
        grouped = all(len(group) == 3 for group in groups[1:]) and groups[0]
        if grouped and (not fraction or fraction.isdigit()):
            found.add(Decimal("".join(groups) + (f".{fraction}" if fraction else "")))
    return frozenset(found)


def _numeral(letter: str) -> Decimal | None:
    """The value of a character that is a numeral but no digit."""
    if unicodedata.category(letter) == "Nd":
        return None
    value = unicodedata.numeric(letter, None)
    return None if value is None or value != int(value) else Decimal(int(value))


def _han(text: str) -> Iterator[tuple[int, int, Decimal]]:
    """Numbers that are written in Han numerals, of two characters and more: 五万, 二十三, 一千二百."""
    place = 0
    while place < len(text):
        end = place
        while end < len(text) and _numeral(text[end]) is not None:
            end += 1
        if end - place > 1:
            yield (
                place,
                end,
                _han_value([value for letter in text[place:end] if (value := _numeral(letter)) is not None]),
            )
        place = max(end, place + 1)


def _han_value(values: list[Decimal]) -> Decimal:
    """Digits times the power of ten that follows; 万 and more close a group."""
    total = group = digit = Decimal(0)
    for value in values:
        if value < _TENS:
            digit = digit * _TENS + value
        elif value < 10_000:
            group, digit = group + (digit or Decimal(1)) * value, Decimal(0)
        else:
            total, group, digit = total + ((group + digit) or Decimal(1)) * value, Decimal(0), Decimal(0)
    return total + group + digit


CALCULATION: Final = (
    r"today( [+-] [0-9]{1,4} (day|week|month|quarter|year)s?)*"
    r"(, (start|end) of (week|month|quarter|year)|, (mon|tues|wednes|thurs|fri|satur|sun)day)?"
)
"""Pattern of a calculation."""

_ISO: Final = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:[T ][\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?")
_SHIFT: Final = re.compile(r" ([+-]) (\d{1,4}) (day|week|month|quarter|year)s?")
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}


def as_day(value: object) -> date | None:
    """The day that a text is, or begins with as moments do; null if there is none."""
    found = _ISO.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    try:
        return date(int(found[1]), int(found[2]), int(found[3]))
    except ValueError:
        return None


def is_written(day: date, words: str) -> bool:
    """Whether words hold year, month and day of a date as numbers."""
    numbers = {
        int(number) for number in numbers_in(re.sub(r"[./-]", " ; ", words)) if number == number.to_integral_value()
    }
    return {day.year, day.month, day.day} <= numbers


def calculate_day(calculation: str, today: date) -> date | None:
    """The day that a calculation gives; null if it is none, or leaves the calendar.

    Args:
        calculation: See the module.
        today: The day on which the run began.
    """
    text = " ".join(calculation.lower().split()).replace(" ,", ",")
    if re.fullmatch(CALCULATION, text) is None:
        return None
    shifts, _, place = text.removeprefix("today").partition(", ")
    try:
        day = today
        for sign, count, unit in _SHIFT.findall(shifts):
            day = _shift_day(day, int(count) * (1 if sign == "+" else -1), unit)
        return _day_in_period(day, place)
    except (ValueError, OverflowError):
        return None


def _shift_day(day: date, count: int, unit: str) -> date:
    if unit in {"day", "week"}:
        return day + timedelta(days=count * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 + count * _MONTHS[unit]
    year, month = divmod(months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _day_in_period(day: date, place: str) -> date:
    if not place:
        return day
    monday = day - timedelta(days=day.weekday())
    if place in _DAYS:
        return monday + timedelta(days=_DAYS.index(place))
    which, _, unit = place.partition(" of ")
    if unit == "week":
        return monday if which == "start" else monday + timedelta(days=6)
    length = _MONTHS[unit]
    first = date(day.year, (day.month - 1) // length * length + 1, 1)
    return first if which == "start" else _shift_day(first, length, "month") - timedelta(days=1)
