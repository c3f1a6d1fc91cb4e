"""What every contract shares: strict, immutable pydantic models and the scalar types of the wire.

This module holds no shape of its own. All JSON is snake_case; time is UTC with microseconds (RFC 3339); money is US
dollars as an exact decimal in Python and a JSON number on the wire.
"""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, PlainSerializer, WithJsonSchema

Json: TypeAlias = Any
"""A JSON value: object, array, string, number, boolean or null."""

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object."""

JsonSchema: TypeAlias = dict[str, Any]
"""A JSON Schema document, dialect 2020-12."""


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
