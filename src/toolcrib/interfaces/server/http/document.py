"""The OpenAPI 3.1 document: FastAPI's, with the errors, headers, streams and examples that signatures do not tell.

Everything here is by rule, so that a new route is described without a line here; only examples are listed.
"""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final

from pydantic import TypeAdapter

from toolcrib.contracts import JsonObject, RunEvent, StreamDone, StreamEvent
from toolcrib.contracts.schemas import describe_fields
from toolcrib.interfaces.server.http.errors import PROBLEM_TYPE, ProblemDocument

API: Final = "/api/v1"
"""What the paths of the REST API begin with."""
TAGS: Final[Mapping[str, str]] = {
    "tools": "The catalogue: define, list, import, review and describe tools of every kind.",
    "calls": "Run tools and check calls.",
    "agentic tools": "Tools with a model inside: definitions, prompts and executions.",
    "agents": "Agents and what they are made of: definitions, executions, prompt fragments, service accounts.",
    "conversations": "Conversations with agents.",
    "workflows": "Workflows: drafts, publishing, vocabulary, instances.",
    "executions": "Runs: state, trace, events, attachments, answers, forks.",
    "approvals": "The inbox of calls that wait for a person.",
    "providers": "Systems that tools call, and their reference data.",
    "connections": "Consent that people have given to providers.",
    "secrets": "Secrets by name; no route returns a value.",
    "triggers": "What starts runs: times, webhooks and ends of other runs.",
    "mcp": "Virtual MCP servers.",
    "models": "The models that definitions can name, with prices and limits.",
    "schemas": "The JSON Schema of every contract.",
    "health": "Whether the server is running.",
    "openai": "Agents as models of OpenAI's API, with its errors.",
    "ag-ui": "Agents for web interfaces that speak AG-UI.",
}
"""What the tags of operations stand for."""
REVISION: Final[dict[int | str, dict[str, Any]]] = {
    200: {"headers": {"ETag": {"$ref": "#/components/headers/ETag"}}},
    304: {"description": "The client has this revision: `If-None-Match` names it."},
}
"""The responses of a route that names a revision by its `ETag`."""
RUN_STREAM: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "Server-sent events. `event:` is the `type` of the message, `data:` the message as JSON, and "
        "`id:` its place, from which `Last-Event-ID` continues.",
        "content": {"text/event-stream": {"schema": {"$ref": "#/components/schemas/StreamEvent"}}},
    }
}
"""The response of a route that streams what a run says and does."""
JOURNAL_STREAM: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "Server-sent events. `event:` is the type of the journal's event, `data:` the event as JSON, "
        "and `id:` its number, from which `Last-Event-ID` continues; `done` is the last.",
        "content": {"text/event-stream": {"schema": {"$ref": "#/components/schemas/JournalMessage"}}},
    }
}
"""The response of a route that streams the journal of a run."""
EXAMPLES: Final[Mapping[str, JsonObject]] = {
    "invoke_tool": {"params": {"task": "Move all Acme deals to Negotiation"}},
    "invoke_named_tool": {"tool": "deals", "params": {"task": "Move all Acme deals to Negotiation"}},
    "execute_tool": {"params": {"company": "Acme"}},
    "validate_call": {"params": {"company": "Acme"}},
    "execute_agent": {"message": "Which deals has Acme?"},
    "execute_agent_streaming": {"message": "Which deals has Acme?"},
    "continue_conversation": {"message": "And which of them are open?"},
    "run_workflow": {"input": {"company": "Acme"}},
    "decide_approval": {"approved": True, "reason": "Checked with sales"},
    "answer": {"answer": "Rafael Ortiz"},
    "signal_instance": {"name": "paid", "payload": {"amount": 12}},
    "fork_run": {"at": "turn:2", "changes": {"model": "openai:gpt-4o"}},
    "import_document": {"name": "crm", "url": "https://crm.example.com/openapi.json"},
    "define_provider": {"name": "crm", "base_url": "https://crm.example.com"},
    "set_secret": {"value": "s3cret", "scope": "realm"},
}
"""Bodies of requests, by operation."""

_NO_KEY: Final = HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN
_ALWAYS: Final = (
    HTTPStatus.NOT_FOUND,  # also of a list: the place where its page begins
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
_OF_BODIES: Final = HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE
_OF_CHANGES: Final = HTTPStatus.CONFLICT, HTTPStatus.FAILED_DEPENDENCY, HTTPStatus.BAD_GATEWAY
_CAUSES: Final[Mapping[HTTPStatus, str]] = {
    HTTPStatus.UNAUTHORIZED: "No API key, or one that is not valid.",
    HTTPStatus.FORBIDDEN: "The key has no grant for this; `detail` names it.",
    HTTPStatus.NOT_FOUND: "There is no such thing in the caller's realm.",
    HTTPStatus.CONFLICT: "The current state does not allow it: a taken name, a newer revision, an ended run, "
    "or a request with the same `Idempotency-Key` that has not ended.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is too large.",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The body is not JSON.",
    HTTPStatus.UNPROCESSABLE_ENTITY: "The request is not valid; `details.problems` lists what is wrong.",
    HTTPStatus.FAILED_DEPENDENCY: "A provider has to be connected again.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "The server failed; the log has the cause under `details.incident`.",
    HTTPStatus.BAD_GATEWAY: "A model provider failed.",
    HTTPStatus.SERVICE_UNAVAILABLE: "The store, the network or an extra is not there; trying again may help.",
}
"""Of each status from 400 on."""
_OPENAI: Final = "/v1/"
_TEMPLATE: Final = "#/components/schemas/{model}"


def complete(document: JsonObject) -> JsonObject:
    """The document with what FastAPI does not know; it is changed in place.

    Args:
        document: As FastAPI makes it.
    """
    components = document["components"]
    schemas: JsonObject = components["schemas"]
    _add_schema(schemas, "ProblemDocument", TypeAdapter(ProblemDocument))
    _add_schema(schemas, "StreamEvent", TypeAdapter(StreamEvent))
    _add_schema(schemas, "JournalMessage", TypeAdapter(RunEvent | StreamDone))
    components["responses"] = {_name(status): _problem(status) for status in _CAUSES}
    components["headers"] = {
        "ETag": {
            "description": 'The revision, in quotes: `"3"`. `If-Match` and `If-None-Match` take it.',
            "schema": {"type": "string"},
        },
    }
    components["parameters"] = {
        "IfNoneMatch": {
            "name": "If-None-Match",
            "in": "header",
            "required": False,
            "description": "The ETag of what the client has; the response is 304 without a body if it still is so.",
            "schema": {"type": "string"},
        },
        "IdempotencyKey": {
            "name": "Idempotency-Key",
            "in": "header",
            "required": False,
            "description": "Names the request, for a day: sent again with the same key it gets the same answer, and "
            "starts no second run. 422 if the key was sent with another request, 409 while the first is carried out.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 255},
        },
    }
    for method, path, operation in operations(document):
        if path.startswith(_OPENAI):
            operation["responses"].pop("422", None)  # FastAPI adds it; its clients get 400
        elif operation.get("security") or method == "post":
            _complete_operation(method, path, operation)
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    describe_fields("", {"$defs": schemas})
    for schema in schemas.values():
        for field in schema.get("properties", {}).values():
            _correct_default(field)
    document["tags"] = [{"name": name, "description": text} for name, text in TAGS.items()]
    return document


def operations(document: JsonObject) -> Iterator[tuple[str, str, JsonObject]]:
    """Method in lower case, path and description of each operation."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def _complete_operation(method: str, path: str, operation: JsonObject) -> None:
    responses: JsonObject = operation["responses"]
    body = operation.get("requestBody")
    statuses = [*_NO_KEY, *_ALWAYS]
    statuses += _OF_BODIES if body else ()
    statuses += _OF_CHANGES if method != "get" else ()
    for status in sorted(statuses):
        responses[str(int(status))] = {"$ref": f"#/components/responses/{_name(status)}"}
    parameters: list[JsonObject] = operation.setdefault("parameters", [])
    if "304" in responses and all(each.get("name") != "if-none-match" for each in parameters):
        parameters.append({"$ref": "#/components/parameters/IfNoneMatch"})
    if method == "post" and path.startswith(API):
        parameters.append({"$ref": "#/components/parameters/IdempotencyKey"})
    if not parameters:
        del operation["parameters"]
    example = EXAMPLES.get(operation["operationId"])
    if example is not None:
        operation["requestBody"]["content"]["application/json"]["example"] = example


def _correct_default(field: JsonObject) -> None:
    """A default of a decimal field is a text; as JSON it is a number."""
    types = {each.get("type") for each in (field, *field.get("anyOf", ()))}
    if isinstance(field.get("default"), str) and "number" in types and "string" not in types:
        field["default"] = float(field["default"])


def _problem(status: HTTPStatus) -> JsonObject:
    schema = {"$ref": _TEMPLATE.format(model="ProblemDocument")}
    return {"description": _CAUSES[status], "content": {PROBLEM_TYPE: {"schema": schema}}}


def _name(status: HTTPStatus) -> str:
    return "".join(word.capitalize() for word in status.name.split("_"))


def _add_schema(schemas: JsonObject, name: str, shape: TypeAdapter[Any]) -> None:
    found = shape.json_schema(mode="serialization", ref_template=_TEMPLATE)
    for part, schema in found.pop("$defs", {}).items():
        schemas.setdefault(part, schema)
    schemas[name] = {"title": name, **found}
