"""What would happen if a waiting call were approved, as far as it can be said without doing anything."""

from typing import cast

from toolcrib.contracts import (
    Approval,
    ApprovalPreview,
    EntityImplementation,
    HttpImplementation,
    Json,
    JsonObject,
    ToolRevision,
    idempotency_key,
)
from toolcrib.core.registry import Providers
from toolcrib.kinds.runtimes_part import preview_request


def preview_of(approval: Approval, tool: ToolRevision, providers: Providers) -> ApprovalPreview:
    """The preview of a call.

    Args:
        approval: The call.
        tool: The revision that was shown.
        providers: The systems that tools name.
    """
    definition, implementation = tool.definition, tool.definition.implementation
    arguments = cast("JsonObject", approval.input)
    shown = ApprovalPreview(
        title=definition.title or definition.name,
        description=definition.description,
        side_effects=definition.side_effects,
        arguments=arguments,
    )
    match implementation:
        case HttpImplementation():
            name = implementation.provider
            request = preview_request(
                definition,
                arguments,
                None if name is None else providers.find(tool.realm, name),
                idempotency_key=idempotency_key(approval.run_id, approval.position),
            )
            sent = {} if request is None else request._asdict()
            return shown.model_copy(update={"method": implementation.method, **sent})
        case EntityImplementation():
            said = {"entity": implementation.table, "operation": implementation.operation}
            return shown.model_copy(update={**said, "filter": _rows(implementation, arguments)})
        case _:
            return shown


def _rows(entity: EntityImplementation, arguments: JsonObject) -> Json:
    """Which rows: a filter as text, or the key of one row."""
    if entity.operation in ("search", "count"):
        return arguments.get("filter")
    if entity.operation == "create":
        return None
    return {name: arguments.get(name) for name in entity.key}
