"""One operation as one tool definition: its arguments, its request, its behaviour."""

from dataclasses import dataclass
from typing import Final

from toolcrib.contracts import (
    CursorPaging,
    ErrorRule,
    HttpImplementation,
    JsonObject,
    ProviderDefinition,
    RetryPolicy,
    ToolDefinition,
)
from toolcrib.providers.openapi.arguments import Arguments, read_arguments
from toolcrib.providers.openapi.document import Document
from toolcrib.providers.openapi.operations import Operation
from toolcrib.providers.openapi.overrides import ToolOverride
from toolcrib.providers.openapi.parameters import KEY_HEADER, takes_key
from toolcrib.providers.openapi.responses import Answers, find_paging, output_schema, read_answers
from toolcrib.providers.openapi.schemas import Schemas
from toolcrib.providers.openapi.servers import operation_base
from toolcrib.providers.openapi.text import plain, trimmed
from toolcrib.providers.openapi.views import members, texts
from toolcrib.providers.origins import origin_of

_RETRIES: Final = RetryPolicy(count=3)
_TRANSIENT: Final = (ErrorRule(when="429", action="retry"), ErrorRule(when="5xx", action="retry"))
"""For operations that may be repeated."""

_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_IDEMPOTENT: Final = _READING | {"PUT", "DELETE"}
"""RFC 9110, section 9.2.2."""
_MAX_TITLE: Final = 100


@dataclass(frozen=True, slots=True)
class Source:
    """What the tools of one document share."""

    document: Document
    provider: ProviderDefinition
    requests: Schemas
    responses: Schemas
    base_given: bool
    """Whether the caller's base address replaces the document's servers."""


def make_tool(operation: Operation, name: str, override: ToolOverride, source: Source) -> ToolDefinition:
    """The tool of an operation, as the override wants it.

    Raises:
        UnreadableBody: It needs a body of a type that is not read.
    """
    arguments = read_arguments(operation, source.document, source.requests, source.provider.auth)
    answers = read_answers(operation, source.document)
    paging = _paging(arguments, answers, override, source)
    if paging is not None:
        arguments = arguments.paged(paging, source.requests)
    _note_callbacks(operation)
    fields: JsonObject = {
        "name": name,
        **_prose(operation, paging),
        "category": source.provider.name,
        "tags": texts(operation.source.get("tags")),
        "source": "imported",
        "input_schema": source.requests.bundle(arguments.schema(), operation.losses),
        "output_schema": output_schema(answers, operation, source.responses),
        "implementation": _implementation(operation, arguments, paging, source),
        **_behaviour(operation, override),
    }
    return ToolDefinition(**(fields | override.fields()))


def _paging(arguments: Arguments, answers: Answers, override: ToolOverride, source: Source) -> CursorPaging | None:
    if "paging" in override.model_fields_set:
        return override.paging
    return find_paging(answers, source.document, arguments, source.requests)


def _prose(operation: Operation, paging: CursorPaging | None) -> JsonObject:
    summary, description = plain(operation.source.get("summary")), plain(operation.source.get("description"))
    text = description if description.startswith(summary) else f"{summary.rstrip('.')}. {description}".strip()
    if operation.source.get("deprecated") is True:
        text = f"Deprecated. {text}"
    return {
        "title": trimmed(summary, _MAX_TITLE) or None,
        "description": trimmed(text),
        "long_description": text if trimmed(text) != text else None,
        "usage": _usage(paging) if paging else None,
    }


def _usage(paging: CursorPaging) -> str:
    text = f"Returns all pages as one list; give {paging.cursor_in} only to read a single page from there."
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
    operation: Operation, arguments: Arguments, paging: CursorPaging | None, source: Source
) -> HttpImplementation:
    base = source.provider.base_url
    own = operation_base(operation, base, given=source.base_given)
    foreign = own is not None and origin_of(own) != origin_of(base)
    if foreign:
        operation.losses.note("servers", f"called at {own} without credentials, which only {base} gets")
    return HttpImplementation(
        method=operation.method,
        url=(own or base) + operation.path,
        parameters=arguments.parameters,
        body=arguments.body,
        provider=None if foreign else source.provider.name,
        paging=paging,
    )


def _note_callbacks(operation: Operation) -> None:
    for name in members(operation.source.get("callbacks")):
        operation.losses.note(f"callback {name}", "left out: a tool receives no requests")
