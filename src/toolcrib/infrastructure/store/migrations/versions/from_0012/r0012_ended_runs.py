"""Triggers find the runs of a tool that have ended since, in the order of their ends."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_ENDED = sa.text("status IN ('cancelled', 'completed', 'failed', 'incomplete', 'timed_out')")
_COLUMNS = ["realm", "tool", "updated_at", "run_id"]


def upgrade() -> None:
    """Make the index of the runs that have ended."""
    op.create_index("runs_by_end", "runs", _COLUMNS, sqlite_where=_ENDED, postgresql_where=_ENDED)
