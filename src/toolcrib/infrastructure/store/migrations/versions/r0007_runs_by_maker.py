"""What somebody's last run of a tool was is found without reading everybody else's."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Index the runs of a tool by whose they are."""
    op.create_index("runs_by_maker", "runs", ["realm", "tool", "made_by", "created_at", "run_id"])
