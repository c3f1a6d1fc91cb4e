"""How a property's value looks as JSON and how it is stored.

Dates are `YYYY-MM-DD`. Moments are RFC 3339 in UTC with milliseconds, so that their text sorts as time does. Money is
stored in whole cents and shown in USD. Ids are integers in the database and strings of digits outside.
This module knows kinds of values, not properties, and it reads no database.
"""

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import TypeAlias, assert_never

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
"""Anything that JSON can say."""

Stored: TypeAlias = str | int | None
"""A value as SQLite holds it."""

_MAX_TEXT = 250
_MAX_AMOUNT = 1_000_000_000_000
_MAX_COUNT = 1_000_000_000
_ID = re.compile(r"[0-9]{1,18}")
_UNSTORABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


class Kind(StrEnum):
    """What a property holds; decides its operators and its encoding."""

    TEXT = "text"
    ID = "id"
    PIPELINE = "pipeline"
    STAGE = "stage"
    MONEY = "money"
    COUNT = "count"
    DATE = "date"
    TIMESTAMP = "timestamp"


def encode(kind: Kind, value: Json) -> str | int:
    """Turn a JSON value into its stored form.

    Raises:
        ValueError: the value is not of this kind; the text says what is wanted.
    """
    match kind:
        case Kind.TEXT | Kind.PIPELINE | Kind.STAGE:
            return _text(value)
        case Kind.ID:
            return parse_id(value)
        case Kind.MONEY:
            return _cents(value)
        case Kind.COUNT:
            return _count(value)
        case Kind.DATE:
            return _date(value)
        case Kind.TIMESTAMP:
            return _timestamp(value)
        case _:
            assert_never(kind)


def decode(kind: Kind, stored: Stored) -> Json:
    """Turn a stored value into what the API shows; an unset one stays `None`."""
    if stored is None:
        return None
    if kind is Kind.ID:
        return str(stored)
    if kind is Kind.MONEY:
        dollars = Decimal(stored) / 100
        return int(dollars) if dollars == dollars.to_integral_value() else float(dollars)
    return stored


def parse_id(value: Json) -> int:
    """The integer behind an id.

    Raises:
        ValueError: it is not a string of 1 to 18 digits.
    """
    if isinstance(value, str) and _ID.fullmatch(value):
        return int(value)
    raise ValueError("an id is a string of digits")


def format_timestamp(moment: datetime) -> str:
    """A moment as the API shows it, for example `2026-03-02T09:00:00.000Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text(value: Json) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a text that is not empty is wanted")
    if len(value) > _MAX_TEXT:
        raise ValueError(f"the text has {len(value)} characters; at most {_MAX_TEXT} are kept")
    if _UNSTORABLE.search(value):
        raise ValueError("the text holds control characters or broken Unicode")
    return value


def _cents(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MAX_AMOUNT:
        raise ValueError(f"a JSON number between 0 and {_MAX_AMOUNT} is wanted: USD, for example 12500.50")
    cents = Decimal(str(value)) * 100
    if cents != cents.to_integral_value():
        raise ValueError("an amount has at most two decimals")
    return int(cents)


def _count(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_COUNT:
        raise ValueError(f"a whole number between 0 and {_MAX_COUNT} is wanted")
    return value


def _date(value: Json) -> str:
    try:
        day = date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        day = None
    if day is None or day.isoformat() != value:
        raise ValueError("a date is written YYYY-MM-DD")
    return day.isoformat()


def _timestamp(value: Json) -> str:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or not 1900 <= moment.year <= 9998:
        raise ValueError("a moment is written as in RFC 3339 with its offset, for example 2026-03-02T09:00:00Z")
    return format_timestamp(moment)
