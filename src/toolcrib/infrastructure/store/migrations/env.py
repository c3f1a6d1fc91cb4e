"""Alembic's entry point: runs the migrations in a transaction of the connection that the store passes."""

from alembic import context

from toolcrib.infrastructure.store.database.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA, render_as_batch=True)
context.run_migrations()
