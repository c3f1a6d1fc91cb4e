"""Blobs can lie in the database itself; PostgreSQL compares text by its code points, as SQLite always has."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_TABLES = (
    *("definitions", "runs", "events", "signals", "approvals", "cache", "blobs", "api_keys", "sealed"),
    *("conversations", "prunings"),
)


def upgrade() -> None:
    """Make the table of bytes; on PostgreSQL, give every text the collation of its code points."""
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        for table in _TABLES:
            for column in sa.inspect(connection).get_columns(table):
                if isinstance(column["type"], sa.Text):
                    op.alter_column(table, column["name"], type_=_TEXT)
    op.create_table(
        "blob_bytes",
        sa.Column("realm", _TEXT, nullable=False),
        sa.Column("digest", _TEXT, nullable=False),
        sa.Column("made_by", _TEXT, nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("realm", "digest"),
    )
