"""Writes the definitions of a store as documents of a project: the inverse of applying one.

Fields at their defaults are left out, in the order of their contracts, so that changes of a document stay small.
Secrets are references, as they are stored.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal, cast, get_args, get_origin

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
        workflow = WorkflowDefinition.of(definition)
        return "workflow", tagged(workflow, workflow.document())
    body = _written(definition)
    return "tool", body


def _written(body: Contract) -> JsonObject:
    fields = tagged(body, body.model_dump(mode="json", exclude_defaults=True))
    return {name: value for name, value in fields.items() if name not in _FIRST}


def tagged(value: object, written: Any) -> Any:
    """What was written of a value, with the tags that tell the shapes of its parts, which are defaults too."""
    if isinstance(value, Contract) and isinstance(written, dict):
        fields = cast("JsonObject", written)
        tags = {
            name: getattr(value, name)
            for name, field in type(value).model_fields.items()
            if get_origin(field.annotation) is Literal and len(get_args(field.annotation)) == 1 and name not in fields
        }
        return tags | {name: tagged(getattr(value, name, None), part) for name, part in fields.items()}
    if isinstance(value, list | tuple) and isinstance(written, list):
        pairs = zip(cast("Sequence[object]", value), cast("list[Any]", written), strict=True)
        return [tagged(item, part) for item, part in pairs]
    if isinstance(value, dict) and isinstance(written, dict):
        items, parts = cast("dict[str, object]", value), cast("JsonObject", written)
        return {name: tagged(items.get(name), part) for name, part in parts.items()}
    return written
