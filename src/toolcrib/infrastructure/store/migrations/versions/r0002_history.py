"""Old content can become the newest revision again; changes are numbered; API keys have scopes."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Let a content stand in several revisions, number changes within a realm, and limit keys."""
    with op.batch_alter_table("definitions") as definitions:
        definitions.drop_constraint("definitions_content", type_="unique")
        definitions.add_column(sa.Column("change", sa.BigInteger(), nullable=False, server_default="0"))
        definitions.create_index("definitions_by_change", ["realm", "change"])
    with op.batch_alter_table("api_keys") as keys:
        keys.add_column(sa.Column("scopes", sa.Text(), nullable=False, server_default='["ai://*"]'))
