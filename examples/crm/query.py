"""Run a `Query` against SQLite.

SQL is put together from the fragments of this file and the columns of `properties.py`; every value a client sent is a
bound parameter.
"""

import sqlite3
from collections.abc import Iterable
from typing import Any, Final

from examples.crm.cursor import Cursor
from examples.crm.properties import ObjectType
from examples.crm.search import Filter, Operator, Query
from examples.crm.values import Json, Stored

Condition = tuple[str, list[Stored]]
"""A piece of a WHERE clause and its parameters."""

_TEMPLATES: Final = {
    Operator.EQ: "{} = ?",
    Operator.NEQ: "{} IS NOT ?",
    Operator.LT: "{} < ?",
    Operator.LTE: "{} <= ?",
    Operator.GT: "{} > ?",
    Operator.GTE: "{} >= ?",
    Operator.BETWEEN: "{} BETWEEN ? AND ?",
    Operator.IN: "{} IN ({marks})",
    Operator.NOT_IN: "({0} IS NULL OR {0} NOT IN ({marks}))",
    Operator.CONTAINS: "instr(casefold({}), casefold(?)) > 0",
    Operator.HAS_PROPERTY: "{} IS NOT NULL",
    Operator.NOT_HAS_PROPERTY: "{} IS NULL",
}


def run_search(connection: sqlite3.Connection, target: ObjectType, query: Query) -> dict[str, Json]:
    """One page: `total` counts all objects found, `paging` is absent on the last page."""
    found, parameters = _any_of(_all_of(map(_compare, group)) for group in query.groups)
    count = " ".join(("SELECT count(*) FROM", target.source, "WHERE", found))
    total: int = connection.execute(count, parameters).fetchone()[0]

    rows = _page(connection, target, query, (found, parameters))
    names = [wanted.name for wanted in query.properties]
    shown = rows[: query.limit]
    results: list[Json] = [target.show(row[0], row[1], dict(zip(names, row[3:], strict=True))) for row in shown]
    page: dict[str, Json] = {"total": total, "results": results}
    if len(rows) > query.limit:
        last = shown[-1]
        page["paging"] = {"next": {"after": Cursor(query.digest, last[0], last[2]).text()}}
    return page


def _page(connection: sqlite3.Connection, target: ObjectType, query: Query, found: Condition) -> list[tuple[Any, ...]]:
    """Up to `limit + 1` rows of id, revision, sort value and the wanted properties."""
    sorted_by = query.sort.property.column if query.sort else "NULL"
    columns = [target.key, target.revision or "NULL", sorted_by, *(wanted.column for wanted in query.properties)]
    where, parameters = _all_of((found, _beyond(target, query)))
    sql = ("SELECT", ", ".join(columns), "FROM", target.source, "WHERE", where, "ORDER BY", _order(target, query))
    return connection.execute(" ".join((*sql, "LIMIT ?")), [*parameters, query.limit + 1]).fetchall()


def _compare(item: Filter) -> Condition:
    marks = ", ".join("?" * len(item.operands))
    return _TEMPLATES[item.operator].format(item.property.column, marks=marks), list(item.operands)


def _beyond(target: ObjectType, query: Query) -> Condition:
    """What comes after the cursor in the order of `_order`."""
    if query.after is None:
        return "TRUE", []
    later_id = f"{target.key} > ?"
    row_id, value = query.after.row_id, query.after.value
    if query.sort is None:
        return later_id, [row_id]
    column = query.sort.property.column
    if value is None:
        return f"({column} IS NULL AND {later_id})", [row_id]
    later = "<" if query.sort.descending else ">"
    return f"({column} {later} ? OR {column} IS NULL OR ({column} = ? AND {later_id}))", [value, value, row_id]


def _order(target: ObjectType, query: Query) -> str:
    if query.sort is None:
        return target.key
    column = query.sort.property.column
    direction = "DESC" if query.sort.descending else "ASC"
    return f"{column} IS NULL, {column} {direction}, {target.key}"


def _all_of(conditions: Iterable[Condition]) -> Condition:
    return _joined(" AND ", conditions)


def _any_of(conditions: Iterable[Condition]) -> Condition:
    return _joined(" OR ", conditions)


def _joined(word: str, conditions: Iterable[Condition]) -> Condition:
    """The conditions in one; no condition at all means that everything is wanted."""
    pieces: list[str] = []
    parameters: list[Stored] = []
    for piece, values in conditions:
        pieces.append(piece)
        parameters.extend(values)
    return f"({word.join(pieces)})" if pieces else "TRUE", parameters
