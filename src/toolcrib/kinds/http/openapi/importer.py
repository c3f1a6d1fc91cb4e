"""An OpenAPI document as a provider and its tools: `import_openapi`, a pure function, safe to call in any thread.

The caller fetches the documents and stores the result. `ImportedApi.report` lists, by operation, all differences
between the tools and the document, and the document's unused fields and components. An operation that cannot become a
tool is left out; the others are imported.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final, cast

from pydantic import ValidationError

from toolcrib.contracts import (
    ErrorRule,
    InvalidDefinition,
    Json,
    JsonObject,
    LossReport,
    OperationImport,
    ProviderAuth,
    ProviderDefinition,
    RetryPolicy,
    ToolDefinition,
    content_hash,
)
from toolcrib.core.providers.imports import (
    MAX_GROUP_DESCRIPTION,
    Group,
    ImportedApi,
    Losses,
    cut_text,
    plain,
    slug,
    tell_large_input,
)
from toolcrib.core.registry import check_provider_name
from toolcrib.infrastructure.net.origins import origin_of
from toolcrib.kinds.http.checks import check_http
from toolcrib.kinds.http.openapi.arguments import KEY_HEADER, Arguments, read_arguments, takes_key, tool_names
from toolcrib.kinds.http.openapi.operations.operations import read_operations
from toolcrib.kinds.http.openapi.operations.parts import ApiOperation
from toolcrib.kinds.http.openapi.operations.security import (
    Security,
    authenticates,
    given_security,
    read_security,
    repeated_tokens,
    with_credentials,
)
from toolcrib.kinds.http.openapi.operations.servers import ServerAddress, document_server, operation_server
from toolcrib.kinds.http.openapi.paging import find_paging
from toolcrib.kinds.http.openapi.read.documents import Document, read_document
from toolcrib.kinds.http.openapi.read.fields import COMPONENTS, DOCUMENT, INFO, TAG, account
from toolcrib.kinds.http.openapi.responses import Answers, output_schema, read_answers
from toolcrib.kinds.http.openapi.schemas.schemas import SchemaConverter
from toolcrib.kinds.http.shape import Bounds, HttpImplementation, Paging, ToolOverride

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
    """The tool of an operation, with the override applied."""
    library = source.document.library
    tokens = source.tokens if authenticates(operation) else frozenset[str]()
    arguments = read_arguments(operation, library, source.requests, source.security, tokens)
    answers = read_answers(operation)
    paging = _paging(operation, arguments, answers, override, source)
    if paging is not None:
        arguments = arguments.with_paging(paging, source.requests, operation.losses)
        operation.kept.append(f"paging {paging.kind}")
    place = operation.node.place
    schema = source.requests.bundle(arguments.schema(), place, operation.losses)
    tell_large_input(name, schema, place, operation.losses)
    fields: JsonObject = {
        "name": name,
        **_prose(operation, paging),
        "category": source.provider.name,
        "tags": _tags(operation),
        "source": "imported",
        "input_schema": schema,
        "output_schema": output_schema(answers, operation, source.responses),
        "implementation": _implementation(operation, arguments, paging, source, override),
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
    operation: ApiOperation,
    arguments: Arguments,
    paging: Paging | None,
    source: DocumentContext,
    override: ToolOverride,
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
        url=(own or base.url) + operation.url,
        document_operation=operation.key if operation.fragment else None,
        headers=operation.headers | override.headers,
        parameters=arguments.parameters,
        body=arguments.body,
        provider=None if foreign else source.provider.name,
        security=None if foreign else security,
        token_arguments=arguments.tokens,
        paging=paging,
    )


_CONTAINERS: Final = ("schemas", "parameters", "responses", "requestBodies", "headers", "pathItems", "mediaTypes")
_LEGACY_CONTAINERS: Final = ("definitions", "parameters", "responses")


def account_document(document: Document, losses: Losses) -> None:
    """Report fields of the document outside of its operations that no tool can keep."""
    root = document.root
    account(root, DOCUMENT, losses)
    account(root.get("info"), INFO, losses)
    if root.get("info").has("description"):
        losses.add_dropped("/info/description", "annotation", "description", "no tool says it")
    for key in ("consumes", "produces"):
        for entry in root.get(key).entries():
            losses.add_changed(entry.place, "annotation", key, "holds for the operations that do not say it themselves")
    account(root.get("components"), COMPONENTS, losses)
    if not root.get("paths").object:
        losses.add_dropped("/paths", "operation", "paths", "missing: the document has no tools")


def account_components(document: Document, losses: Losses) -> None:
    """Report the unused components, once all tools are made."""
    root, reached = document.root, _with_ancestors(document.library.reached)
    legacy = [root.get(name) for name in _LEGACY_CONTAINERS] if document.dialect == "2.0" else []
    for container in (*(root.get("components").get(name) for name in _CONTAINERS), *legacy):
        for name, member in container.members():
            if member.place not in reached:
                losses.add_dropped(member.place, "unused", f"component {name}", "no tool is made of it")


def _with_ancestors(places: Iterable[str]) -> set[str]:
    """Places and their ancestors."""
    found: set[str] = set()
    for place in places:
        inside = place
        while inside and inside not in found:
            found.add(inside)
            inside = inside.rpartition("/")[0]
    return found


_NO_OVERRIDES: Final[Mapping[str, ToolOverride]] = MappingProxyType({})
_NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})
_UNCHANGED: Final = ToolOverride()


@dataclass(frozen=True, slots=True)
class _Named:
    operation: ApiOperation
    name: str
    derived: str
    """Its name if there had been no earlier import."""

    def aliases(self) -> frozenset[str]:
        """What an override or a selection may call it."""
        return frozenset(filter(None, (self.name, self.derived, self.operation.key, self.operation.operation_id)))


def import_openapi(
    document: bytes | str | Mapping[str, Json],
    *,
    name: str,
    base_url: str | None = None,
    auth: ProviderAuth | None = None,
    overrides: Mapping[str, ToolOverride] = _NO_OVERRIDES,
    include: Collection[str] | None = None,
    names: Mapping[str, str] = _NO_NAMES,
    uri: str = "",
    documents: Mapping[str, Json] | None = None,
    bounds: Bounds | None = None,
) -> ImportedApi:
    """Make a provider and one tool per operation.

    Args:
        document: JSON or YAML text, or what it parses to.
        name: Name of the provider.
        base_url: Address of the API, instead of the document's servers.
        auth: Authentication, instead of the document's security schemes.
        overrides: Corrections by operationId, by `GET /path` or by the tool's name as derived.
        include: The operations to import, named in the same ways; null for all.
        names: Tools' names of an earlier import by `GET /path`, which stay.
        uri: Where the document came from; relative references and servers belong to it.
        documents: What it refers to, by URI: texts, or what they parse to. Nothing is fetched.
        bounds: How large a document may be.

    Returns:
        Definitions that are not stored anywhere yet, and everything that was not kept as it was.

    Raises:
        InvalidDefinition: The name is invalid; it is no OpenAPI document or exceeds a limit; an override or selection
            names no operation or makes two tools of one name.
    """
    check_provider_name(name)
    losses = Losses()
    api = read_document(document, losses, uri=uri, documents=documents, bounds=bounds)
    account_document(api, losses)
    named = _select(_name_operations(api, names, losses, bounds or Bounds()), include, overrides)
    operations = [entry.operation for entry in named]
    server = document_server(api, base_url, losses)
    if auth is None:
        security = read_security(api, operations, name, server.address, losses)
    else:
        security = given_security(api, auth, losses)
    requests, responses = SchemaConverter(api, "request"), SchemaConverter(api, "response")
    tokens = repeated_tokens(operations, security)
    security = with_credentials(security, operations, api.library, provider=name, tokens=tokens, losses=losses)
    provider = _provider(name, api, server, security)
    source = DocumentContext(api, provider, server, security, requests, responses, tokens, base_url is not None)
    made = [(entry, _tool(entry, overrides, source)) for entry in named]
    tools = [tool for _, tool in made if tool is not None]
    _check_names(tools)
    groups = read_groups(api, [tool.tags[0] for tool in tools if tool.tags], losses)
    account_components(api, losses)
    report = _report(api, made, losses)
    metadata = {**_metadata(api), "import": report.summary()}
    return ImportedApi(provider.model_copy(update={"metadata": metadata}), tuple(tools), groups, report)


def _provider(name: str, document: Document, server: ServerAddress, security: Security) -> ProviderDefinition:
    return ProviderDefinition(
        name=name,
        title=plain(document.root.get("info").object.get("title")) or None,
        base_url=server.url,
        variables=server.variables,
        auth=security.auth,
        schemes=security.schemes,
        security=security.needed,
    )


def _name_operations(document: Document, known: Mapping[str, str], losses: Losses, bounds: Bounds) -> list[_Named]:
    operations = list(read_operations(document, losses, bounds.max_operations))
    derived = tool_names(operations, {})
    return list(map(_Named, operations, tool_names(operations, known) if known else derived, derived))


def _select(
    named: Sequence[_Named], include: Collection[str] | None, overrides: Mapping[str, ToolOverride]
) -> list[_Named]:
    if include is None and not overrides:
        return list(named)
    known = frozenset(key for entry in named for key in entry.aliases())
    for key in [*(include or ()), *overrides]:
        if key not in known:
            close = get_close_matches(key, sorted(known), n=3)
            hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "use an operationId or 'GET /path'"
            raise InvalidDefinition(f"the document has no operation {key!r}; {hint}")
    return [entry for entry in named if include is None or not entry.aliases().isdisjoint(include)]


def _tool(entry: _Named, overrides: Mapping[str, ToolOverride], source: DocumentContext) -> ToolDefinition | None:
    operation = entry.operation
    override = next((overrides[key] for key in overrides if key in entry.aliases()), _UNCHANGED)
    if operation.method == "TRACE":
        operation.losses.add_dropped(operation.node.place, "operation", "operation", "left out: TRACE is not sent")
        return None
    try:
        tool = make_tool(operation, entry.name, override, source)
        check_http(tool, cast("HttpImplementation", tool.implementation))
    except ValidationError as error:
        why = error.errors()[0]["msg"]
    except InvalidDefinition as error:
        why = str(error)
    else:
        return tool
    operation.losses.add_dropped(operation.node.place, "operation", "operation", f"left out: {why}"[:300])
    return None


def _check_names(tools: Sequence[ToolDefinition]) -> None:
    seen: set[str] = set()
    for tool in tools:
        if tool.name in seen:
            raise InvalidDefinition(f"two tools would be named {tool.name!r}; give one of them another name")
        seen.add(tool.name)


def _report(document: Document, made: Sequence[tuple[_Named, ToolDefinition | None]], losses: Losses) -> LossReport:
    components = dict(losses.components)
    operations: list[OperationImport] = []
    for entry, tool in made:
        operation = entry.operation
        used = operation.losses.components
        components.update(used)
        operations.append(
            OperationImport(
                operation=operation.key,
                place=operation.node.place,
                tool=None if tool is None else tool.name,
                group=None if tool is None or not tool.tags else tool.tags[0],
                kept=tuple(operation.kept) if tool is not None else (),
                losses=operation.losses.report(),
                components=tuple(used),
            )
        )
    kind = "Swagger" if document.dialect == "2.0" else "OpenAPI"
    return LossReport(
        format=f"{kind} {document.version}",
        losses=losses.report(),
        operations=tuple(operations),
        components={place: found.report() for place, found in components.items()},
    )


def _metadata(document: Document) -> JsonObject:
    return {
        "openapi": document.version,
        "document_version": str(document.root.get("info").object.get("version", "")),
        "document_hash": content_hash(document.root.value),
    }
