"""Import of OpenAPI documents: from a URL, from a file, or from parsed content."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from pydantic import Field

from toolcrib.contracts import (
    HttpConnection,
    InvalidDefinition,
    InvalidInput,
    Json,
    ProviderAuth,
    ProviderDefinition,
    ToolRevision,
)
from toolcrib.core.kinds import ConnectionKind, ImportContext, Importer, ImportSource
from toolcrib.kinds.http.shape import HOW_TO_RAISE, Bounds, HttpImplementation, ToolOverride

if TYPE_CHECKING:
    from toolcrib.core.providers import ImportedApi
    from toolcrib.core.providers.probes import Probe
    from toolcrib.infrastructure.net import HttpSession

_WEB = ("http://", "https://")


class OpenApiSource(ImportSource):
    """An OpenAPI document. Each operation becomes a tool."""

    document: bytes | str | dict[str, Json]
    """JSON or YAML text, what it parses to, or an http(s) URL to fetch it from."""
    base_url: str | None = None
    """Address of the API, instead of the document's servers."""
    auth: ProviderAuth | None = None
    """Authentication, instead of the document's."""
    overrides: dict[str, ToolOverride] = Field(default_factory=dict)
    """Corrections by operationId."""
    documents: dict[str, Json] | None = None
    """What it refers to, by URI, if it is not fetched."""
    origins: tuple[str, ...] = ()
    """Where else than at its own origin a fetched document may refer to."""
    bounds: Bounds = Bounds.model_construct()
    """How large the document may be."""

    @property
    def is_repeatable(self) -> bool:
        """Whether it is fetched, with whatever it refers to."""
        return isinstance(self.document, str) and self.document.startswith(_WEB) and self.documents is None

    @property
    def references(self) -> tuple[str, ...]:
        """Those of its authentication."""
        from toolcrib.core.registry import references_of

        return () if self.auth is None else references_of(self.auth)


async def import_document(source: OpenApiSource, context: ImportContext) -> "ImportedApi":
    """Import a document, or the one at an http(s) URL with those that it refers to.

    Args:
        source: The document.
        context: The context of the import.

    Raises:
        InvalidInput: The URL answers with something else than success.
        InvalidDefinition: It is not an OpenAPI document that can be read.
        Conflict: A tool would take the name of one that is not the provider's, even with the provider's name in front.
    """
    from functools import partial

    from toolcrib.core.providers.import_names import under_free_names
    from toolcrib.kinds.http.openapi import fetch_documents, import_openapi

    document, documents = source.document, source.documents
    uri = document if isinstance(document, str) and document.startswith(_WEB) else ""
    if uri:
        fetch = partial(_get, context.session, source.bounds)
        fetched = await fetch_documents(uri, fetch, origins=source.origins, bounds=source.bounds)
        documents = {**fetched, **(documents or {})}
        document = fetched[uri]
    read = partial(
        import_openapi,
        document,
        name=source.name,
        base_url=source.base_url,
        auth=source.auth,
        overrides=source.overrides,
        uri=uri,
        documents=documents,
        bounds=source.bounds,
    )
    return await under_free_names(
        read, source.name, _names_by_operation(context.provider, context.tools), context.tools
    )


def _names_by_operation(provider: ProviderDefinition | None, tools: Collection[ToolRevision]) -> dict[str, str]:
    """Names of the tools that an earlier import has made, by `GET /path`.

    Earlier releases did not store what paths have after `#`; tools of one method and URL are then named as they were
    the first time.
    """
    found: dict[str, str] = {}
    several: set[str] = set()
    for tool in tools:
        made = tool.definition.implementation
        if provider is None or not isinstance(made, HttpImplementation) or tool.definition.source != "imported":
            continue
        if made.provider == provider.name and made.url.startswith(provider.base_url):
            operation = made.document_operation or f"{made.method} {made.url.removeprefix(provider.base_url)}"
            if operation in found:
                several.add(operation)
            found[operation] = tool.name
    return {operation: name for operation, name in found.items() if operation not in several}


async def _get(session: "HttpSession", bounds: Bounds, url: str) -> bytes:
    from toolcrib.infrastructure.net import TooLarge

    try:
        answer = await session.request("GET", url, max_bytes=bounds.max_bytes, above_policy=True)
    except TooLarge:
        found = f"the OpenAPI document at {url} has more than {bounds.max_bytes} bytes"
        raise InvalidDefinition(f"{found}; raise the bound max_bytes of the import ({HOW_TO_RAISE})") from None
    if answer.status != 200:
        msg = f"there is no OpenAPI document at {url}: it answered with status {answer.status}"
        raise InvalidInput(msg)
    return answer.body


def _open_probe(context: ImportContext) -> "Probe":
    from toolcrib.core.providers.probes import HttpProbe

    return HttpProbe(context.session, context.access)


IMPORTERS = (Importer(OpenApiSource, import_document),)
CONNECTION = ConnectionKind(HttpConnection, _open_probe)
