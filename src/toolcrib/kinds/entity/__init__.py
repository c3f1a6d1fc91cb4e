"""Tools of kind `entity`: operations on the rows of a database table.

Imported by `kinds.table`; other packages import the modules. Decisions: docs/decisions/0012 (filters).
"""

from typing import TYPE_CHECKING

from toolcrib.contracts import Json, JsonObject, ProviderDefinition, ToolDefinition
from toolcrib.core.kinds import KindSpec
from toolcrib.kinds.entity.commands import CONNECTION, IMPORTERS
from toolcrib.kinds.entity.shape import EntityImplementation

if TYPE_CHECKING:
    from toolcrib.core.kinds import Runtime, RuntimeParts


def _check(definition: ToolDefinition, entity: EntityImplementation) -> None:
    from toolcrib.kinds.entity.checks import check_entity

    check_entity(definition, entity)


def _open_runtime(parts: "RuntimeParts") -> "Runtime":
    from toolcrib.kinds.entity.importer import Databases
    from toolcrib.kinds.entity.runtime import EntityRuntime

    return EntityRuntime(Databases(parts.session.route), parts.access, clock=parts.clock)


def _preview(
    tool: ToolDefinition,
    shape: EntityImplementation,
    arguments: JsonObject,
    *,
    provider: ProviderDefinition | None,
    idempotency_key: str,
) -> JsonObject:
    del tool, provider, idempotency_key
    return {"entity": shape.table, "operation": shape.operation, "filter": _rows(shape, arguments)}


def _rows(entity: EntityImplementation, arguments: JsonObject) -> Json:
    """Which rows: a filter as text, or the key of one row."""
    if entity.operation in ("search", "count"):
        return arguments.get("filter")
    if entity.operation == "create":
        return None
    return {name: arguments.get(name) for name in entity.key}


KIND = KindSpec(
    EntityImplementation,
    check=_check,
    open_runtime=_open_runtime,
    preview=_preview,
    importers=IMPORTERS,
    connection=CONNECTION,
)
