"""Counters that several processes count on together: what is spent under caps."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "counters",
        *(sa.Column(name, _TEXT, nullable=False) for name in ("key", "ticket", "realm", "made_by")),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key", "ticket"),
    )
