"""OpenAPI documents into a crib: fetched if need be, imported in a thread, under names that are free or its own.

A provider's tools keep the names of an earlier import, and never take the place of a tool that is not the provider's.
"""

import asyncio
import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Final

from toolcrib.contracts import (
    Conflict,
    HttpImplementation,
    InvalidInput,
    Json,
    ProviderAuth,
    ProviderDefinition,
    ToolRevision,
    digest,
)
from toolcrib.net import HttpSession
from toolcrib.providers import ImportedApi, ToolOverride, fetch_documents, import_openapi

_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST: Final = 64
"""Of a tool's name that every model provider takes."""


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
    return await _under_free_names(read, name, provider, tools)


async def _under_free_names(
    read: Callable[..., ImportedApi], name: str, provider: ProviderDefinition | None, tools: Collection[ToolRevision]
) -> ImportedApi:
    """The import, in which no tool has the name of one that is not the provider's.

    It runs in a thread: a large document takes seconds, in which other runs go on.
    """
    names = _names_by_operation(provider, tools)
    taken = {tool.name for tool in tools if not _is_of(name, tool)}
    imported = await asyncio.to_thread(read, names=names)
    longer = {operation: _with_provider(name, tool) for operation, tool in _clashes(imported, taken).items()}
    if longer:
        imported = await asyncio.to_thread(read, names={**names, **longer})
    for operation, tool in _clashes(imported, taken).items():
        msg = f"{operation} of provider {name!r} would replace the tool {tool!r}, which is not the provider's"
        raise Conflict(f"{msg}; import it under another provider's name, or give it another name by an override")
    return imported


def _names_by_operation(provider: ProviderDefinition | None, tools: Collection[ToolRevision]) -> dict[str, str]:
    """Names of the tools that an earlier import has made, by `GET /path`."""
    found: dict[str, str] = {}
    for tool in tools:
        made = tool.definition.implementation
        if provider is None or not isinstance(made, HttpImplementation) or tool.definition.source != "imported":
            continue
        if made.provider == provider.name and made.url.startswith(provider.base_url):
            found[f"{made.method} {made.url.removeprefix(provider.base_url)}"] = tool.name
    return found


def _is_of(provider: str, tool: ToolRevision) -> bool:
    made = tool.definition.implementation
    return isinstance(made, HttpImplementation) and made.provider == provider


def _clashes(imported: ImportedApi, taken: Collection[str]) -> dict[str, str]:
    """Names of tools, by `GET /path`, that others have already."""
    found = {entry.operation: entry.tool for entry in imported.report.operations if entry.tool is not None}
    return {operation: tool for operation, tool in found.items() if tool in taken}


def _with_provider(provider: str, tool: str) -> str:
    name = f"{_ILLEGAL.sub('_', provider)}_{tool}"
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 9].rstrip('_-')}_{digest(name.encode())[:8]}"


async def _get(session: HttpSession, url: str) -> bytes:
    answer = await session.request("GET", url)
    if answer.status != 200:
        msg = f"there is no OpenAPI document at {url}: it answered with status {answer.status}"
        raise InvalidInput(msg)
    return answer.body
