"""Creates or migrates a database to this release's schema, under a lock, so that processes can start in parallel.

A new database is created from the tables and stamped. Alembic is imported only for a database of an older release.
"""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import sqlalchemy as sa

from toolcrib.contracts.base.errors import StoreUnavailable
from toolcrib.infrastructure.store.database.session import Session
from toolcrib.infrastructure.store.database.tables import HEAD, METADATA, STAMP

MIGRATIONS: Final = Path(__file__).parents[1] / "migrations"

_ALEMBIC: Final = threading.Lock()
"""Alembic keeps its context in a global."""


class SchemaState(NamedTuple):
    """Which schema a database has, and what opening it would do."""

    store: str
    """The database as messages call it."""
    revision: str | None
    """Null if it has no tables of ours yet."""
    newest: str
    """The newest revision that this release knows."""
    pending: tuple[tuple[str, str], ...]
    """Revision and purpose of each migration that would be made, in order."""


def state_of(session: Session, store: str) -> SchemaState:
    """What there is; nothing is changed."""
    revision = _revision(session.connection)
    session.rollback()
    pending = () if revision is None else tuple(_migrations(after=revision))
    return SchemaState(store, revision, HEAD, pending)


def _migrations(*, after: str) -> Iterator[tuple[str, str]]:
    from alembic.script import ScriptDirectory  # noqa: PLC0415 - heavy, and needed once per release

    for script in reversed(list(ScriptDirectory(str(MIGRATIONS), recursive_version_locations=True).walk_revisions())):
        if script.revision > after:
            yield script.revision, script.doc.partition("\n")[0]


def bring_up_to_date(session: Session, store: str) -> None:
    """Create or migrate the tables; a database that is up to date is only asked for its revision.

    Args:
        session: Its connection does it.
        store: The database as messages call it.

    Raises:
        StoreUnavailable: The database is of a newer release, or holds tables of somebody else under our names.
    """
    if _revision(session.connection) == HEAD:
        session.connection.rollback()
        return
    session.begin()
    try:
        session.lock("toolcrib schema")
        _upgrade(session.connection, store)
    except BaseException:
        session.rollback()
        raise
    session.commit()


def _upgrade(connection: sa.Connection, store: str) -> None:
    revision = _revision(connection)
    if revision is None:
        _create(connection, store)
    elif revision > HEAD:
        msg = (
            f"the store {store} has schema revision {revision}, and this release of Toolcrib "
            f"knows revisions up to {HEAD}: a newer release wrote it; install that release, or open another store"
        )
        raise StoreUnavailable(msg)
    elif revision < HEAD:
        migrate(connection)


def _revision(connection: sa.Connection) -> str | None:
    """The database's revision: null if it has no stamp, empty if Alembic took all revisions back."""
    if not sa.inspect(connection).has_table(STAMP.name):
        return None
    return connection.execute(sa.select(STAMP.c.version_num)).scalar() or ""


def _create(connection: sa.Connection, store: str) -> None:
    foreign = METADATA.tables.keys() & set(sa.inspect(connection).get_table_names())
    if foreign:
        msg = (
            f"the store {store} has a table {min(foreign)!r} but no schema revision: "
            "Toolcrib did not make it; open another store"
        )
        raise StoreUnavailable(msg)
    METADATA.create_all(connection, checkfirst=False)
    connection.execute(sa.insert(STAMP).values(version_num=HEAD))


def migrate(connection: sa.Connection, revision: str = HEAD) -> None:
    """Run the migrations up to a revision in the connection's transaction, which the caller commits."""
    from alembic import command  # noqa: PLC0415 - heavy, and needed once per release
    from alembic.config import Config  # noqa: PLC0415 - as above

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("recursive_version_locations", "true")
    config.set_main_option("path_separator", "os")
    if not connection.in_transaction():
        connection.begin()  # Alembic commits each revision by itself unless it is told of a transaction
    with _ALEMBIC:
        command.upgrade(config, revision)
