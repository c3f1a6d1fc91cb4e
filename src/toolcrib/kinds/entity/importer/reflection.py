"""Reads the schema of an existing database as entities. It does not read rows."""

import re
import warnings
from collections.abc import Collection, Mapping
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import DOMAIN
from sqlalchemy.exc import SAWarning

from toolcrib.contracts import InvalidInput, Loss
from toolcrib.kinds.entity.importer.options import EntityOptions
from toolcrib.kinds.entity.importer.tables import Entity, as_entity

MAX_TABLES: Final = 200
"""Tables of one import."""
_NUMBER: Final = re.compile(r"num|dec|money|currency|real|floa|doub", re.IGNORECASE)
"""Beginnings of the names that are given to types of numbers."""
_OURS: Final = frozenset({"alembic_version", "spatial_ref_sys"})
"""Tables of tools that manage a database."""


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
    inner = _inner(connection) if connection.dialect.name == "sqlite" else set[str]()
    there = sorted(set(sa.inspect(connection).get_table_names(schema)) - _OURS - inner)
    names = _names(there, tables, options or {})
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
    """A table as the database describes it now; of a domain there is the type that it narrows.

    Args:
        connection: To the database.
        name: The table's.
        schema: The schema that holds it.

    Raises:
        sqlalchemy.exc.NoSuchTableError: There is no such table.
    """
    with warnings.catch_warnings():
        # A type that SQLAlchemy does not know is told as a loss, not as a warning.
        warnings.simplefilter("ignore", SAWarning)
        table = sa.Table(name, sa.MetaData(), schema=schema, autoload_with=connection, resolve_fks=False)
    declared = _declared_types(connection, name) if connection.dialect.name == "sqlite" and schema is None else {}
    for column in table.columns:
        _correct(column, declared.get(column.name))
    return table


def _correct(column: "sa.Column[Any]", declared: str | None) -> None:
    """Correct what SQLAlchemy reports wrongly, or not at all, about a column."""
    if isinstance(column.type, DOMAIN):
        column.type = column.type.data_type
    if declared is None:
        return
    if isinstance(column.type, sa.Numeric) and not _NUMBER.match(declared):
        column.type = sa.String()  # UUID, STRING and what else SQLite takes for a name of a type
    if column.primary_key and declared.upper() != "INTEGER":
        column.autoincrement = False  # only an INTEGER key is SQLite's own number of a row


def _declared_types(connection: sa.Connection, table: str) -> dict[str, str]:
    """The types of an SQLite table's columns as they were written (sqlite.org/datatype3.html)."""
    rows = connection.execute(sa.text("SELECT name, type FROM pragma_table_xinfo(:name)"), {"name": table})
    return {str(column): str(declared) for column, declared in rows}


def _names(found: list[str], wanted: Collection[str] | None, options: Mapping[str, EntityOptions]) -> list[str]:
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


def _inner(connection: sa.Connection) -> set[str]:
    """Tables in which SQLite keeps what its virtual tables consist of."""
    rows = connection.execute(sa.text("SELECT name FROM pragma_table_list WHERE type = 'shadow'"))
    return {str(name) for (name,) in rows}
