"""The schema of the SQL store at revision `HEAD`; older revisions are in `migrations/`.

Every row has its realm and its creator. Times are integers: microseconds since 1970 in UTC. JSON is text, with the
version of its schema beside it.
"""

from typing import Any, Final

import sqlalchemy as sa

from toolcrib.contracts import ENDED

HEAD: Final = "0013"
"""The newest revision. Revisions are numbered, so a greater one is of a newer release."""

METADATA: Final = sa.MetaData()
TEXT: Final = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
"""Text that is compared by its code points, whatever the language of the database."""


def _text(name: str, *, null: bool = False, key: bool = False) -> sa.Column[Any]:
    return sa.Column(name, TEXT, nullable=null, primary_key=key)


def _number(name: str, *, null: bool = False, key: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger, nullable=null, primary_key=key, autoincrement=False)


DEFINITIONS: Final = sa.Table(
    "definitions",
    METADATA,
    _text("realm", key=True),
    _text("kind", key=True),
    _text("name", key=True),
    _number("revision", key=True),
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
    sa.Column("change", sa.BigInteger, nullable=False, server_default="0"),  # 1, 2, 3… within the realm
    sa.Index("definitions_by_hash", "realm", "content_hash"),
    sa.Index("definitions_by_change", "realm", "change"),
)

RUNS: Final = sa.Table(
    "runs",
    METADATA,
    _text("run_id", key=True),
    _text("realm"),
    _text("made_by"),
    _text("tool"),
    _text("request"),
    _text("status"),
    _text("result", null=True),
    _number("epoch"),
    _number("last_event"),
    _text("owner", null=True),
    # End of the owner's lease, or of the wait; null waits for a signal or has ended.
    _number("claimable_at", null=True),
    _text("waiting_for"),
    _number("wake_at", null=True),
    _number("created_at"),
    _number("updated_at"),
    _number("schema_version"),
    # What runs are filtered by, from their requests and results.
    _text("kind", null=True),
    _text("text", null=True),
    _text("conversation_id", null=True),
    _text("session_id", null=True),
    _text("parent_run_id", null=True),
    _text("stop_reason", null=True),
    _text("error_code", null=True),
    sa.Column("cost_usd", sa.Double, nullable=True),
    sa.Column("cost_unknown", sa.Boolean, nullable=False, server_default=sa.false()),
    _number("tokens", null=True),
    sa.Index("runs_by_age", "realm", "created_at", "run_id"),
    sa.Index("runs_by_tool", "realm", "tool", "created_at", "run_id"),
    sa.Index("runs_by_maker", "realm", "tool", "made_by", "created_at", "run_id"),
    sa.Index("runs_by_owner", "realm", "made_by", "created_at", "run_id"),
)
sa.Index("runs_claimable", RUNS.c.claimable_at, sqlite_where=RUNS.c.claimable_at.is_not(None))

_OPEN: Final = RUNS.c.status.not_in([sa.literal_column(f"'{status}'") for status in sorted(ENDED)])
sa.Index("runs_open", RUNS.c.realm, RUNS.c.created_at, RUNS.c.run_id, sqlite_where=_OPEN)

HAVE_ENDED: Final = RUNS.c.status.in_([sa.literal_column(f"'{status}'") for status in sorted(ENDED)])
"""As the index of the runs that have ended has it, so that a query finds it."""
sa.Index("runs_by_end", RUNS.c.realm, RUNS.c.tool, RUNS.c.updated_at, RUNS.c.run_id, sqlite_where=HAVE_ENDED)

SUCCEEDED: Final = "completed"
UNSUCCESSFUL: Final = RUNS.c.status.in_([sa.literal_column(f"'{status}'") for status in sorted(ENDED - {SUCCEEDED})])
"""As the index of the runs that have ended otherwise has it: few, and those that people look for."""
sa.Index("runs_unsuccessful", RUNS.c.realm, RUNS.c.created_at, RUNS.c.run_id, sqlite_where=UNSUCCESSFUL)

EVENTS: Final = sa.Table(
    "events",
    METADATA,
    sa.Column("run_id", TEXT, sa.ForeignKey("runs.run_id"), primary_key=True),
    _number("number", key=True),
    _text("realm"),
    _text("made_by"),
    _number("at"),
    _text("type"),
    _text("body"),
    _number("schema_version"),
)

SIGNALS: Final = sa.Table(
    "signals",
    METADATA,
    sa.Column("run_id", TEXT, sa.ForeignKey("runs.run_id"), primary_key=True),
    _text("name", key=True),
    _text("realm"),
    _text("made_by"),
    _number("at"),
    _text("payload"),
    _number("schema_version"),
)

APPROVALS: Final = sa.Table(
    "approvals",
    METADATA,
    _text("approval_id", key=True),
    _text("realm"),
    _text("made_by"),
    sa.Column("run_id", TEXT, sa.ForeignKey("runs.run_id"), nullable=False),
    _text("signal"),
    _text("root_run_id"),
    _text("tool"),
    _text("request"),  # the event that asked
    _number("requested_at"),
    _text("status"),
    _text("decided_by", null=True),
    _number("decided_at", null=True),
    _text("reason", null=True),
    _text("edited_input", null=True),
    _number("schema_version"),
    # What approvals are filtered by, from the event that asked.
    *(_text(name, null=True) for name in ("question", "side_effects", "text", "requested_by", "acting")),
    _number("expires_at", null=True),
    sa.Index("approvals_by_age", "realm", "requested_at", "approval_id"),
    sa.Index("approvals_by_run", "run_id", "signal"),
    sa.Index("approvals_by_root", "root_run_id"),
)
sa.Index(
    "approvals_waiting",
    APPROVALS.c.realm,
    APPROVALS.c.requested_at,
    APPROVALS.c.approval_id,
    sqlite_where=APPROVALS.c.status == sa.literal_column("'waiting'"),
)

CACHE: Final = sa.Table(
    "cache",
    METADATA,
    _text("key", key=True),
    _text("realm"),
    _text("made_by"),
    _text("value"),
    _number("expires_at", null=True),
    _number("schema_version"),
)

BLOBS: Final = sa.Table(
    "blobs",
    METADATA,
    _text("realm", key=True),
    _text("digest", key=True),
    _text("made_by"),
    _text("content_type"),
    _number("size"),
    sa.Column("touched_at", sa.BigInteger, nullable=False, server_default="0"),  # when it was last put
    sa.Index("blobs_by_age", "touched_at", "realm", "digest"),
)

BLOB_BYTES: Final = sa.Table(  # of those blobs that lie in the database itself
    "blob_bytes",
    METADATA,
    _text("realm", key=True),
    _text("digest", key=True),
    _text("made_by"),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

API_KEYS: Final = sa.Table(
    "api_keys",
    METADATA,
    _text("key_id", key=True),
    _text("realm"),
    _text("principal"),
    _text("secret_hash"),
    _text("last_four"),
    _text("made_by"),
    _number("created_at"),
    _number("expires_at", null=True),
    sa.Column("scopes", TEXT, nullable=False, server_default='["ai://*"]'),  # older keys may do everything
)

SEALED: Final = sa.Table(
    "sealed",
    METADATA,
    _text("realm", key=True),
    _text("scope", key=True),
    _text("name", key=True),
    _number("version"),
    _text("sealed"),
    _text("made_by"),
    _number("created_at"),
)

CONVERSATIONS: Final = sa.Table(
    "conversations",
    METADATA,
    _text("conversation_id", key=True),
    _text("realm"),
    _text("agent"),
    _text("made_by"),
    _text("title"),
    _text("status"),
    _text("shared_context"),
    _text("summary", null=True),
    _number("turn_count"),
    _number("ended_turns"),
    _number("summarized_turns"),
    _number("tokens"),
    _number("revision"),
    _number("created_at"),
    _number("updated_at"),
    _number("schema_version"),
    sa.Index("conversations_by_age", "realm", "made_by", "created_at", "conversation_id"),
)

PRUNINGS: Final = sa.Table(
    "prunings",
    METADATA,
    _text("realm", key=True),
    _number("pruned_at", key=True),
    _text("made_by"),
    _number("ended_before"),
    _text("counts"),
    _number("schema_version"),
)
"""What was taken out of the store, when and by whom."""

COUNTERS: Final = sa.Table(
    "counters",
    METADATA,
    _text("key", key=True),
    _text("ticket", key=True),
    _text("realm"),
    _text("made_by"),
    _number("amount"),
    _number("expires_at"),
)

STAMP: Final = sa.Table("alembic_version", METADATA, sa.Column("version_num", sa.String(32), primary_key=True))
"""Where Alembic keeps the revision of a database."""
