"""One operation as one tool definition: its arguments, its request, its behaviour.

What the author of an import says better than the document: a search that is a POST, a limit, a name.

Groups of operations that a model can search: by tag, else by the first telling segment of the path.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from toolcrib.contracts import (
    ErrorRule,
    JsonObject,
    ProviderDefinition,
    RetryPolicy,
    ToolDefinition,
)
from toolcrib.core.providers.imports import MAX_GROUP_DESCRIPTION, Group, Losses, cut_text, plain, slug
from toolcrib.infrastructure.net.origins import origin_of
from toolcrib.kinds.http.openapi.arguments import KEY_HEADER, Arguments, read_arguments, takes_key
from toolcrib.kinds.http.openapi.operations.parts import ApiOperation
from toolcrib.kinds.http.openapi.operations.security import Security, authenticates
from toolcrib.kinds.http.openapi.operations.servers import ServerAddress, operation_server
from toolcrib.kinds.http.openapi.paging import find_paging
from toolcrib.kinds.http.openapi.read.fields import TAG, account
from toolcrib.kinds.http.openapi.read.library import Document
from toolcrib.kinds.http.openapi.responses import Answers, output_schema, read_answers
from toolcrib.kinds.http.openapi.schemas.schemas import SchemaConverter
from toolcrib.kinds.http.shape import HttpImplementation, Paging, ToolOverride

_ELSEWHERE: Final = "other"
_NOT_TELLING: Final = re.compile(r"(v?[0-9]+([._-][0-9a-z]+)*|api|apis|rest|\{.*\}|)", re.IGNORECASE)


def group_of(operation: ApiOperation) -> str:
    """The name of an operation's group."""
    for tag in operation.tags:
        if name := slug(tag):
            return name
    for segment in operation.path.partition("?")[0].split("/"):
        if not _NOT_TELLING.fullmatch(segment) and (name := slug(segment)):
            return name
    return _ELSEWHERE


def read_groups(document: Document, names: Sequence[str], losses: Losses) -> tuple[Group, ...]:
    """The groups of some tools in the order of their first tool, each with what the document says about its tag.

    Args:
        document: Its Tag Objects describe groups.
        names: The group of each tool.
        losses: Takes the tags that are not used.
    """
    sizes = Counter(names)
    described: dict[str, str] = {}
    for node in document.root.get("tags").entries():
        account(node, TAG, losses)
        name = slug(node.text("name"))
        if name not in sizes:
            losses.add_dropped(node.place, "unused", f"tag {node.text('name')[:100]}", "no operation is grouped by it")
            continue
        text = plain(node.text("description"))
        if len(text) > MAX_GROUP_DESCRIPTION:
            place = node.get("description").place
            losses.add_changed(place, "text", "description of a tag", f"cut to {MAX_GROUP_DESCRIPTION} characters")
        described.setdefault(name, cut_text(text, MAX_GROUP_DESCRIPTION))
    return tuple(Group(name, size, described.get(name, "")) for name, size in sizes.items())


_RETRIES: Final = RetryPolicy(count=3)
_TRANSIENT: Final = (ErrorRule(when="429", action="retry"), ErrorRule(when="5xx", action="retry"))
"""For operations that may be repeated."""

_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_IDEMPOTENT: Final = _READING | {"PUT", "DELETE"}
"""RFC 9110, section 9.2.2."""
_MAX_TITLE: Final = 100
_MAX_LONG: Final = 20_000


@dataclass(frozen=True, slots=True)
class DocumentContext:
    """What the tools of one document share."""

    document: Document
    provider: ProviderDefinition
    server: ServerAddress
    security: Security
    requests: SchemaConverter
    responses: SchemaConverter
    tokens: frozenset[str]
    """Names of parameters that repeat the bearer token."""
    base_given: bool
    """Whether the caller's base address replaces the document's servers."""


def make_tool(operation: ApiOperation, name: str, override: ToolOverride, source: DocumentContext) -> ToolDefinition:
    """The tool of an operation, as the override wants it."""
    library = source.document.library
    tokens = source.tokens if authenticates(operation) else frozenset[str]()
    arguments = read_arguments(operation, library, source.requests, source.security.credentials(), tokens)
    answers = read_answers(operation)
    paging = _paging(operation, arguments, answers, override, source)
    if paging is not None:
        arguments = arguments.with_paging(paging, source.requests, operation.losses)
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
    operation: ApiOperation, arguments: Arguments, answers: Answers, override: ToolOverride, source: DocumentContext
) -> Paging | None:
    if "paging" in override.model_fields_set:
        return override.paging
    return find_paging(operation, answers, source.document.library, arguments, source.requests)


def _prose(operation: ApiOperation, paging: Paging | None) -> JsonObject:
    node, losses = operation.node, operation.losses
    summary, description = plain(node.object.get("summary")), plain(node.object.get("description"))
    text = description if description.startswith(summary) else f"{summary.rstrip('.')}. {description}".strip()
    if not text:
        text = f"{operation.method} {operation.path}"
    if node.flag("deprecated"):
        text = f"Deprecated. {text}"
    if len(text) > _MAX_LONG:
        losses.add_changed(node.get("description").place, "text", "description", f"cut to {_MAX_LONG} characters")
    for field in ("summary", "description"):
        if isinstance(node.object.get(field), str) and not plain(node.object[field]):
            losses.add_dropped(node.get(field).place, "text", field, "holds no text")
    return {
        "title": cut_text(summary, _MAX_TITLE) or None,
        "description": cut_text(text),
        "long_description": cut_text(text, _MAX_LONG) if cut_text(text) != text else None,
        "usage": _usage(paging) if paging else None,
    }


def _tags(operation: ApiOperation) -> tuple[str, ...]:
    """The group first, then what else the document calls it."""
    group = group_of(operation)
    for entry in operation.node.get("tags").entries():
        if not isinstance(entry.value, str) or not slug(entry.value):
            operation.losses.add_dropped(entry.place, "invalid", "tag", "is no text")
    return tuple(dict.fromkeys((group, *(name for tag in operation.tags if (name := slug(tag))))))


def _usage(paging: Paging) -> str:
    text = "Returns all pages as one list"
    text += f"; give {paging.start_argument} only to read a single page from there." if paging.start_argument else "."
    if paging.limit_argument:
        text += f" With {paging.limit_argument}, it stops after so many items."
    return text


def _behaviour(operation: ApiOperation, override: ToolOverride) -> JsonObject:
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
    operation: ApiOperation, arguments: Arguments, paging: Paging | None, source: DocumentContext
) -> HttpImplementation:
    base = source.server
    own = operation_server(operation, base, source.document, given=source.base_given)
    foreign = own is not None and origin_of(own) != origin_of(base.address)
    if foreign:
        why = f"called at {own} without credentials, which only {base.address} gets"
        operation.losses.add_changed(operation.servers[0].place, "server", "server", why)
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
