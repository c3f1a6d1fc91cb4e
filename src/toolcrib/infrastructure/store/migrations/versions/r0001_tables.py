"""Definitions, runs with events and signals, cache, blobs, API keys."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make all tables."""
    _definitions()
    _runs()
    _logs()
    _others()


def _text(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=null)


def _number(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger(), nullable=null)


def _definitions() -> None:
    op.create_table(
        "definitions",
        _text("realm"),
        _text("kind"),
        _text("name"),
        _number("revision"),
        _text("version"),
        _text("content_hash"),
        _text("body"),
        _text("made_by"),
        _number("created_at"),
        _text("status"),
        _text("status_message", null=True),
        _number("sunset", null=True),
        _text("replacement", null=True),
        _number("removed"),
        _number("schema_version"),
        sa.PrimaryKeyConstraint("realm", "kind", "name", "revision"),
        sa.UniqueConstraint("realm", "kind", "name", "version", "content_hash", name="definitions_content"),
    )
    op.create_index("definitions_by_hash", "definitions", ["realm", "content_hash"])


def _runs() -> None:
    op.create_table(
        "runs",
        _text("run_id"),
        _text("realm"),
        _text("made_by"),
        _text("tool"),
        _text("request"),
        _text("status"),
        _text("result", null=True),
        _number("epoch"),
        _number("last_event"),
        _text("owner", null=True),
        _number("claimable_at", null=True),
        _text("waiting_for"),
        _number("wake_at", null=True),
        _number("created_at"),
        _number("updated_at"),
        _number("schema_version"),
        sa.PrimaryKeyConstraint("run_id"),
    )
    op.create_index("runs_by_age", "runs", ["realm", "created_at", "run_id"])
    claimable = sa.text("claimable_at IS NOT NULL")
    op.create_index("runs_claimable", "runs", ["claimable_at"], sqlite_where=claimable, postgresql_where=claimable)


def _logs() -> None:
    op.create_table(
        "events",
        _text("run_id"),
        _number("number"),
        _text("realm"),
        _text("made_by"),
        _number("at"),
        _text("type"),
        _text("body"),
        _number("schema_version"),
        sa.PrimaryKeyConstraint("run_id", "number"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"]),
    )
    op.create_table(
        "signals",
        _text("run_id"),
        _text("name"),
        _text("realm"),
        _text("made_by"),
        _number("at"),
        _text("payload"),
        _number("schema_version"),
        sa.PrimaryKeyConstraint("run_id", "name"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"]),
    )


def _others() -> None:
    op.create_table(
        "cache",
        _text("key"),
        _text("realm"),
        _text("made_by"),
        _text("value"),
        _number("expires_at", null=True),
        _number("schema_version"),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_table(
        "blobs",
        _text("realm"),
        _text("digest"),
        _text("made_by"),
        _text("content_type"),
        _number("size"),
        sa.PrimaryKeyConstraint("realm", "digest"),
    )
    op.create_table(
        "api_keys",
        _text("key_id"),
        _text("realm"),
        _text("principal"),
        _text("secret_hash"),
        _text("last_four"),
        _text("made_by"),
        _number("created_at"),
        _number("expires_at", null=True),
        sa.PrimaryKeyConstraint("key_id"),
    )
