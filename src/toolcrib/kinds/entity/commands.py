"""Import of databases: the tables of a database, or the classes that an application maps."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import Field

from toolcrib.contracts import Contract, DatabaseConnection, Discovery, Principal, ProviderDefinition, ToolRevision
from toolcrib.core.kinds import ConnectionKind, ImportContext, Importer, ImportSource, Option
from toolcrib.kinds.entity.shape import EntityImplementation, EntityOperation

if TYPE_CHECKING:
    import sqlalchemy as sa

    from toolcrib.core.providers import ImportedApi
    from toolcrib.core.providers.probes import Probe, ProbeResult
    from toolcrib.kinds.entity.importer.tables import Entity, Table
    from toolcrib.kinds.entity.runtime import EntityRuntime

BoundDatabase: TypeAlias = "sa.Engine | str"
"""A database: an engine of the application, or a reference to a URL."""
Mapped: TypeAlias = "type | Table | Entity"
"""What becomes an entity: a mapped class, a table."""


class TableOptions(Contract):
    """Options for one table; defaults are derived from the table."""

    singular: str | None = None
    plural: str | None = None
    description: str | None = None
    category: str | None = None
    exclude: frozenset[EntityOperation] = frozenset()
    searchable: tuple[str, ...] | None = None
    read_only: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    version: str | None = None
    """Column that changes with each update."""
    max_rows: int = 100
    """Rows of one answer."""


class DatabaseSource(ImportSource):
    """A database. Each table becomes tools: search, get, create, update, delete, count."""

    url: Annotated[
        str, Option(metavar="REFERENCE", help="Where the URL is kept, such as '${env:SHOP_URL}'; never the URL.")
    ]
    """Reference to its URL, such as `${env:TOOLCRIB_SECRET_SHOP_URL}`; never the URL."""
    table_schema: Annotated[str | None, Option("--schema", "S", "The database's schema, if not its default one.")] = (
        None
    )
    """The database's schema; its default one if null."""
    tables: Annotated[tuple[str, ...] | None, Option("--table", "T", "Only this table or view; may be repeated.")] = (
        None
    )
    """Names of tables and views, `schema.name` for those of another schema; all tables if null."""
    views: Annotated[bool, Option("--views", help="All views too; their tools only read.")] = False
    """Whether all views are imported too, if no tables are named."""
    options: dict[str, TableOptions] = Field(default_factory=dict)
    """Choices by table."""

    @property
    def references(self) -> tuple[str, ...]:
        """The reference to its URL."""
        return (self.url,)

    @property
    def is_partial(self) -> bool:
        """Whether it names tables."""
        return self.tables is not None


async def import_database(source: DatabaseSource, context: ImportContext) -> "ImportedApi":
    """Make tools of the tables that a database has. No row is read.

    Args:
        source: The database.
        context: The context of the import.

    Raises:
        InvalidDefinition: The name or the reference cannot be used.
        ReconnectRequired: The database refuses the credentials, or the reference has no value.
        Unavailable: The database cannot be reached.
        EgressDenied: The policy forbids the address, or it is the store of a crib.
        InvalidInput: The database cannot be read, or has no such table.
        Conflict: A tool would take the name of one that is not the provider's.
    """
    from functools import partial

    from toolcrib.core.executor import CallFailed
    from toolcrib.core.providers.import_names import in_the_tree, under_free_names
    from toolcrib.core.registry import check_provider
    from toolcrib.kinds.entity.importer import EntityOptions
    from toolcrib.kinds.entity.importer.generation import generate, provider_of
    from toolcrib.kinds.entity.importer.reflection import reflect
    from toolcrib.kinds.entity.runtime import EntityRuntime

    provider = provider_of(source.name, source.url)
    check_provider(provider)
    options = {table: EntityOptions(**dict(choices)) for table, choices in source.options.items()}
    read = partial(reflect, schema=source.table_schema, tables=source.tables, views=source.views, options=options)
    try:
        entities, losses = await context.runtime(EntityRuntime).look(provider, context.who, read)
    except CallFailed as failure:
        raise in_the_tree(failure.error) from failure
    make = partial(generate, source.name, entities, url=source.url, losses=losses)
    return await under_free_names(make, source.name, _names(source.name, context.tools), context.tools)


async def import_entities(
    name: str, database: BoundDatabase, things: Sequence[Mapped], context: ImportContext
) -> "ImportedApi":
    """Make tools of what the application maps, and bind its engine if it gives one.

    Args:
        name: The provider's.
        database: An engine, or a reference to a URL.
        things: Mapped classes, tables, entities.
        context: The context of the import.

    Raises:
        InvalidDefinition: One of them is not mapped.
        InvalidSettings: The engine cannot be shared between threads.
        Conflict: A tool would take the name of one that is not the provider's.
    """
    from functools import partial

    from toolcrib.core.providers.import_names import under_free_names
    from toolcrib.core.registry import check_provider
    from toolcrib.kinds.entity.importer.generation import generate
    from toolcrib.kinds.entity.importer.tables import as_entity
    from toolcrib.kinds.entity.runtime import EntityRuntime

    entities = [as_entity(thing) for thing in things]
    url = database if isinstance(database, str) else None
    read = partial(generate, name, entities, url=url)
    imported = await under_free_names(read, name, _names(name, context.tools), context.tools)
    check_provider(imported.provider)
    if not isinstance(database, str):
        tables = {(entity.table.schema, entity.table.name): entity.table for entity in entities}
        await context.runtime(EntityRuntime).bind(context.who.realm, name, database, tables)
    return imported


def _names(provider: str, tools: Collection[ToolRevision]) -> dict[str, str]:
    """Names of the tools that an earlier import has made, by `search orders`."""
    from toolcrib.core.providers.import_names import names_before
    from toolcrib.kinds.entity.importer import operation_name

    return names_before(
        provider,
        tools,
        EntityImplementation,
        lambda made: operation_name(made.operation, made.table_schema, made.table),
    )


class _DatabaseProbe:
    """Connects to a database and reads the names of its tables."""

    def __init__(self, runtime: "EntityRuntime") -> None:
        self._runtime = runtime

    async def test(self, provider: ProviderDefinition, principal: Principal) -> "ProbeResult":
        from toolcrib.core.providers.probes import ProbeResult

        return ProbeResult(f"it has {len(await self._tables(provider, principal))} tables", authenticated=True)

    async def discover(self, provider: ProviderDefinition, principal: Principal) -> Discovery:
        from toolcrib.core.providers.probes import discovery

        tables = await self._tables(provider, principal)
        return discovery(provider, tables, "tables", f"`toolcrib tool import-database URL --name {provider.name}`")

    async def _tables(self, provider: ProviderDefinition, principal: Principal) -> list[str]:
        from sqlalchemy import inspect

        return await self._runtime.look(provider, principal, lambda connection: inspect(connection).get_table_names())


def _open_probe(context: ImportContext) -> "Probe":
    from toolcrib.kinds.entity.runtime import EntityRuntime

    return _DatabaseProbe(context.runtime(EntityRuntime))


IMPORTERS = (Importer(DatabaseSource, import_database, "import-database", path="generate"),)
CONNECTION = ConnectionKind(DatabaseConnection, _open_probe)
