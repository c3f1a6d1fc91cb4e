"""Small OpenAPI documents for tests."""

from typing import Any

from toolcrib.contracts import ToolDefinition
from toolcrib.core.providers import ImportedApi
from toolcrib.kinds.http.openapi import import_openapi
from toolcrib.kinds.http.shape import HttpImplementation, ToolOverride

Node = dict[str, Any]

PAGE: Node = {
    "type": "object",
    "properties": {
        "results": {"type": "array", "items": {"type": "object"}},
        "paging": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Next"}}},
    },
}
NEXT: Node = {"type": "object", "properties": {"after": {"type": "string"}}}


def document(paths: Node, *, version: str = "3.1.0", **root: Any) -> Node:
    """A document with one server."""
    return {
        "openapi": version,
        "info": {"title": "Test", "version": "1"},
        "servers": [{"url": "https://api.test/v1"}],
        "paths": paths,
        **root,
    }


def answering(schema: Any, **operation: Any) -> Node:
    """An operation whose 200 is JSON of a schema."""
    return {"responses": {"200": {"description": "", "content": json(schema)}}, **operation}


def json(schema: Any) -> Node:
    """JSON content."""
    return {"application/json": {"schema": schema}}


def taking(schema: Any, *, required: bool | None = True, **operation: Any) -> Node:
    """An operation with a JSON body."""
    body: Node = {"content": json(schema)}
    if required is not None:
        body["required"] = required
    return {"requestBody": body, **operation}


def imported(paths: Node, *, overrides: dict[str, ToolOverride] | None = None, **root: Any) -> ImportedApi:
    """The import of a document of these paths."""
    return import_openapi(document(paths, **root), name="crm", overrides=overrides or {})


def tool(operation: Node, method: str = "post", path: str = "/deals", **root: Any) -> ToolDefinition:
    """The tool of a single operation."""
    (found,) = imported({path: {method: operation}}, **root).tools
    return found


def http(definition: ToolDefinition) -> HttpImplementation:
    """Its implementation."""
    assert isinstance(definition.implementation, HttpImplementation)
    return definition.implementation


def whys(api: ImportedApi, *, all_of_them: bool = False) -> dict[str, str]:
    """Losses that matter by `operation what`, or all."""
    report = api.report
    found = {loss.what: loss for loss in report.losses}
    for operation in report.operations:
        found |= {f"{operation.operation} {loss.what}": loss for loss in report.of(operation)}
    return {key: loss.why for key, loss in found.items() if all_of_them or loss.matters}
