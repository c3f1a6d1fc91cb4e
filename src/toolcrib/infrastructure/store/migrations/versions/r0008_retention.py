"""What is not needed any more can be found: runs that go on, blobs by age, and what was pruned before."""

import time

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_OPEN = sa.text("(status NOT IN ('cancelled', 'completed', 'failed', 'timed_out'))")


def upgrade() -> None:
    """Add the index of runs that go on, the age of blobs, and the table of prunings."""
    op.create_index("runs_open", "runs", ["realm", "created_at", "run_id"], sqlite_where=_OPEN, postgresql_where=_OPEN)
    op.add_column("blobs", sa.Column("touched_at", sa.BigInteger, nullable=False, server_default="0"))
    blobs = sa.table("blobs", sa.column("touched_at", sa.BigInteger))
    op.execute(sa.update(blobs).values(touched_at=time.time_ns() // 1000))  # nobody knows: as if it were put now
    op.create_index("blobs_by_age", "blobs", ["touched_at", "realm", "digest"])
    op.create_table(
        "prunings",
        sa.Column("realm", sa.Text, nullable=False),
        sa.Column("pruned_at", sa.BigInteger, nullable=False),
        sa.Column("made_by", sa.Text, nullable=False),
        sa.Column("ended_before", sa.BigInteger, nullable=False),
        sa.Column("counts", sa.Text, nullable=False),
        sa.Column("schema_version", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("realm", "pruned_at"),
    )
