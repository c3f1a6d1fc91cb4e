"""An OpenAPI document as a provider and its tools: `import_openapi`, a pure function.

Whoever calls it has fetched the document and stores the result. It reads OpenAPI 3.0 and 3.1 with JSON bodies and
cursor paging. What it cannot keep is in `ImportedApi.losses`, operation by operation; an operation that could not work
is left out rather than half made.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final

from toolcrib.contracts import (
    InvalidDefinition,
    Json,
    JsonObject,
    ProviderAuth,
    ProviderDefinition,
    ToolDefinition,
    content_hash,
)
from toolcrib.providers.openapi.bodies import UnreadableBody
from toolcrib.providers.openapi.document import Document, read_document
from toolcrib.providers.openapi.losses import Loss, Losses
from toolcrib.providers.openapi.names import tool_names
from toolcrib.providers.openapi.operations import Operation, read_operations
from toolcrib.providers.openapi.overrides import ToolOverride
from toolcrib.providers.openapi.schemas import Schemas
from toolcrib.providers.openapi.security import choose_auth
from toolcrib.providers.openapi.servers import document_base
from toolcrib.providers.openapi.text import plain
from toolcrib.providers.openapi.tools import Source, make_tool

_NO_OVERRIDES: Final[Mapping[str, ToolOverride]] = MappingProxyType({})
_UNCHANGED: Final = ToolOverride()


@dataclass(frozen=True, slots=True)
class ImportedApi:
    """What a document became."""

    provider: ProviderDefinition
    tools: tuple[ToolDefinition, ...]
    """In the document's order; names are unique."""
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class _Named:
    operation: Operation
    name: str

    def aliases(self) -> frozenset[str]:
        """What an override or a selection may call it."""
        return frozenset(filter(None, (self.name, self.operation.key, self.operation.operation_id)))


def import_openapi(
    document: bytes | str | Mapping[str, Json],
    *,
    name: str,
    base_url: str | None = None,
    auth: ProviderAuth | None = None,
    overrides: Mapping[str, ToolOverride] = _NO_OVERRIDES,
    include: Collection[str] | None = None,
) -> ImportedApi:
    """Make a provider and one tool per operation.

    Args:
        document: JSON or YAML text, or what it parses to.
        name: Name of the provider.
        base_url: Address of the API, instead of the document's servers.
        auth: Authentication, instead of the document's security schemes.
        overrides: Corrections by operationId, by `GET /path` or by the tool's name as derived.
        include: The operations to import, named in the same ways; null for all.

    Returns:
        Definitions that are not stored anywhere yet, and everything that was lost.

    Raises:
        InvalidDefinition: The document cannot be read, has no absolute address, or an override or selection names no
            operation or makes two tools of one name.
    """
    api = read_document(document)
    named = _select(_named(api), include, overrides)
    losses = Losses()
    operations = [entry.operation for entry in named]
    provider = ProviderDefinition(
        name=name,
        title=_title(api),
        base_url=document_base(api, base_url, losses),
        auth=choose_auth(api, operations, name, losses) if auth is None else auth,
        metadata=_metadata(api),
    )
    if api.root.get("webhooks"):
        losses.note("webhooks", "left out: a tool receives no requests")
    source = Source(api, provider, Schemas(api, "request"), Schemas(api, "response"), base_url is not None)
    tools = [tool for entry in named if (tool := _tool(entry, overrides, source)) is not None]
    _check_names(tools)
    found = [losses, *(operation.losses for operation in operations)]
    return ImportedApi(provider, tuple(tools), tuple(loss for part in found for loss in part.report()))


def _named(document: Document) -> list[_Named]:
    operations = list(read_operations(document))
    return [_Named(operation, name) for operation, name in zip(operations, tool_names(operations), strict=True)]


def _select(
    named: Sequence[_Named], include: Collection[str] | None, overrides: Mapping[str, ToolOverride]
) -> list[_Named]:
    known = frozenset(key for entry in named for key in entry.aliases())
    for key in [*(include or ()), *overrides]:
        if key not in known:
            close = get_close_matches(key, sorted(known), n=3)
            hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "use an operationId or 'GET /path'"
            raise InvalidDefinition(f"the document has no operation {key!r}; {hint}")
    return [entry for entry in named if include is None or not entry.aliases().isdisjoint(include)]


def _tool(entry: _Named, overrides: Mapping[str, ToolOverride], source: Source) -> ToolDefinition | None:
    override = next((overrides[key] for key in overrides if key in entry.aliases()), _UNCHANGED)
    if entry.operation.method == "TRACE":
        entry.operation.losses.note("operation", "left out: TRACE is not sent")
        return None
    try:
        return make_tool(entry.operation, entry.name, override, source)
    except UnreadableBody as error:
        entry.operation.losses.note("operation", f"left out: {error}")
        return None


def _check_names(tools: Sequence[ToolDefinition]) -> None:
    seen: set[str] = set()
    for tool in tools:
        if tool.name in seen:
            raise InvalidDefinition(f"two tools would be named {tool.name!r}; give one of them another name")
        seen.add(tool.name)


def _title(document: Document) -> str | None:
    return plain((document.resolve(document.root.get("info")) or {}).get("title")) or None


def _metadata(document: Document) -> JsonObject:
    info = document.resolve(document.root.get("info")) or {}
    return {
        "openapi": str(document.root["openapi"]),
        "document_version": str(info.get("version", "")),
        "document_hash": content_hash(document.root),
    }
