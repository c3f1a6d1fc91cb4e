"""The SQL store, with blobs in the database, in files or in a bucket.

Several processes can share it; within a process, it belongs to one event loop. Importing this module loads SQLAlchemy.
"""

from toolcrib.infrastructure.store.blobs.files import Objects
from toolcrib.infrastructure.store.database.database import Database
from toolcrib.infrastructure.store.database.dialect import Dialect
from toolcrib.infrastructure.store.database.schema import SchemaState
from toolcrib.infrastructure.store.ports.store import Blobs
from toolcrib.infrastructure.store.sql.approvals import SqlApprovals
from toolcrib.infrastructure.store.sql.blobs import ObjectBlobs, SqlBlobs
from toolcrib.infrastructure.store.sql.cache_and_counters import SqlCache, SqlCounters
from toolcrib.infrastructure.store.sql.conversations import SqlConversations
from toolcrib.infrastructure.store.sql.credentials import SqlApiKeys, SqlSealedValues
from toolcrib.infrastructure.store.sql.definitions import SqlDefinitions
from toolcrib.infrastructure.store.sql.journal import SqlJournal
from toolcrib.infrastructure.store.sql.pruning import SqlRetention
from toolcrib.infrastructure.store.sql.tool_transactions import SqlTransactions


class SqlStore:
    """All ports of `Store`, in SQL.

    Args:
        dialect: Which database it is: `Sqlite` or `Postgres`.
        blobs: Has the bytes of the blobs; null for the database itself.
    """

    def __init__(self, dialect: Dialect, *, blobs: Objects | None) -> None:
        self._database = Database(dialect)
        self._definitions = SqlDefinitions(self._database)
        self._journal = SqlJournal(self._database)
        self._approvals = SqlApprovals(self._database)
        self._cache = SqlCache(self._database)
        self._blobs = SqlBlobs(self._database) if blobs is None else ObjectBlobs(blobs, self._database)
        self._api_keys = SqlApiKeys(self._database)
        self._sealed = SqlSealedValues(self._database)
        self._conversations = SqlConversations(self._database)
        self._counters = SqlCounters(self._database)
        self._retention = SqlRetention(self._database)
        self._transactions = SqlTransactions(self._database)

    @property
    def definitions(self) -> SqlDefinitions:
        """Definitions."""
        return self._definitions

    @property
    def transactions(self) -> SqlTransactions:
        """Work of tools that commits with its record."""
        return self._transactions

    @property
    def journal(self) -> SqlJournal:
        """Runs and their logs."""
        return self._journal

    @property
    def approvals(self) -> SqlApprovals:
        """The inbox."""
        return self._approvals

    @property
    def cache(self) -> SqlCache:
        """Cached results."""
        return self._cache

    @property
    def blobs(self) -> Blobs:
        """Blobs."""
        return self._blobs

    @property
    def api_keys(self) -> SqlApiKeys:
        """API keys."""
        return self._api_keys

    @property
    def sealed(self) -> SqlSealedValues:
        """Sealed values."""
        return self._sealed

    @property
    def conversations(self) -> SqlConversations:
        """Conversations."""
        return self._conversations

    @property
    def retention(self) -> SqlRetention:
        """Takes out what is old."""
        return self._retention

    @property
    def counters(self) -> SqlCounters:
        """Counters."""
        return self._counters

    @property
    def name(self) -> str:
        """The database as messages call it, without a password: the path of a SQLite file, as it was given."""
        return self._database.name

    async def schema(self) -> SchemaState:
        """Which schema the database has, before it is opened; nothing is changed.

        Raises:
            Unavailable: There is no database, or it cannot be read.
        """
        return await self._database.schema()

    async def open(self) -> None:
        """Connect, and bring the schema up to date; safe to call twice.

        Raises:
            Unavailable: The database cannot be opened or written, or was written by a newer release.
        """
        await self._database.open()

    async def close(self) -> None:
        """Write what is pending and let go of all connections."""
        await self._database.close()
