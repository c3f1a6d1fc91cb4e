"""The six operations of an entity: from the validated arguments of a call to its output, in one transaction."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from toolcrib.contracts import ErrorCode, InvalidInput, JsonObject, Reason
from toolcrib.core.executor import CallFailed, Outcome, error
from toolcrib.infrastructure.queries.grammar import read_filter, read_order
from toolcrib.infrastructure.queries.statements import to_clause, to_order
from toolcrib.kinds.entity.runtime.rows import Rows
from toolcrib.kinds.entity.runtime.values import BoundField, fields_of, searchable_types
from toolcrib.kinds.entity.shape import ROW_VERSION, EntityImplementation, EntityOperation


class EntityRequest(NamedTuple):
    """A call of an entity's tool."""

    tool: str
    implementation: EntityImplementation
    arguments: JsonObject
    now: datetime
    mark: str
    """Of the call; no other has it."""


class _Work(NamedTuple):
    request: EntityRequest
    fields: Mapping[str, BoundField]
    rows: Rows
    dialect: str

    @property
    def key(self) -> JsonObject:
        return {name: self.request.arguments[name] for name in self.request.implementation.key}

    @property
    def given(self) -> JsonObject:
        """The values that are to be written.

        Raises:
            InvalidInput: One of them is not a field of the tool.
        """
        made = self.request.implementation
        beside = {made.version_field, *(made.key if made.operation == "update" else ())}
        given = {name: value for name, value in self.request.arguments.items() if name not in beside}
        foreign = next((name for name in given if name not in made.columns or not made.columns[name].writable), None)
        if foreign is not None:
            raise InvalidInput(f"{foreign[:100]!r} is no field that this tool writes; leave it out")
        return given

    @property
    def seen(self) -> Any:
        return self.request.arguments.get(self.request.implementation.version_field or "")

    @property
    def condition(self) -> sa.ColumnElement[bool] | None:
        text = str(self.request.arguments.get("filter") or "").strip()
        if not text:
            return None
        condition = read_filter(text, searchable_types(self.fields), now=self.request.now)
        return to_clause(condition, self.fields, dialect=self.dialect)

    @property
    def order(self) -> Sequence[sa.ColumnElement[Any]]:
        text = str(self.request.arguments.get("order_by") or "").strip()
        keys = read_order(text, searchable_types(self.fields)) if text else ()
        return to_order(keys, self.fields, dialect=self.dialect)


def perform(connection: sa.Connection, table: "sa.Table[Any]", request: EntityRequest) -> Outcome:
    """Perform the operation of a call.

    Args:
        connection: In a transaction, which the caller commits.
        table: The tool's.
        request: The call.

    Raises:
        CallFailed: There is no such row, it has changed since it was read, or the table has changed.
        InvalidInput: An argument is not what its field takes.
        sqlalchemy.exc.SQLAlchemyError: The database refused or failed.
    """
    made = request.implementation
    fields, missing = fields_of(made.columns, table, connection.dialect.name)
    if missing:
        message = (
            f"tool {request.tool!r}: the table {made.table} has no column {missing[0]!r} any more; import it again"
        )
        raise CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, message))
    rows = Rows(connection, table, fields, tool=request.tool, implementation=made, now=request.now, mark=request.mark)
    return _OPERATIONS[made.operation](_Work(request, fields, rows, connection.dialect.name))


def _search(work: _Work) -> Outcome:
    arguments, made = work.request.arguments, work.request.implementation
    top_argument: int | None = arguments.get("top")
    top, skip = min(top_argument or made.max_rows, made.max_rows), int(arguments.get("skip") or 0)
    found = work.rows.search(work.condition, work.order, skip=skip, top=top + 1)
    more = len(found) > top
    items = [_select_fields(work, row) for row in found[:top]]
    output: JsonObject = {"items": items, "more": more, "next_skip": skip + top if more else None}
    metadata: JsonObject = {"paging": {"pages": 1, "items": len(items), "complete": not more and not skip}}
    if more and top_argument is None:
        warning = f"the list is not complete: {top} rows are the most of one answer, and there are more"
        metadata["warnings"] = [f"{warning}; narrow the filter, or go on with skip={skip + top}"]
    return Outcome(output, metadata=metadata)


def _select_fields(work: _Work, row: JsonObject) -> JsonObject:
    """The requested fields; bytes only if requested explicitly. The version and the key are always included."""
    wanted: list[str] | None = work.request.arguments.get("select")
    made = work.request.implementation
    if wanted is None:
        return {name: value for name, value in row.items() if name not in made.columns or _is_light(made, name)}
    always = {*made.key, *wanted, ROW_VERSION, made.version_field}
    return {name: value for name, value in row.items() if name in always}


def _is_light(made: EntityImplementation, name: str) -> bool:
    return made.columns[name].type != "bytes" or name in made.key


def _count(work: _Work) -> Outcome:
    return Outcome({"count": work.rows.count(work.condition)})


def _get(work: _Work) -> Outcome:
    return Outcome(work.rows.get(work.key))


def _create(work: _Work) -> Outcome:
    return Outcome(work.rows.create(work.given))


def _update(work: _Work) -> Outcome:
    return Outcome(work.rows.update(work.key, work.seen, work.given))


def _delete(work: _Work) -> Outcome:
    work.rows.delete(work.key, work.seen)
    return Outcome({"deleted": True})


_OPERATIONS: Final[Mapping[EntityOperation, Callable[[_Work], Outcome]]] = {
    "search": _search,
    "count": _count,
    "get": _get,
    "create": _create,
    "update": _update,
    "delete": _delete,
}
