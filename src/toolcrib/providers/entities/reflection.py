"""The tables of an existing database as entities: what it tells of itself, nothing of its rows."""

import warnings
from collections.abc import Collection, Mapping
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import SAWarning

from toolcrib.contracts import InvalidInput, Loss
from toolcrib.providers.entities.options import EntityOptions
from toolcrib.providers.entities.tables import Entity, as_entity

MAX_TABLES: Final = 200
"""Tables of one import."""
_OURS: Final = frozenset({"alembic_version", "spatial_ref_sys"})
"""Tables of tools that keep house in a database."""


def reflect(
    connection: sa.Connection,
    *,
    schema: str | None = None,
    tables: Collection[str] | None = None,
    options: Mapping[str, EntityOptions] | None = None,
) -> tuple[list[Entity], list[Loss]]:
    """Read which tables there are, and what they hold.

    Args:
        connection: To the database.
        schema: The database's schema; its default one if null.
        tables: Their names; all if null.
        options: Choices by table.

    Raises:
        InvalidInput: There is no such table, or there are too many.
    """
    names = _names(sa.inspect(connection), schema, tables, options or {})
    entities: list[Entity] = []
    losses: list[Loss] = []
    for name in names:
        table = read_table(connection, name, schema)
        if table.primary_key.columns:
            entities.append(as_entity(table, (options or {}).get(name)))
            continue
        why = "left out: it has no primary key, by which a row could be named"
        losses.append(Loss(effect="dropped", kind="operation", what=f"table {name}", why=why, places=(f"/{name}",)))
    return entities, losses


def read_table(connection: sa.Connection, name: str, schema: str | None) -> "sa.Table[Any]":
    """A table as the database describes it now.

    Args:
        connection: To the database.
        name: The table's.
        schema: The schema that holds it.

    Raises:
        sqlalchemy.exc.NoSuchTableError: There is none.
    """
    with warnings.catch_warnings():
        # A type that SQLAlchemy does not know is told as a loss, not as a warning.
        warnings.simplefilter("ignore", SAWarning)
        return sa.Table(name, sa.MetaData(), schema=schema, autoload_with=connection, resolve_fks=False)


def _names(
    inspector: sa.Inspector,
    schema: str | None,
    wanted: Collection[str] | None,
    options: Mapping[str, EntityOptions],
) -> list[str]:
    found = sorted(set(inspector.get_table_names(schema)) - _OURS)
    unknown = [name for name in [*(wanted or ()), *options] if name not in found]
    if unknown:
        listed = f"{', '.join(found[:20])}{' …' if len(found) > 20 else ''}" if found else "none"
        msg = f"the database has no table {unknown[0][:200]!r}; its tables are: {listed}"
        raise InvalidInput(msg)
    names = found if wanted is None else [name for name in found if name in wanted]
    if len(names) > MAX_TABLES:
        msg = f"the database has {len(names)} tables, and {MAX_TABLES} are the most of one import; name those you want"
        raise InvalidInput(msg)
    return names
