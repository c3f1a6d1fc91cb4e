"""OpenAPI documents into a crib: fetched if need be, imported in a thread, under the names of an earlier import."""

import asyncio
from collections.abc import Collection, Mapping

from toolcrib.contracts import (
    HttpImplementation,
    InvalidInput,
    Json,
    ProviderAuth,
    ProviderDefinition,
    ToolRevision,
)
from toolcrib.net import HttpSession
from toolcrib.providers import ImportedApi, ToolOverride, fetch_documents, import_openapi


async def import_document(
    session: HttpSession,
    document: bytes | str | Mapping[str, Json],
    *,
    name: str,
    base_url: str | None,
    auth: ProviderAuth | None,
    overrides: Mapping[str, ToolOverride],
    documents: Mapping[str, Json] | None,
    origins: Collection[str],
    names: Mapping[str, str],
) -> ImportedApi:
    """Import a document, or the one at an http(s) URL with those that it refers to."""
    uri = ""
    if isinstance(document, str) and document.startswith(("http://", "https://")):
        uri = document
        fetched = await fetch_documents(uri, lambda url: _get(session, url), origins=origins)
        documents = {**fetched, **(documents or {})}
        document = fetched[uri]
    # A large document takes seconds, in which other runs go on.
    return await asyncio.to_thread(
        import_openapi,
        document,
        name=name,
        base_url=base_url,
        auth=auth,
        overrides=overrides,
        names=names,
        uri=uri,
        documents=documents,
    )


def names_by_operation(provider: ProviderDefinition | None, tools: Collection[ToolRevision]) -> dict[str, str]:
    """Names of the tools that an earlier import has made, by `GET /path`."""
    found: dict[str, str] = {}
    for tool in tools:
        made = tool.definition.implementation
        if provider is None or not isinstance(made, HttpImplementation) or tool.definition.source != "imported":
            continue
        if made.provider == provider.name and made.url.startswith(provider.base_url):
            found[f"{made.method} {made.url.removeprefix(provider.base_url)}"] = tool.name
    return found


async def _get(session: HttpSession, url: str) -> bytes:
    answer = await session.request("GET", url)
    if answer.status != 200:
        msg = f"there is no OpenAPI document at {url}: it answered with status {answer.status}"
        raise InvalidInput(msg)
    return answer.body
