"""Conversations with agents. Their turns are runs."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "conversations",
        *(
            sa.Column(name, sa.Text(), nullable=False)
            for name in ("conversation_id", "realm", "agent", "made_by", "title", "status", "shared_context")
        ),
        sa.Column("summary", sa.Text(), nullable=True),
        *(
            sa.Column(name, sa.BigInteger(), nullable=False)
            for name in (
                "turn_count",
                "ended_turns",
                "summarized_turns",
                "tokens",
                "revision",
                "created_at",
                "updated_at",
                "schema_version",
            )
        ),
        sa.PrimaryKeyConstraint("conversation_id"),
    )
    op.create_index("conversations_by_age", "conversations", ["realm", "made_by", "created_at", "conversation_id"])
