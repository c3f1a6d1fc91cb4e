"""Check that ids which a request names exist, and explain which would be accepted.

Stages are the delicate case: a stage is named by its id, never by its label, and must belong to the deal's pipeline.
"""

import sqlite3
from collections.abc import Collection, Mapping

from examples.crm.checks import Problems, join
from examples.crm.errors import Choice
from examples.crm.search import Query
from examples.crm.values import Kind, Stored


def check_deal(
    connection: sqlite3.Connection,
    *,
    changed: Collection[str],
    values: Mapping[str, Stored],
    path: str,
    problems: Problems,
) -> None:
    """Check the references among a deal's values.

    Args:
        connection: where the references lead.
        changed: the properties that the request sets; the others are known to be right.
        values: the deal as it would be afterwards.
        path: where the properties stand in the request.
        problems: receives what is wrong.
    """
    owner, company = values["owner_id"], values["company_id"]
    if (
        "owner_id" in changed
        and owner is not None
        and not _exists(connection, "SELECT 1 FROM owners WHERE id = ?", owner)
    ):
        problems.add(join(path, "owner_id"), f"no owner has the id {str(owner)!r}; list_owners shows them all")
    if "company_id" in changed and not _exists(connection, "SELECT 1 FROM companies WHERE id = ?", company):
        problems.add(join(path, "company_id"), f"no company has the id {str(company)!r}; search_companies finds them")
    if "pipeline" in changed or "stage" in changed:
        _check_stage(connection, changed, values, path, problems)


def check_filters(connection: sqlite3.Connection, query: Query, problems: Problems) -> None:
    """Refuse filters on pipelines and stages that do not exist: finding nothing would hide the mistake."""
    for item in (item for group in query.groups for item in group):
        if item.property.kind is Kind.PIPELINE:
            allowed = _pipelines(connection)
        elif item.property.kind is Kind.STAGE:
            allowed = _all_stages(connection)
        else:
            continue
        known = {choice.value for choice in allowed}
        for operand in item.operands:
            if operand is not None and operand not in known:
                problem = f"no {item.property.name} has the id {operand!r}; filter by an id, not by a label"
                problems.add(item.path, problem, allowed)


def _check_stage(
    connection: sqlite3.Connection,
    changed: Collection[str],
    values: Mapping[str, Stored],
    path: str,
    problems: Problems,
) -> None:
    pipelines = {choice.value: choice.label for choice in _pipelines(connection)}
    pipeline, stage = values["pipeline"], values["stage"]
    if pipeline not in pipelines:
        problem = f"no pipeline has the id {pipeline!r}"
        problems.add(join(path, "pipeline"), problem, _pipelines(connection))
        return
    allowed = _stages_of(connection, pipeline)
    if all(choice.value != stage for choice in allowed):
        problem = f"the pipeline {pipelines[str(pipeline)]!r} ({pipeline}) has no stage with the id {stage!r}"
        problems.add(join(path, "stage" if "stage" in changed else "pipeline"), problem, allowed)


def _exists(connection: sqlite3.Connection, sql: str, row_id: Stored) -> bool:
    return connection.execute(sql, (row_id,)).fetchone() is not None


def _pipelines(connection: sqlite3.Connection) -> list[Choice]:
    rows = connection.execute("SELECT id, label FROM pipelines ORDER BY display_order")
    return [Choice(row[0], row[1]) for row in rows]


def _stages_of(connection: sqlite3.Connection, pipeline: Stored) -> list[Choice]:
    sql = "SELECT id, label FROM stages WHERE pipeline_id = ? ORDER BY display_order"
    return [Choice(row[0], row[1]) for row in connection.execute(sql, (pipeline,))]


def _all_stages(connection: sqlite3.Connection) -> list[Choice]:
    sql = """
        SELECT stages.id, stages.label, pipelines.label
        FROM stages JOIN pipelines ON pipelines.id = stages.pipeline_id
        ORDER BY pipelines.display_order, stages.display_order
    """
    return [Choice(row[0], f"{row[1]} ({row[2]})") for row in connection.execute(sql)]
