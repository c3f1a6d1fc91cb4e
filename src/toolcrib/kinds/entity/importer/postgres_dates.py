"""Reads dates and times of PostgreSQL that Python cannot represent (infinity, years BC, 24:00) as text.

Writing them is not supported: arguments of calls must be dates that Python can represent.
"""

from collections.abc import Mapping
from typing import Any, Final

from psycopg import DataError
from psycopg.abc import Buffer
from psycopg.types.datetime import DateLoader, TimeLoader, TimestampLoader, TimestamptzLoader


class _Dates(DateLoader):
    def load(self, data: Buffer) -> Any:
        return _or_text(super().load, data)


class _Times(TimeLoader):
    def load(self, data: Buffer) -> Any:
        return _or_text(super().load, data)


class _Timestamps(TimestampLoader):
    def load(self, data: Buffer) -> Any:
        return _or_text(super().load, data)


class _TimestampsWithZone(TimestamptzLoader):
    def load(self, data: Buffer) -> Any:
        return _or_text(super().load, data)


def _or_text(load: Any, data: Buffer) -> Any:
    try:
        return load(data)
    except DataError:
        return bytes(data).decode()


LOADERS: Final[Mapping[str, type[Any]]] = {
    "date": _Dates,
    "time": _Times,
    "timestamp": _Timestamps,
    "timestamptz": _TimestampsWithZone,
}
"""By the name of the type."""
