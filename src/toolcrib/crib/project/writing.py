"""Writes the definitions of a store as documents of a project: the inverse of applying one.

Fields at their defaults are left out, in the order of their contracts, so that changes of a document stay small.
Secrets are references, as they are stored.
"""

from typing import Final, cast

from toolcrib.contracts import AgentDefinition, JsonObject, ToolDefinition
from toolcrib.contracts.base.base import Contract
from toolcrib.contracts.projects import ProjectKind
from toolcrib.contracts.workflows import WorkflowDefinition
from toolcrib.crib.project.documents import SHAPE_OF
from toolcrib.infrastructure.store import Definition

_FIRST: Final = ("kind", "name", "version")


def document_of(row: Definition) -> tuple[ProjectKind, JsonObject]:
    """What a stored definition is in a project, and its document.

    Args:
        row: The newest revision of a version.
    """
    if row.kind == "tool":
        definition = ToolDefinition.model_validate(row.body)
        kind, body = _tool(definition)
    else:
        kind = cast("ProjectKind", "handler" if row.kind == "workflow_step" else row.kind)
        body = _written(SHAPE_OF[kind].model_validate(row.body))
    document = {"kind": kind, "name": row.name, **({"version": row.version} if row.kind == "tool" else {}), **body}
    if row.status != "active":
        life = {"status": row.status, "message": row.status_message, "replacement": row.replacement}
        if row.sunset is not None:
            life["sunset"] = row.sunset.isoformat()
        document["life_cycle"] = {name: value for name, value in life.items() if value is not None}
    return kind, document


def _tool(definition: ToolDefinition) -> tuple[ProjectKind, JsonObject]:
    kind = definition.implementation.kind
    if kind == "agent":
        return "agent", _written(AgentDefinition.of(definition))
    if kind == "workflow":
        return "workflow", WorkflowDefinition.of(definition).document()
    body = _written(definition)
    body["implementation"] = {"kind": kind, **definition.implementation.content()}
    return "tool", body


def _written(body: Contract) -> JsonObject:
    fields = body.model_dump(mode="json", exclude_defaults=True)
    return {name: value for name, value in fields.items() if name not in _FIRST}
