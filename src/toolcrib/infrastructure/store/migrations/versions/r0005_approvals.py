"""Approvals: the inbox of calls that wait for a person. Those of runs that wait already are read from their events."""

import hashlib
import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_TEXTS = ("approval_id", "realm", "made_by", "run_id", "signal", "root_run_id", "tool", "request")

_OPEN = """
    SELECT asked.run_id, asked.realm, asked.made_by, asked.at, asked.body
    FROM events AS asked JOIN runs ON runs.run_id = asked.run_id
    WHERE asked.type = 'approval_requested' AND runs.status NOT IN ('completed', 'failed', 'timed_out', 'cancelled')
    ORDER BY asked.run_id, asked.number
"""
_CLOSING = "SELECT body FROM events WHERE run_id = :run_id AND type IN ('approval_decided', 'call_finished')"
_SIGNALLED = "SELECT 1 FROM signals WHERE run_id = :run_id AND name = :signal"


def upgrade() -> None:
    """Make the table, and a row for each call that waits."""
    table = op.create_table(
        "approvals",
        *(sa.Column(name, sa.Text(), nullable=False) for name in _TEXTS),
        sa.Column("requested_at", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("decided_by", sa.Text(), nullable=True),
        sa.Column("decided_at", sa.BigInteger(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("edited_input", sa.Text(), nullable=True),
        sa.Column("schema_version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("approval_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"]),
    )
    op.create_index("approvals_by_age", "approvals", ["realm", "requested_at", "approval_id"])
    op.create_index("approvals_by_run", "approvals", ["run_id", "signal"])
    op.create_index("approvals_by_root", "approvals", ["root_run_id"])
    waiting = sa.text("status = 'waiting'")
    op.create_index(
        "approvals_waiting",
        "approvals",
        ["realm", "requested_at", "approval_id"],
        sqlite_where=waiting,
        postgresql_where=waiting,
    )
    connection = op.get_bind()
    records = connection.execute(sa.text(_OPEN)).mappings().all()
    rows = [_row(found) for found in records if not _is_closed(connection, found)]
    if rows:
        op.bulk_insert(table, rows)


def _signal(record: sa.RowMapping) -> str:
    return f"approval:{json.loads(record['body'])['position']}"


def _is_closed(connection: sa.Connection, record: sa.RowMapping) -> bool:
    """Whether somebody has decided already, or nobody needs to any more."""
    key = {"run_id": record["run_id"], "signal": _signal(record)}
    position = json.loads(record["body"])["position"]
    closing = connection.execute(sa.text(_CLOSING), key).scalars()
    if any(json.loads(body)["position"] == position for body in closing):
        return True
    return connection.execute(sa.text(_SIGNALLED), key).first() is not None


def _row(record: sa.RowMapping) -> dict[str, Any]:
    run_id, signal = record["run_id"], _signal(record)
    return {
        "approval_id": f"apr_{hashlib.sha256(f'{run_id}/{signal}'.encode()).hexdigest()[:32]}",
        "realm": record["realm"],
        "made_by": record["made_by"],
        "run_id": run_id,
        "signal": signal,
        "root_run_id": run_id,
        "tool": json.loads(record["body"])["name"],
        "request": record["body"],
        "requested_at": record["at"],
        "status": "waiting",
        "schema_version": 1,
        **dict.fromkeys(("decided_by", "decided_at", "reason", "edited_input")),
    }
