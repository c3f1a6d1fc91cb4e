"""Runs and approvals are filtered by columns. Those of older rows are read from their requests, results and events."""

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_AT_ONCE = 1000
_TEXT_LENGTH = 500
_MICROSECONDS = 1_000_000
_ENDED = ("cancelled", "completed", "failed", "incomplete", "timed_out")
_UNSUCCESSFUL = sa.text("status IN ('cancelled', 'failed', 'incomplete', 'timed_out')")
_RUN_TEXTS = ("kind", "text", "conversation_id", "session_id", "parent_run_id", "stop_reason", "error_code")
_APPROVAL_TEXTS = ("question", "side_effects", "text", "requested_by", "acting")


def upgrade() -> None:
    """Add the columns, fill them, and make the indexes."""
    text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    for table, names in (("runs", _RUN_TEXTS), ("approvals", _APPROVAL_TEXTS)):
        for name in names:
            op.add_column(table, sa.Column(name, text, nullable=True))
    op.add_column("runs", sa.Column("cost_usd", sa.Double(), nullable=True))
    op.add_column("runs", sa.Column("cost_unknown", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("runs", sa.Column("tokens", sa.BigInteger(), nullable=True))
    op.add_column("approvals", sa.Column("expires_at", sa.BigInteger(), nullable=True))
    _fill("runs", "run_id", ("status", "request", "result"), _of_run)
    _fill("approvals", "approval_id", ("made_by", "request"), _of_approval)
    op.create_index("runs_by_owner", "runs", ["realm", "made_by", "created_at", "run_id"])
    op.create_index(
        "runs_unsuccessful",
        "runs",
        ["realm", "created_at", "run_id"],
        sqlite_where=_UNSUCCESSFUL,
        postgresql_where=_UNSUCCESSFUL,
    )


def _fill(name: str, key: str, read: tuple[str, ...], values: Callable[[Any], dict[str, Any]]) -> None:
    connection = op.get_bind()
    table = sa.Table(name, sa.MetaData(), autoload_with=connection)
    for rows in _pages(connection, table, key, read):
        filled = [{"this_one": row[key], **values(row)} for row in rows]
        names = [column for column in filled[0] if column != "this_one"]
        update = sa.update(table).where(table.c[key] == sa.bindparam("this_one"))
        connection.execute(update.values({column: sa.bindparam(column) for column in names}), filled)


def _pages(connection: sa.Connection, table: sa.Table, key: str, read: tuple[str, ...]) -> Iterator[list[Any]]:
    columns = [table.c[name] for name in (key, *read)]
    page = sa.select(*columns).order_by(table.c[key]).limit(_AT_ONCE)
    rows = connection.execute(page).mappings().all()
    while rows:
        yield list(rows)
        rows = connection.execute(page.where(table.c[key] > rows[-1][key])).mappings().all()


def _of_run(row: Any) -> dict[str, Any]:
    request: dict[str, Any] = json.loads(row["request"])
    result: dict[str, Any] = json.loads(row["result"] or "{}")
    given, cost, unknown = request.get("input"), result.get("cost_usd"), bool(result.get("cost_unknown"))
    words = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, separators=(",", ":"))
    usage: dict[str, int] = result.get("usage") or {}
    error: dict[str, Any] = result.get("error") or {}
    tokens = result.get("tokens")
    if tokens is None:
        tokens = usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
    return {
        "kind": request["kind"],
        "text": words[:_TEXT_LENGTH].replace("\x00", ""),
        "conversation_id": request.get("conversation_id"),
        "session_id": request.get("session_id"),
        "parent_run_id": request.get("parent_run_id"),
        "stop_reason": result.get("stop_reason"),
        "error_code": error.get("code"),
        "cost_usd": None if cost is None or (unknown and not float(cost)) else float(cost),
        "cost_unknown": unknown,
        "tokens": tokens if row["status"] in _ENDED else None,
    }


def _of_approval(row: Any) -> dict[str, Any]:
    asked: dict[str, Any] = json.loads(row["request"])
    until = asked.get("expires_at")
    return {
        "question": asked.get("question", "permission"),
        "side_effects": asked.get("side_effects", "writes"),
        "text": asked.get("message", ""),
        "requested_by": asked.get("requested_by") or row["made_by"],
        "acting": asked.get("acting") or row["made_by"],
        "expires_at": None if until is None else round(datetime.fromisoformat(until).timestamp() * _MICROSECONDS),
    }
