"""Sealed values: secrets, and the tokens of connections."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "sealed",
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("realm", "scope", "name")),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
        sa.Column("made_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("realm", "scope", "name"),
    )
