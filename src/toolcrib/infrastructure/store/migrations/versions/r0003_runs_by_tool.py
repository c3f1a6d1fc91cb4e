"""The runs of one tool are found without reading those of all others."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Index runs by their tool."""
    op.create_index("runs_by_tool", "runs", ["realm", "tool", "created_at", "run_id"])
