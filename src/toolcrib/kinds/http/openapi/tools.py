"""One operation as one tool definition: its arguments, its request, its behaviour."""

from dataclasses import dataclass
from typing import Final

from toolcrib.contracts import (
    ErrorRule,
    HttpImplementation,
    JsonObject,
    Paging,
    ProviderDefinition,
    RetryPolicy,
    ToolDefinition,
)
from toolcrib.core.providers.prose import plain, trimmed
from toolcrib.infrastructure.net.origins import origin_of
from toolcrib.kinds.http.openapi.arguments import KEY_HEADER, takes_key
from toolcrib.kinds.http.openapi.arguments_part import Arguments, read_arguments
from toolcrib.kinds.http.openapi.groups import group_of, slug
from toolcrib.kinds.http.openapi.operations.parts import Operation
from toolcrib.kinds.http.openapi.operations.security import Security
from toolcrib.kinds.http.openapi.operations.servers import Server, operation_server
from toolcrib.kinds.http.openapi.operations.tokens import authenticates
from toolcrib.kinds.http.openapi.overrides import ToolOverride
from toolcrib.kinds.http.openapi.paging import find_paging
from toolcrib.kinds.http.openapi.read.document import Document
from toolcrib.kinds.http.openapi.responses import Answers, output_schema, read_answers
from toolcrib.kinds.http.openapi.schemas.schemas import Schemas

_RETRIES: Final = RetryPolicy(count=3)
_TRANSIENT: Final = (ErrorRule(when="429", action="retry"), ErrorRule(when="5xx", action="retry"))
"""For operations that may be repeated."""

_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_IDEMPOTENT: Final = _READING | {"PUT", "DELETE"}
"""RFC 9110, section 9.2.2."""
_MAX_TITLE: Final = 100
_MAX_LONG: Final = 20_000


@dataclass(frozen=True, slots=True)
class Source:
    """What the tools of one document share."""

    document: Document
    provider: ProviderDefinition
    server: Server
    security: Security
    requests: Schemas
    responses: Schemas
    tokens: frozenset[str]
    """Names of parameters that repeat the bearer token."""
    base_given: bool
    """Whether the caller's base address replaces the document's servers."""


def make_tool(operation: Operation, name: str, override: ToolOverride, source: Source) -> ToolDefinition:
    """The tool of an operation, as the override wants it."""
    library = source.document.library
    tokens = source.tokens if authenticates(operation) else frozenset[str]()
    arguments = read_arguments(operation, library, source.requests, source.security.credentials(), tokens)
    answers = read_answers(operation)
    paging = _paging(operation, arguments, answers, override, source)
    if paging is not None:
        arguments = arguments.paged(paging, source.requests, operation.losses)
        operation.kept.append(f"paging {paging.kind}")
    place = operation.node.place
    fields: JsonObject = {
        "name": name,
        **_prose(operation, paging),
        "category": source.provider.name,
        "tags": _tags(operation),
        "source": "imported",
        "input_schema": source.requests.bundle(arguments.schema(), place, operation.losses),
        "output_schema": output_schema(answers, operation, source.responses),
        "implementation": _implementation(operation, arguments, paging, source),
        **_behaviour(operation, override),
    }
    return ToolDefinition(**(fields | override.fields()))


def _paging(
    operation: Operation, arguments: Arguments, answers: Answers, override: ToolOverride, source: Source
) -> Paging | None:
    if "paging" in override.model_fields_set:
        return override.paging
    return find_paging(operation, answers, source.document.library, arguments, source.requests)


def _prose(operation: Operation, paging: Paging | None) -> JsonObject:
    node, losses = operation.node, operation.losses
    summary, description = plain(node.object.get("summary")), plain(node.object.get("description"))
    text = description if description.startswith(summary) else f"{summary.rstrip('.')}. {description}".strip()
    if not text:
        text = f"{operation.method} {operation.path}"
    if node.flag("deprecated"):
        text = f"Deprecated. {text}"
    if len(text) > _MAX_LONG:
        losses.changed(node.get("description").place, "text", "description", f"cut to {_MAX_LONG} characters")
    for field in ("summary", "description"):
        if isinstance(node.object.get(field), str) and not plain(node.object[field]):
            losses.dropped(node.get(field).place, "text", field, "holds no text")
    return {
        "title": trimmed(summary, _MAX_TITLE) or None,
        "description": trimmed(text),
        "long_description": trimmed(text, _MAX_LONG) if trimmed(text) != text else None,
        "usage": _usage(paging) if paging else None,
    }


def _tags(operation: Operation) -> tuple[str, ...]:
    """The group first, then what else the document calls it."""
    group = group_of(operation)
    for entry in operation.node.get("tags").entries():
        if not isinstance(entry.value, str) or not slug(entry.value):
            operation.losses.dropped(entry.place, "invalid", "tag", "is no text")
    return tuple(dict.fromkeys((group, *(name for tag in operation.tags if (name := slug(tag))))))


def _usage(paging: Paging) -> str:
    text = "Returns all pages as one list"
    text += f"; give {paging.start_argument} only to read a single page from there." if paging.start_argument else "."
    if paging.limit_argument:
        text += f" With {paging.limit_argument}, it stops after so many items."
    return text


def _behaviour(operation: Operation, override: ToolOverride) -> JsonObject:
    """What the method promises. Whatever may be repeated is retried after a passing fault."""
    keyed = takes_key(operation)
    side_effects = override.side_effects or ("reads" if operation.method in _READING else "writes")
    idempotent = operation.method in _IDEMPOTENT if override.idempotent is None else override.idempotent
    behaviour: JsonObject = {
        "side_effects": side_effects,
        "idempotent": idempotent,
        "idempotency_key": f"header:{KEY_HEADER}" if keyed else None,
    }
    if side_effects == "writes" and not idempotent and not keyed:
        return behaviour
    return {**behaviour, "retry": _RETRIES, "error_handling": _TRANSIENT}


def _implementation(
    operation: Operation, arguments: Arguments, paging: Paging | None, source: Source
) -> HttpImplementation:
    base = source.server
    own = operation_server(operation, base, source.document, given=source.base_given)
    foreign = own is not None and origin_of(own) != origin_of(base.address)
    if foreign:
        why = f"called at {own} without credentials, which only {base.address} gets"
        operation.losses.changed(operation.servers[0].place, "server", "server", why)
    security = source.security.of(operation)
    if security is not None:
        operation.kept.append("security " + (" or ".join(" and ".join(one) or "none" for one in security) or "none"))
    return HttpImplementation(
        method=operation.method,
        url=(own or base.url) + operation.path,
        parameters=arguments.parameters,
        body=arguments.body,
        provider=None if foreign else source.provider.name,
        security=None if foreign else security,
        token_arguments=arguments.tokens,
        paging=paging,
    )
