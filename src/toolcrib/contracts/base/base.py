"""The base model of contracts (strict and immutable), the scalar types of JSON, JSON pointers and retry policies.

All JSON is snake_case. Times are UTC with microseconds (RFC 3339). Money is US dollars: an exact decimal in Python, a
number in JSON.
"""

import re
from datetime import UTC, datetime
from decimal import Decimal
from math import isfinite
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainSerializer, WithJsonSchema

Json: TypeAlias = Any
"""A JSON value: object, array, string, number, boolean or null."""

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object."""

JsonSchema: TypeAlias = dict[str, Any]
"""A JSON Schema document, dialect 2020-12."""


def release() -> str:
    """The version of this library: `0.1.0`; `source` where only its source is on the path and nothing is installed."""
    from importlib import metadata  # noqa: PLC0415 - takes long, and few ask

    try:
        return metadata.version("toolcrib")
    except metadata.PackageNotFoundError:
        return "source"


def format_timestamp(moment: datetime) -> str:
    """Write a moment as RFC 3339 in UTC with six fractional digits: `2026-01-31T12:00:00.000000Z`."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is UTC:
        return moment
    if moment.tzinfo is None:
        msg = f"timestamp {moment.isoformat()!r} has no time zone; write it in UTC, e.g. {moment.isoformat()}Z"
        raise ValueError(msg)
    return moment.astimezone(UTC)


Timestamp: TypeAlias = Annotated[
    datetime,
    AfterValidator(_in_utc),
    PlainSerializer(format_timestamp, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}, mode="serialization"),
]
"""A moment in UTC, microsecond resolution."""

Usd: TypeAlias = Annotated[Decimal, PlainSerializer(float, return_type=float, when_used="json")]
"""An amount of US dollars. Where null is allowed it means unknown, never free."""


class Contract(BaseModel):
    """Base of all contracts: unknown fields are refused, instances are immutable."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        defer_build=True,
        serialize_by_alias=True,
        validate_by_name=True,
        validate_by_alias=True,
    )


def infinite_number(value: Json) -> str | None:
    """The pointer to a number that JSON cannot write, as `1e999` or NaN is read; null if there is none.

    Example:
        >>> infinite_number({"amounts": [1.5, float("inf")]})
        '/amounts/1'
    """
    rest: list[tuple[str, Json]] = [("", value)]
    while rest:
        pointer, part = rest.pop()
        if isinstance(part, float) and not isfinite(part):
            return pointer
        if isinstance(part, dict):
            named = cast("JsonObject", part).items()
            rest += [(f"{pointer}/{escape_name(str(name))}", item) for name, item in named if _may_be_infinite(item)]
        elif isinstance(part, list | tuple):
            items = cast("list[Json]", part)
            rest += [(f"{pointer}/{place}", item) for place, item in enumerate(items) if _may_be_infinite(item)]
    return None


def _may_be_infinite(value: Json) -> bool:
    return isinstance(value, float | dict | list | tuple)


_INDEX: Final = re.compile(r"[0-9]{1,9}")


def escape_name(name: str) -> str:
    """A name as it is written in a pointer: `a/b` as `a~1b`."""
    return name.replace("~", "~0").replace("/", "~1")


def unescape_name(written: str) -> str:
    """The name that is written in a pointer: `a~1b` as `a/b`."""
    return written.replace("~1", "/").replace("~0", "~")


def pointer_names(pointer: str) -> list[str]:
    """The names in a pointer, `deals` and `0` in `/deals/0`; a `#` before it, as in a `$ref`, is passed over."""
    return [unescape_name(written) for written in pointer.removeprefix("#").split("/")[1:]]


def resolve_pointer(document: Json, pointer: str) -> Json:
    """The value at a pointer; null if there is none."""
    node = document
    for name in pointer_names(pointer):
        if isinstance(node, dict):
            node = cast("JsonObject", node).get(name)
        elif isinstance(node, list) and _INDEX.fullmatch(name):
            items = cast("list[Json]", node)
            node = items[int(name)] if int(name) < len(items) else None
        else:
            return None
    return node


Backoff: TypeAlias = Literal["none", "linear", "exponential"]


class RetryPolicy(Contract):
    """How often a failed attempt is repeated, and how long to wait in between."""

    count: int = Field(default=0, ge=0, le=10)
    """Maximum number of retries after the first attempt."""
    backoff: Backoff = "exponential"
    base_s: float = Field(default=0.5, ge=0)
    """Seconds before the first retry."""
    max_s: float = Field(default=30.0, ge=0)
    """Maximum seconds between attempts; a longer `retry-after` of the server ends the retries."""

    def wait_s(self, attempt: int) -> float:
        """Seconds to wait after a failed attempt, unless the server asks for more.

        Args:
            attempt: Its number, from 1.
        """
        factor = {"none": 0, "linear": attempt, "exponential": 2 ** (attempt - 1)}[self.backoff]
        return min(self.base_s * factor, self.max_s)
