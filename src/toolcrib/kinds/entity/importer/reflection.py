"""Reads the schema of an existing database as entities. It does not read rows."""

import re
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import DOMAIN
from sqlalchemy.exc import SAWarning

from toolcrib.contracts import InvalidInput, Loss
from toolcrib.kinds.entity.importer.options import EntityOptions
from toolcrib.kinds.entity.importer.tables import Entity, as_entity
from toolcrib.kinds.entity.shape import EntityOperation

MAX_TABLES: Final = 200
"""Tables of one import."""
_NUMBER: Final = re.compile(r"num|dec|money|currency|real|floa|doub", re.IGNORECASE)
"""Beginnings of the names that are given to types of numbers."""
_OURS: Final = frozenset({"alembic_version", "spatial_ref_sys"})
"""Tables of tools that manage a database."""
_OUR_VIEWS: Final = frozenset(
    {"geography_columns", "geometry_columns", "pg_stat_statements", "pg_stat_statements_info", "raster_columns"}
)
"""Views of extensions."""
_TABLE: Final = "table"
_OF_A_ROW: Final = frozenset[EntityOperation]({"get", "create", "update", "delete"})


Name: TypeAlias = tuple[str | None, str]
"""Schema, null for the one that is imported, and name of a table or view."""


def reflect(
    connection: sa.Connection,
    *,
    schema: str | None = None,
    tables: Collection[str] | None = None,
    views: bool = False,
    options: Mapping[str, EntityOptions] | None = None,
) -> tuple[list[Entity], list[Loss]]:
    """Read which tables and views there are, and what they hold. A view is only read.

    Args:
        connection: To the database.
        schema: The database's schema; its default one if null.
        tables: Names of tables and views, `schema.name` for those of another schema; all tables if null.
        views: Whether all views are imported too, if `tables` is null.
        options: Choices by table.

    Raises:
        InvalidInput: There is no such table, or there are too many.
    """
    there = _Relations(connection, schema)
    chosen = {name: there.require(name) for name in (*(tables or ()), *(options or {}))}
    if tables is None:
        names = [(None, name) for name, kind in there.of(schema).items() if views or kind == _TABLE]
    else:
        names = list(dict.fromkeys(chosen[name] for name in tables))
    if len(names) > MAX_TABLES:
        msg = f"the database has {len(names)} tables, and {MAX_TABLES} are the most of one import; name those you want"
        raise InvalidInput(msg)
    by_name = {chosen[name]: choices for name, choices in (options or {}).items()}
    entities: list[Entity] = []
    losses = [] if tables is not None else [*_views_left_out(there, schema, views=views), *there.other_schemas()]
    for own, name in sorted(names, key=lambda found: (found[0] or "", found[1])):
        table = read_table(connection, name, own or schema)
        if there.of(own or schema)[name] != _TABLE:
            entities.append(_view(table, by_name.get((own, name))))
        elif table.primary_key.columns:
            entities.append(as_entity(table, by_name.get((own, name))))
        else:
            why = "left out: it has no primary key, by which a row could be named"
            losses.append(_left_out(f"table {name}", why, [f"/{own}/{name}" if own else f"/{name}"]))
    return entities, losses


class _Relations:
    """Names and kinds of the tables and views of a database, by schema."""

    def __init__(self, connection: sa.Connection, schema: str | None) -> None:
        self._inspector = sa.inspect(connection)
        self._connection = connection
        self._schema = schema
        self._known: dict[str | None, dict[str, str]] = {}

    def of(self, schema: str | None) -> dict[str, str]:
        """The kind of each relation of a schema, by name."""
        if schema not in self._known:
            inner = _inner(self._connection) if self._connection.dialect.name == "sqlite" else set[str]()
            tables = set(self._inspector.get_table_names(schema)) - _OURS - inner
            kinds = dict.fromkeys(tables, _TABLE) | dict.fromkeys(self._inspector.get_view_names(schema), "view")
            if self._connection.dialect.name == "postgresql":
                found = self._inspector.get_materialized_view_names(schema)
                kinds |= dict.fromkeys(found, "materialized view")
            self._known[schema] = dict(sorted((name, kind) for name, kind in kinds.items() if name not in _OUR_VIEWS))
        return self._known[schema]

    def require(self, name: str) -> Name:
        """The relation that a name means: of the imported schema, else `schema.name`.

        Raises:
            InvalidInput: There is none.
        """
        if name in self.of(self._schema):
            return None, name
        schema, dot, own = name.partition(".")
        if dot and schema in self._inspector.get_schema_names() and own in self.of(schema):
            return schema, own
        found = list(self.of(self._schema))
        listed = f"{', '.join(found[:20])}{' …' if len(found) > 20 else ''}" if found else "none"
        msg = f"the database has no table {name[:200]!r}; its tables and views are: {listed}"
        raise InvalidInput(msg)

    def other_schemas(self) -> Iterator[Loss]:
        """What the other schemas have, which is not imported."""
        imported = self._schema or self._inspector.default_schema_name
        for schema in self._inspector.get_schema_names():
            if schema in {imported, "information_schema"} or schema.startswith("pg_"):
                continue
            kinds = list(self.of(schema).values())
            if kinds:
                tables = kinds.count(_TABLE)
                why = (
                    f"left out: it has {tables} tables and {len(kinds) - tables} views; import it with schema "
                    f"{schema!r}, or name what you want as '{schema}.NAME'"
                )
                yield _left_out(f"schema {schema}", why, [f"/{schema}"])


def _views_left_out(there: _Relations, schema: str | None, *, views: bool) -> Iterator[Loss]:
    names = [name for name, kind in there.of(schema).items() if kind != _TABLE]
    if names and not views:
        why = "left out: import with views, or name them as tables; their tools only read"
        yield _left_out(f"{len(names)} views", why, [f"/{name}" for name in names])


def _left_out(what: str, why: str, places: list[str]) -> Loss:
    return Loss(effect="dropped", kind="operation", what=what, why=why, places=tuple(places))


def _view(table: "sa.Table[Any]", options: EntityOptions | None) -> Entity:
    """A view, whose rows no key names: they are searched and counted."""
    for column in table.columns:
        if isinstance(column.type, sa.types.NullType):
            column.type = sa.JSON()  # SQLite does not say what an expression is: any value, as it is read
    chosen = options or EntityOptions()
    return as_entity(table, replace(chosen, exclude={*chosen.exclude, *_OF_A_ROW}), keyless=True)


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


def _inner(connection: sa.Connection) -> set[str]:
    """Tables in which SQLite keeps what its virtual tables consist of."""
    rows = connection.execute(sa.text("SELECT name FROM pragma_table_list WHERE type = 'shadow'"))
    return {str(name) for (name,) in rows}
