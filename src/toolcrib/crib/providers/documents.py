"""OpenAPI documents into a crib: fetched if need be, imported in a thread, under names that are free or its own."""

from collections.abc import Collection, Mapping
from functools import partial

from toolcrib.contracts import HttpImplementation, InvalidInput, Json, ProviderAuth, ProviderDefinition, ToolRevision
from toolcrib.core.providers import ImportedApi
from toolcrib.crib.providers.names import under_free_names
from toolcrib.infrastructure.net import HttpSession
from toolcrib.kinds.http.openapi import ToolOverride, fetch_documents, import_openapi


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
    provider: ProviderDefinition | None,
    tools: Collection[ToolRevision],
) -> ImportedApi:
    """Import a document, or the one at an http(s) URL with those that it refers to.

    Args:
        session: Fetches what is at a URL.
        document: Text, what it parses to, or a URL.
        name: The provider's name.
        base_url: Address of the API, instead of the document's servers.
        auth: Authentication, instead of the document's.
        overrides: Corrections by operationId.
        documents: What it refers to, by URI, if it is not fetched.
        origins: Where else than at its own origin a fetched document may refer to.
        provider: The provider of this name, if there is one.
        tools: All tools of the realm.

    Raises:
        InvalidInput: The URL answers with something else than success.
        InvalidDefinition: It is no OpenAPI document that can be read.
        Conflict: A tool would take the name of one that is not the provider's, even with the provider's name in front.
    """
    uri = document if isinstance(document, str) and document.startswith(("http://", "https://")) else ""
    if uri:
        fetched = await fetch_documents(uri, lambda url: _get(session, url), origins=origins)
        documents = {**fetched, **(documents or {})}
        document = fetched[uri]
    read = partial(
        import_openapi,
        document,
        name=name,
        base_url=base_url,
        auth=auth,
        overrides=overrides,
        uri=uri,
        documents=documents,
    )
    return await under_free_names(read, name, _names_by_operation(provider, tools), tools)


def _names_by_operation(provider: ProviderDefinition | None, tools: Collection[ToolRevision]) -> dict[str, str]:
    """Names of the tools that an earlier import has made, by `GET /path`.

    Paths that differ in their fragments only are the same here; their tools are named as they were the first time.
    """
    found: dict[str, str] = {}
    several: set[str] = set()
    for tool in tools:
        made = tool.definition.implementation
        if provider is None or not isinstance(made, HttpImplementation) or tool.definition.source != "imported":
            continue
        if made.provider == provider.name and made.url.startswith(provider.base_url):
            operation = f"{made.method} {made.url.removeprefix(provider.base_url)}"
            if operation in found:
                several.add(operation)
            found[operation] = tool.name
    return {operation: name for operation, name in found.items() if operation not in several}


async def _get(session: HttpSession, url: str) -> bytes:
    answer = await session.request("GET", url)
    if answer.status != 200:
        msg = f"there is no OpenAPI document at {url}: it answered with status {answer.status}"
        raise InvalidInput(msg)
    return answer.body
