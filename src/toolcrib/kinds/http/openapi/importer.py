"""An OpenAPI document as a provider and its tools: `import_openapi`, a pure function that may run in any thread.

Whoever calls it has fetched the documents and stores the result. Whatever the tools do not say as the document says it
is in `ImportedApi.report`, operation by operation; an operation that cannot be a tool is left out and the others go on.

The document as a whole: the fields above its operations, and the components that no tool is made of.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final, cast

from pydantic import ValidationError

from toolcrib.contracts import (
    NAME_PATTERN,
    InvalidDefinition,
    Json,
    JsonObject,
    LossReport,
    OperationImport,
    ProviderAuth,
    ProviderDefinition,
    ToolDefinition,
    content_hash,
)
from toolcrib.core.providers.imports import ImportedApi, Losses, plain
from toolcrib.kinds.http.checks import check_http
from toolcrib.kinds.http.openapi.arguments import tool_names
from toolcrib.kinds.http.openapi.operations.operations import read_operations
from toolcrib.kinds.http.openapi.operations.parts import ApiOperation
from toolcrib.kinds.http.openapi.operations.security import Security, given_security, read_security, repeated_tokens
from toolcrib.kinds.http.openapi.operations.servers import ServerAddress, document_server
from toolcrib.kinds.http.openapi.read.fields import COMPONENTS, DOCUMENT, INFO, account
from toolcrib.kinds.http.openapi.read.library import Document, read_document
from toolcrib.kinds.http.openapi.read.nodes import Bounds
from toolcrib.kinds.http.openapi.schemas.schemas import SchemaConverter
from toolcrib.kinds.http.openapi.tools import DocumentContext, ToolOverride, make_tool, read_groups
from toolcrib.kinds.http.shape import HttpImplementation

_CONTAINERS: Final = ("schemas", "parameters", "responses", "requestBodies", "headers", "pathItems", "mediaTypes")
_LEGACY_CONTAINERS: Final = ("definitions", "parameters", "responses")


def account_document(document: Document, losses: Losses) -> None:
    """Report what the document says beside its operations and no tool can say."""
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
        losses.add_dropped("/paths", "operation", "paths", "there is none: no tool comes of this document")


def account_components(document: Document, losses: Losses) -> None:
    """Report the shared parts that nothing has asked for, once all tools are made."""
    root, reached = document.root, _with_ancestors(document.library.reached)
    legacy = [root.get(name) for name in _LEGACY_CONTAINERS] if document.dialect == "2.0" else []
    for container in (*(root.get("components").get(name) for name in _CONTAINERS), *legacy):
        for name, member in container.members():
            if member.place not in reached:
                losses.add_dropped(member.place, "unused", f"component {name}", "no tool is made of it")


def _with_ancestors(places: Iterable[str]) -> set[str]:
    """Places, and those that they stand inside of."""
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
        InvalidDefinition: The name is none; it is no OpenAPI document, or exceeds a bound; or an override or selection
            names no operation or makes two tools of one name.
    """
    _check_name(name)
    losses = Losses()
    api = read_document(document, losses, uri=uri, documents=documents, bounds=bounds)
    account_document(api, losses)
    named = _select(_name_operations(api, names, losses), include, overrides)
    operations = [entry.operation for entry in named]
    server = document_server(api, base_url, losses)
    if auth is None:
        security = read_security(api, operations, name, server.address, losses)
    else:
        security = given_security(api, auth, losses)
    provider = _provider(name, api, server, security)
    requests, responses = SchemaConverter(api, "request"), SchemaConverter(api, "response")
    tokens = repeated_tokens(operations, security)
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


def _check_name(name: str) -> None:
    if not re.fullmatch(NAME_PATTERN, name):
        msg = f"{name[:200]!r} is no name of a provider: use 1 to 128 letters, digits and _ . -, the first a letter"
        raise InvalidDefinition(msg)


def _name_operations(document: Document, known: Mapping[str, str], losses: Losses) -> list[_Named]:
    operations = list(read_operations(document, losses))
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
