"""`McpRuntime` executes calls of MCP tools; `ResultReader` reads their results.

A call is refused if the server no longer offers what was trusted.

Structured content is preferred to text, and text that is a JSON object or list is read as JSON. A single part of a
result is the output; several parts are a list. Images, audio and blobs are stored as blobs, with a description in the
output. Where structured content repeats the bytes of a part, or has bytes in the form of one, it names the attachment.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

import orjson

from toolcrib.contracts import Attachment, ErrorCode, Json, JsonObject, Reason, Unavailable
from toolcrib.contracts.base.media import attachment_of
from toolcrib.core.executor import BlobSink, CallFailed, Dispatch, Outcome, error
from toolcrib.core.providers import ProviderAccess
from toolcrib.core.providers.request_errors import count_request, request_limit_s
from toolcrib.kinds.mcp.importer import ServerListing, differences
from toolcrib.kinds.mcp.runtime.connection import Connection
from toolcrib.kinds.mcp.runtime.failures import MOST_WORDS, SessionGone
from toolcrib.kinds.mcp.runtime.input_requests import answers_of
from toolcrib.kinds.mcp.runtime.servers import McpServers
from toolcrib.kinds.mcp.shape import McpCapability, McpImplementation

_MOST_LEVELS: Final = 100
"""Of structured content in which bytes are looked for."""
_UNKNOWN: Final = "application/octet-stream"
_LINK: Final = ("uri", "name", "title", "description", "mimeType", "size")


@dataclass(slots=True)
class ResultReader:
    """Reads one result."""

    dispatch: Dispatch
    blob_sink: BlobSink
    attachments: list[Attachment] = field(default_factory=list[Attachment])
    warnings: list[str] = field(default_factory=list[str])
    _kept: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Descriptions by the base64 text of the bytes."""

    async def outcome(self, capability: McpCapability, result: JsonObject) -> Outcome:
        """The outcome of a call.

        Raises:
            CallFailed: The result says that the tool failed.
        """
        match capability:
            case "tool":
                output = await self._tool(result)
            case "resource":
                output = _single([await self._resource(part) for part in _objects(result.get("contents"))])
            case "prompt":
                output = await self._prompt(result)
        metadata: JsonObject = {"warnings": self.warnings} if self.warnings else {}
        return Outcome(output, metadata=metadata, attachments=tuple(self.attachments))

    async def _tool(self, result: JsonObject) -> Json:
        parts = _objects(result.get("content"))
        if result.get("isError") is True:
            raise self._tool_failure(parts)
        read = [await self._part(part) for part in parts]
        structured = result.get("structuredContent")
        return _single(read) if structured is None else await self._without_bytes(structured)

    async def _without_bytes(self, value: Json, levels: int = _MOST_LEVELS) -> Json:
        """Structured content in which bytes are attachments; the text of the bytes becomes the attachment's URL."""
        if levels == 0:
            return value
        if isinstance(value, list):
            return [await self._without_bytes(item, levels - 1) for item in cast("list[Json]", value)]
        if not isinstance(value, dict):
            return self._kept[value].get("url", "") if isinstance(value, str) and value in self._kept else value
        part = cast("JsonObject", value)
        text = part.get("data" if part.get("type") in {"image", "audio"} else "blob")
        if isinstance(text, str) and text and ("uri" in part or "type" in part):
            await self._bytes(text, part.get("mimeType"))
        return {name: await self._without_bytes(item, levels - 1) for name, item in part.items()}

    def _tool_failure(self, parts: Sequence[JsonObject]) -> CallFailed:
        message_text = " ".join(" ".join(str(part.get("text") or "") for part in parts).split())[:MOST_WORDS]
        message = f"tool {self.dispatch.tool.name!r} failed: {message_text or 'the server does not say why'}"
        failure = error(ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED, message)
        return CallFailed(failure, effect="none")  # it says itself that it failed, and is believed like a function

    async def _prompt(self, result: JsonObject) -> Json:
        messages: list[Json] = []
        for message in _objects(result.get("messages")):
            content = message.get("content")
            part = cast("JsonObject", content) if isinstance(content, dict) else JsonObject()
            read = part.get("text") if part.get("type") == "text" else await self._part(part)
            messages.append({"role": message.get("role"), "content": read})
        return {"description": result.get("description"), "messages": messages}

    async def _part(self, part: JsonObject) -> Json:
        match part.get("type"):
            case "text":
                return _value(str(part.get("text") or ""))
            case "image" | "audio":
                return await self._bytes(str(part.get("data") or ""), part.get("mimeType"))
            case "resource":
                resource = part.get("resource")
                return await self._resource(cast("JsonObject", resource) if isinstance(resource, dict) else {})
            case _:
                return {name: part[name] for name in _LINK if part.get(name) is not None}

    async def _resource(self, resource: JsonObject) -> Json:
        uri, media_type = resource.get("uri"), resource.get("mimeType")
        if isinstance(resource.get("blob"), str):
            kept = await self._bytes(resource["blob"], media_type)
            return {"uri": uri, **kept}
        return {"uri": uri, "media_type": media_type, "content": _value(str(resource.get("text") or ""))}

    async def _bytes(self, text: str, media_type: Json) -> JsonObject:
        """Keep bytes, and describe them."""
        if text in self._kept:
            return self._kept[text]
        content_type = media_type if isinstance(media_type, str) and media_type else _UNKNOWN
        described: JsonObject = {"media_type": content_type}
        try:
            data = base64.b64decode(text, validate=True)
        except binascii.Error:
            self.warnings.append(f"a part of type {content_type} is no base64 and was left out")
            return described
        tool, made_by = self.dispatch.tool, self.dispatch.context.principal.id
        try:
            await self.blob_sink.put(data, realm=tool.realm, made_by=made_by, content_type=content_type)
        except Unavailable as problem:
            self.warnings.append(f"a part of type {content_type} ({len(data)} bytes) could not be kept: {problem}")
            self._kept[text] = described
            return described
        kept = attachment_of(data, content_type, kind="blob")
        self.attachments.append(kept)
        self._kept[text] = {**described, "bytes": len(data), "url": kept.url}
        return self._kept[text]


def _single(parts: list[Json]) -> Json:
    return parts[0] if len(parts) == 1 else parts or None


def _value(text: str) -> Json:
    """The JSON object or list that a text is, or the text."""
    if text.lstrip()[:1] in {"{", "["}:
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            return text
    return text


def _objects(value: Json) -> list[JsonObject]:
    found = cast("list[Json]", value) if isinstance(value, list) else []
    return [cast("JsonObject", item) for item in found if isinstance(item, dict)]


_LISTS: Final[Mapping[McpCapability, Sequence[str]]] = {
    "tool": ("tools",),
    "prompt": ("prompts",),
    "resource": ("resources", "resourceTemplates"),
}


class McpRuntime:
    """Executes tools of kind `mcp`.

    A server may change a tool after a person has trusted it ("rug pull"). So the server is
    asked what it lists before each call, or as seldom as the provider's `verify_s` allows; a tool that is not what it
    was is not called. If a connection turns out to have been lost before anything was asked of it, the call is made on
    a new one; one that breaks during the call fails it, as its effect is not known.

    Args:
        servers: Connections.
        access: Finds providers.
        blob_sink: Keeps images, sounds and other bytes of results.
    """

    def __init__(self, servers: McpServers, access: ProviderAccess, *, blob_sink: BlobSink) -> None:
        self.servers = servers
        """The connections."""
        self._access = access
        self._blob_sink = blob_sink

    async def close(self) -> None:
        """Close the connections, and end the programs that were started."""
        await self.servers.close()

    async def run(self, dispatch: Dispatch) -> Outcome:
        """Execute once.

        Raises:
            CallFailed: As the table of `failures` says; `POLICY_DENIED` if the tool is not what was trusted.
        """
        implementation = dispatch.tool.definition.implementation
        if not isinstance(implementation, McpImplementation):
            message = f"tool {dispatch.tool.name!r} is of kind {implementation.kind!r}, which is none of an MCP server"
            raise CallFailed(error(ErrorCode.UNKNOWN, Reason.RUNTIME_MISSING, message))
        count_request(dispatch)
        try:
            return await self._attempt(dispatch, implementation)
        except SessionGone:
            return await self._attempt(dispatch, implementation)

    async def _attempt(self, dispatch: Dispatch, implementation: McpImplementation) -> Outcome:
        provider = self._access.require(dispatch.tool, implementation.provider)
        realm, principal = dispatch.tool.realm, dispatch.context.principal
        async with self.servers.connection(realm, provider, principal) as connection:
            try:
                result = await self._ask(dispatch, implementation, connection)
                outcome = await ResultReader(dispatch, self._blob_sink).outcome(implementation.capability, result)
            except CallFailed as failure:
                failure.secrets += connection.secrets
                raise
        return Outcome(
            outcome.output,
            metadata=outcome.metadata,
            attachments=outcome.attachments,
            secrets=connection.secrets,
        )

    async def _ask(self, dispatch: Dispatch, implementation: McpImplementation, connection: Connection) -> JsonObject:
        described = connection.reach.connection
        try:
            listing = await connection.listing(_LISTS[implementation.capability], described.verify_s)
            _hold(dispatch.tool.name, implementation, listing)
            limit_s = request_limit_s(dispatch.tool.definition, connection.reach.provider)
            answers = answers_of(dispatch, implementation.provider, described.input_requests)
            capability, name = implementation.capability, implementation.name
            return await connection.call(capability, name, dispatch.input, limit_s=limit_s, answers=answers)
        except SessionGone:
            connection.leave()
            raise


def _hold(tool: str, implementation: McpImplementation, listing: ServerListing) -> None:
    """Refuse a tool that differs from what was trusted.

    Raises:
        CallFailed: It is gone, or the server says something else of it; names the fields.
    """
    offer = listing.find(implementation.capability, implementation.name)
    server = f"the MCP server of provider {implementation.provider!r}"
    if offer is None:
        message = f"tool {tool!r}: {server} does not list it any more, or lists several of its name"
        changed: list[str] = []
    else:
        changed = differences(implementation.fingerprint, offer)
        if not changed:
            return
        message = f"tool {tool!r}: {server} says something else of it than when it was trusted, in {', '.join(changed)}"
    remedy = f"nothing was sent; sync provider {implementation.provider!r} and look at the change"
    raise CallFailed(error(ErrorCode.POLICY_DENIED, Reason.TOOL_DRIFTED, f"{message}; {remedy}", changed=changed))
