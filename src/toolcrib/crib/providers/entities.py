"""Databases into a crib: mapped classes and tables of the application, or what a database tells of itself."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from toolcrib.contracts import EntityImplementation, Principal, ToolRevision
from toolcrib.core.executor import CallFailed
from toolcrib.core.providers import ImportedApi
from toolcrib.core.registry.checks.http import check_provider
from toolcrib.crib.providers.names import in_the_tree, names_before, under_free_names
from toolcrib.kinds.entity.importer import EntityOptions, operation_name
from toolcrib.kinds.runtimes import EntityRuntime

if TYPE_CHECKING:
    import sqlalchemy as sa

    from toolcrib.kinds.entity.importer.tables import Entity, Table

Source: TypeAlias = "sa.Engine | str"
"""A database: an engine of the application, or a reference to a URL."""
Thing: TypeAlias = "type | Table | Entity"
"""What becomes an entity: a mapped class, a table."""


async def import_entities(
    runtime: EntityRuntime,
    name: str,
    database: Source,
    things: Sequence[Thing],
    *,
    who: Principal,
    tools: Collection[ToolRevision],
) -> ImportedApi:
    """Make tools of what the application maps, and bind its engine if it gives one.

    Args:
        runtime: Executes them.
        name: The provider's.
        database: An engine, or a reference to a URL.
        things: Mapped classes, tables, entities.
        who: In whose realm.
        tools: All tools of the realm.

    Raises:
        InvalidDefinition: One of them is not mapped.
        InvalidSettings: The engine cannot be shared between threads.
        Conflict: A tool would take the name of one that is not the provider's.
    """
    from toolcrib.kinds.entity.importer.generation import generate  # noqa: PLC0415 - loads SQLAlchemy
    from toolcrib.kinds.entity.importer.tables import as_entity  # noqa: PLC0415 - likewise

    entities = [as_entity(thing) for thing in things]
    url = database if isinstance(database, str) else None
    read = partial(generate, name, entities, url=url)
    imported = await under_free_names(read, name, _names(name, tools), tools)
    check_provider(imported.provider)
    if not isinstance(database, str):
        tables = {(entity.table.schema, entity.table.name): entity.table for entity in entities}
        await runtime.bind(who.realm, name, database, tables)
    return imported


async def import_database(
    runtime: EntityRuntime,
    *,
    name: str,
    url: str,
    schema: str | None,
    tables: Collection[str] | None,
    options: Mapping[str, EntityOptions],
    who: Principal,
    tools: Collection[ToolRevision],
) -> ImportedApi:
    """Make tools of the tables that a database has.

    Args:
        runtime: Has the way to the database.
        name: The provider's.
        url: Reference to the database's URL.
        schema: The database's schema; its default one if null.
        tables: Their names; all if null.
        options: Choices by table.
        who: In whose realm and name it is asked.
        tools: All tools of the realm.

    Raises:
        InvalidDefinition: The name or the reference is none.
        ReconnectRequired: The database refuses the credentials, or the reference leads to none.
        Unavailable: The database cannot be reached.
        EgressDenied: The policy forbids the address, or it is the store of a crib.
        InvalidInput: The database cannot be read, or has no such table.
        Conflict: A tool would take the name of one that is not the provider's.
    """
    from toolcrib.kinds.entity.importer.generation import generate, provider_of  # noqa: PLC0415 - loads SQLAlchemy
    from toolcrib.kinds.entity.importer.reflection import reflect  # noqa: PLC0415 - likewise

    provider = provider_of(name, url)
    check_provider(provider)
    try:
        entities, losses = await runtime.look(
            provider, who, partial(reflect, schema=schema, tables=tables, options=options)
        )
    except CallFailed as failure:
        raise in_the_tree(failure.error) from failure
    read = partial(generate, name, entities, url=url, losses=losses)
    return await under_free_names(read, name, _names(name, tools), tools)


def _names(provider: str, tools: Collection[ToolRevision]) -> dict[str, str]:
    """Names of the tools that an earlier import has made, by `search orders`."""
    return names_before(
        provider,
        tools,
        EntityImplementation,
        lambda made: operation_name(made.operation, made.table_schema, made.table),
    )
