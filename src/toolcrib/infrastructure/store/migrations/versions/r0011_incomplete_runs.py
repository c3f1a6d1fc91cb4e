"""Runs can end incomplete: they are no longer among those that go on."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_OPEN = sa.text("(status NOT IN ('cancelled', 'completed', 'failed', 'incomplete', 'timed_out'))")


def upgrade() -> None:
    """Make the index of runs that go on anew."""
    op.drop_index("runs_open", "runs")
    op.create_index("runs_open", "runs", ["realm", "created_at", "run_id"], sqlite_where=_OPEN, postgresql_where=_OPEN)
