"""Converts rows of the SQL store to contracts and back. Only this module distinguishes versions of stored JSON."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, overload

import sqlalchemy as sa
from pydantic_core import PydanticSerializationError, from_json, to_json

from toolcrib.contracts import (
    SCHEMA_VERSION,
    Event,
    InvalidInput,
    Json,
    Run,
    RunEvent,
    RunRequest,
    RunResult,
    RunStarted,
    Signal,
    read_event,
)
from toolcrib.contracts.base.base import read_json
from toolcrib.infrastructure.store.database.session import Row
from toolcrib.infrastructure.store.ports.queried_fields import input_text, known_cost
from toolcrib.infrastructure.store.ports.state_changes import first_entry
from toolcrib.infrastructure.store.ports.store import Lease

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_LAST_CODE_POINT: Final = chr(0x10FFFF)


@overload
def to_micros(moment: datetime) -> int: ...
@overload
def to_micros(moment: datetime | None) -> int | None: ...
def to_micros(moment: datetime | None) -> int | None:
    """Microseconds since 1970; null stays null."""
    return None if moment is None else (moment - _EPOCH) // _MICROSECOND


def to_moment(micros: int) -> datetime:
    """The moment in UTC."""
    return _EPOCH + micros * _MICROSECOND


def to_moment_or_none(micros: int | None) -> datetime | None:
    """The moment in UTC; null stays null."""
    return None if micros is None else to_moment(micros)


def encode(value: Json, what: str) -> str:
    """JSON text.

    Raises:
        InvalidInput: The value is not JSON.
    """
    try:
        return to_json(value).decode()
    except PydanticSerializationError as error:
        msg = f"{what} cannot be written as JSON: {error}"
        raise InvalidInput(msg) from error


def first_row(run: Run, event: Event, request: str) -> dict[str, Any]:
    """The row of event number 1 of a new run.

    Args:
        run: The run.
        event: The event.
        request: The run's request as JSON, which the event usually holds, too.

    Raises:
        InvalidInput: The event holds something that is not JSON.
    """
    is_start = isinstance(event, RunStarted) and event.request is run.request
    body = f'{{"type":"run_started","request":{request}}}' if is_start else None
    return event_rows([first_entry(run, event)], body)[0]


def event_rows(events: Sequence[RunEvent], body: str | None = None) -> list[dict[str, Any]]:
    """Rows of the table `events`; their body is the inner event.

    Args:
        events: The events.
        body: That of each as JSON, if it is known.

    Raises:
        InvalidInput: An event holds something that is not JSON.
    """
    try:
        return [
            {
                "run_id": event.run_id,
                "number": event.number,
                "realm": event.realm,
                "made_by": event.made_by,
                "at": to_micros(event.at),
                "type": event.event.type,
                "body": body or event.event.text.decode(),
                "schema_version": SCHEMA_VERSION,
            }
            for event in events
        ]
    except PydanticSerializationError as error:
        msg = f"run {events[0].run_id}: an event from number {events[0].number} on cannot be written as JSON: {error}"
        raise InvalidInput(msg) from error


def entry_of(row: Row) -> RunEvent:
    """The event of a row."""
    event = read_event(row["body"].encode())
    return RunEvent(row["run_id"], row["number"], to_moment(row["at"]), row["realm"], row["made_by"], event)


def run_row(run: Run, lease: Lease | None) -> dict[str, Any]:
    """The row of a new run with one event."""
    return {
        "run_id": run.run_id,
        "realm": run.realm,
        "made_by": run.made_by,
        "tool": run.request.tool_name,
        "request": run.request.model_dump_json(),
        "status": run.status,
        "result": None,
        "epoch": run.epoch,
        "last_event": 1,
        "owner": lease.owner if lease else None,
        "claimable_at": to_micros(lease.until) if lease else 0,
        "waiting_for": "[]",
        "wake_at": None,
        "created_at": to_micros(run.created_at),
        "updated_at": to_micros(run.created_at),
        "schema_version": SCHEMA_VERSION,
        "kind": run.request.kind,
        "text": input_text(run.request),
        "conversation_id": run.request.conversation_id,
        "session_id": run.request.session_id,
        "parent_run_id": run.request.parent_run_id,
        **NO_OUTCOME,
    }


NO_OUTCOME: Final[Mapping[str, Any]] = {
    "stop_reason": None,
    "error_code": None,
    "cost_usd": None,
    "cost_unknown": False,
    "tokens": None,
}
"""What runs are filtered by, of a run that has not ended."""


def outcome_columns(result: RunResult) -> dict[str, Any]:
    """What runs are filtered by, of a run that has ended."""
    return {
        "stop_reason": result.stop_reason,
        "error_code": None if result.error is None else result.error.code,
        "cost_usd": known_cost(result),
        "cost_unknown": result.cost_unknown,
        "tokens": result.all_tokens,
    }


def ids_with_prefix(column: sa.Column[str], realm: str, prefix: str, limit: int) -> sa.Select[str]:
    """Select the first ids that begin with a prefix, as a range of the index, whose order is that of code points."""
    within = (column >= prefix, column < prefix + _LAST_CODE_POINT, column.table.c.realm == realm)
    return sa.select(column).where(*within).order_by(column).limit(limit)


_SHARED: Final = set(RunResult.__struct_fields__) & set(Run.__struct_fields__)


def run_of(row: Row) -> Run:
    """The run of a row."""
    values: dict[str, Any] = {}
    if row["result"] is not None:
        result = read_json(RunResult, row["result"])
        values = {name: getattr(result, name) for name in _SHARED}
    values |= {
        "run_id": row["run_id"],
        "realm": row["realm"],
        "made_by": row["made_by"],
        "status": row["status"],
        "request": read_json(RunRequest, row["request"]),
        "epoch": row["epoch"],
        "events": row["last_event"],
        "created_at": to_moment(row["created_at"]),
        "updated_at": to_moment(row["updated_at"]),
        "wake_at": to_moment_or_none(row["wake_at"]),
    }
    return Run(**values)


def signal_of(row: Row) -> Signal:
    """The signal of a row."""
    return Signal(name=row["name"], payload=from_json(row["payload"]), made_by=row["made_by"], at=to_moment(row["at"]))
