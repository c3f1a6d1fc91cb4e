"""What an operation is given and what it answers, with no HTTP framework in sight."""

from dataclasses import dataclass

from examples.crm.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One admitted request."""

    method: str
    path: str
    """Percent-encoded, without the query."""
    object_id: str
    """The id in the path; empty for routes without one."""
    body: Json
    """The parsed body; None for methods that have none."""
    if_match: str | None
    idempotency_key: str | None
    now: str
    """The moment of the request, as `format_timestamp` writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The answer to a call that succeeded."""

    status: int = 200
    body: Json = None
    """None for a reply without content."""
    revision: int | None = None
    """The revision of the single object in the body, shown as its ETag."""
    replayed: bool = False
    """Whether this is the stored reply to an earlier request with the same idempotency key."""
