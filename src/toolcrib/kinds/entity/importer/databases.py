"""The databases of a process: those that the application bound, and those that a reference names.

The operator's URLs (`${env:NAME}`) are trusted. A URL from the vault (`${secret:NAME}`) is subject to the egress
policy: it must name a server, and the connection uses the address that was checked. Neither may be the store of a
crib. Importing this module loads no SQLAlchemy.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from toolcrib.contracts import DatabaseConnection, EgressDenied, InvalidDefinition, NotFound, ProviderDefinition

if TYPE_CHECKING:
    import sqlalchemy as sa

    from toolcrib.infrastructure.net.routes import Route
    from toolcrib.kinds.entity.importer.engines import EntityDatabase, Place, Table

Secret: TypeAlias = Callable[[str], Awaitable[str | None]]
"""The value of a reference; null if there is none."""
Judge: TypeAlias = "Callable[[str], Awaitable[Route]]"
"""Judges an https URL, and names the addresses behind it; raises `EgressDenied` and `NetworkError`."""

_OPERATORS: Final = "${env:"
_PORT: Final = 5432


class Databases:
    """Opens databases when they are first used.

    Args:
        route: Judges addresses that are not the operator's.
    """

    def __init__(self, route: Judge) -> None:
        self._route = route
        self._bound: dict[tuple[str, str], EntityDatabase] = {}
        self._opened: dict[tuple[str, str], tuple[str, EntityDatabase]] = {}
        """By realm and reference, with the URL, because the value of the reference may change."""
        self._opening = asyncio.Lock()

    async def bind(self, realm: str, name: str, engine: "sa.Engine", tables: "Mapping[Place, Table]") -> None:
        """Use the application's engine and tables for a provider.

        Raises:
            InvalidSettings: The engine cannot be shared between threads.
        """
        from toolcrib.kinds.entity.importer.engines import EntityDatabase  # noqa: PLC0415 - loads SQLAlchemy

        earlier = self._bound.get((realm, name))
        if earlier is not None and earlier.engine is engine:
            earlier.add(tables)
            return
        self._bound[realm, name] = EntityDatabase(engine, tables)
        if earlier is not None:
            await earlier.close()

    async def open(self, realm: str, provider: ProviderDefinition, secret: Secret) -> "EntityDatabase":
        """The database of a provider.

        Raises:
            InvalidDefinition: The provider is not a database.
            NotFound: No engine is bound, or the reference has no value.
            InvalidSettings: Its value is not the URL of a database.
            EgressDenied: It may not be reached.
            NetworkError: The host has no address.
            Unavailable: The driver is not installed.
            sqlalchemy.exc.SQLAlchemyError: It cannot be reached.
        """
        bound = self._bound.get((realm, provider.name))
        if bound is not None:
            return bound
        connection = provider.connection
        if not isinstance(connection, DatabaseConnection):
            msg = f"provider {provider.name!r} is reached as {connection.kind!r} and is not a database"
            raise InvalidDefinition(msg)
        if connection.url is None:
            msg = f"no engine is bound for provider {provider.name!r}; call crib.add_entities({provider.name!r}, …)"
            raise NotFound(msg)
        url = await secret(connection.url)
        if url is None:
            msg = (
                f"its database is at {connection.url}, which is not set or not released; "
                "set it, release variables by TOOLCRIB_RELEASED_ENV, call again"
            )
            raise NotFound(msg)
        async with self._opening:
            return await self._open((realm, connection.url), url)

    async def close(self) -> None:
        """Close all databases."""
        for database in (*self._bound.values(), *(database for _, database in self._opened.values())):
            await database.close()
        self._bound.clear()
        self._opened.clear()

    async def _open(self, key: tuple[str, str], url: str) -> "EntityDatabase":
        known = self._opened.get(key)
        if known is not None and known[0] == url:
            return known[1]
        from toolcrib.kinds.entity.importer.engines import CONNECT_S, EntityDatabase, open_engine  # noqa: PLC0415 - as in bind

        address = None if key[1].startswith(_OPERATORS) else await self._judge(url)
        database = EntityDatabase(open_engine(url, address=address))
        try:
            await database.run(_refuse_store, limit_s=CONNECT_S * 2)
        except BaseException:
            await database.close()
            raise
        if known is not None:
            await known[1].close()
        self._opened[key] = (url, database)
        return database

    async def _judge(self, text: str) -> str:
        """The one address at which a database may be reached whose URL is not the operator's."""
        from toolcrib.kinds.entity.importer.engines import read_url  # noqa: PLC0415 - as in bind

        url = read_url(text)
        if url.get_backend_name() != "postgresql" or not url.host or set(url.query) - {"sslmode"}:
            msg = (
                "a database whose URL is kept as a secret must be postgresql://user:password@host:port/name, with no "
                "option but sslmode; for another one the operator sets a variable, referred to as ${env:NAME}"
            )
            raise EgressDenied(msg)
        host = f"[{url.host}]" if ":" in url.host else url.host
        route = await self._route(f"https://{host}:{url.port or _PORT}/")
        return route.addresses[0]


def _refuse_store(connection: "sa.Connection") -> None:
    """Refuse the store of a crib: its keys and journals must not be accessible as rows.

    Raises:
        EgressDenied: It is one.
    """
    import sqlalchemy as sa  # noqa: PLC0415 - heavy

    inspector: Any = sa.inspect(connection)
    if {"alembic_version", "api_keys", "definitions", "events", "runs", "signals"} <= set(inspector.get_table_names()):
        msg = "this database is the store of a crib, and no tool may read or write it; keep entities in another one"
        raise EgressDenied(msg)
