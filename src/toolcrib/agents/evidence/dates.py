"""Days: as they are written, and as they follow from today's by a calculation that a plan names.

    today + 1 week            the same day of next week
    today + 1 month, end of month
    today, start of quarter
    today + 1 week, friday    the Friday of next week; weeks begin on Monday

A calculation is checked, never guessed: it gives one day.
"""

import re
from calendar import monthrange
from datetime import date, timedelta
from typing import Final

from toolcrib.agents.evidence.quantities import numbers_in

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


def calculated(calculation: str, today: date) -> date | None:
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
            day = _shifted(day, int(count) * (1 if sign == "+" else -1), unit)
        return _placed(day, place)
    except (ValueError, OverflowError):
        return None


def _shifted(day: date, count: int, unit: str) -> date:
    if unit in {"day", "week"}:
        return day + timedelta(days=count * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 + count * _MONTHS[unit]
    year, month = divmod(months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _placed(day: date, place: str) -> date:
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
    return first if which == "start" else _shifted(first, length, "month") - timedelta(days=1)
