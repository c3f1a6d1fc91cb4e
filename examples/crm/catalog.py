"""The operations on what clients can only read: companies, contacts, owners, pipelines."""

import sqlite3

from examples.crm.checks import Problems
from examples.crm.errors import NotFoundError
from examples.crm.exchange import Call, Reply
from examples.crm.properties import COMPANIES, CONTACTS, ObjectType
from examples.crm.query import run_search
from examples.crm.search import parse_search
from examples.crm.values import Json, parse_id


def search_companies(connection: sqlite3.Connection, call: Call) -> Reply:
    """A page of the companies that a query finds."""
    return _search(connection, COMPANIES, call)


def search_contacts(connection: sqlite3.Connection, call: Call) -> Reply:
    """A page of the contacts that a query finds."""
    return _search(connection, CONTACTS, call)


def get_company(connection: sqlite3.Connection, call: Call) -> Reply:
    """One company."""
    columns = ", ".join(entry.column for entry in COMPANIES.properties.values())
    sql = " ".join(("SELECT", columns, "FROM companies WHERE id = ?"))
    try:
        row_id = parse_id(call.object_id)
    except ValueError:
        row_id = 0
    row = connection.execute(sql, (row_id,)).fetchone()
    if row is None:
        raise NotFoundError(f"no company has the id {call.object_id!r}")
    return Reply(body=COMPANIES.show(row_id, None, dict(zip(COMPANIES.properties, row, strict=True))))


def list_owners(connection: sqlite3.Connection, call: Call) -> Reply:
    """Every owner, by id."""
    rows = connection.execute("SELECT id, name, email FROM owners ORDER BY id")
    results: list[Json] = [{"id": str(row[0]), "name": row[1], "email": row[2]} for row in rows]
    return Reply(body={"results": results})


def list_pipelines(connection: sqlite3.Connection, call: Call) -> Reply:
    """Every pipeline with its stages, in display order."""
    results: list[Json] = [
        {"id": row[0], "label": row[1], "display_order": row[2], "stages": _stages(connection, row[0])}
        for row in connection.execute("SELECT id, label, display_order FROM pipelines ORDER BY display_order")
    ]
    return Reply(body={"results": results})


def _stages(connection: sqlite3.Connection, pipeline: str) -> Json:
    sql = "SELECT id, label, display_order, closed FROM stages WHERE pipeline_id = ? ORDER BY display_order"
    return [
        {"id": row[0], "label": row[1], "display_order": row[2], "closed": bool(row[3])}
        for row in connection.execute(sql, (pipeline,))
    ]


def _search(connection: sqlite3.Connection, target: ObjectType, call: Call) -> Reply:
    problems = Problems()
    query = parse_search(target, call.body, problems)
    problems.stop()
    return Reply(body=run_search(connection, target, query))
