"""One session with an MCP server over the official SDK: open, list, call. Modules above this one do not use the SDK.

Results are JSON, and failures are `CallFailed`. The task that opened a session owns it; any task may call it. Requests
of the server for a model or for roots are refused by the SDK, because they have no handlers; those for input are,
unless the provider says otherwise. Progress and log messages are ignored.

The SDK refuses a whole page of a list for one malformed entry. The dispatcher here validates each entry separately,
and keeps malformed entries with their errors.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import anyio.abc
import mcp_types as types
from mcp import ClientSession, MCPError
from mcp.client import IncomingMessage
from mcp.shared.dispatcher import CallOptions, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate
from mcp_types import RequestId, methods
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolcrib.contracts import ErrorCode, Json, JsonObject
from toolcrib.contracts.base.base import release
from toolcrib.contracts.providers.connections import McpInputRequests
from toolcrib.core.executor import CallFailed
from toolcrib.kinds.mcp.importer import NAMED_BY, ServerListing, Unusable, read_listing
from toolcrib.kinds.mcp.runtime.failures import (
    SessionGone,
    TransportTroubles,
    broken,
    connection_failure,
    protocol_failure,
    unusable,
)
from toolcrib.kinds.mcp.runtime.input_requests import MAX_ROUNDS, InputAnswers, filled_form
from toolcrib.kinds.mcp.shape import McpCapability

_LISTS: Final[Mapping[str, str]] = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


class FilteringDispatcher(JSONRPCDispatcher):
    """Dispatches the messages of one session; its lists are asked for one after the other.

    Args:
        *streams: Of the transport.
        on_end: Called when no more messages will come.
    """

    def __init__(self, *streams: Any, on_end: Callable[[], None]) -> None:
        super().__init__(*streams)
        self.version = LATEST_HANDSHAKE_VERSION
        """Of the protocol, as it was negotiated."""
        self.page: list[Json] = []
        """All entries of the page that was read last."""
        self.malformed: dict[int, str] = {}
        """What is wrong with some of them, by index."""
        self._on_end = on_end

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        *,
        _related_request_id: RequestId | None = None,
    ) -> dict[str, Any]:
        """As the SDK's, without the malformed entries of a list."""
        raw = await super().send_raw_request(method, params, opts, _related_request_id=_related_request_id)
        name = _LISTS.get(method)
        if name is None or not isinstance(raw.get(name), list):
            return raw
        self.page = cast("list[Json]", raw[name])
        self.malformed = {}
        for index, entry in enumerate(self.page):
            try:
                methods.validate_server_result(method, self.version, {**raw, name: [entry]})
            except ValidationError as error:
                self.malformed[index] = first_problem(error)
        return {**raw, name: [entry for index, entry in enumerate(self.page) if index not in self.malformed]}

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """As the SDK's."""
        try:
            await super().run(on_request, on_notify, on_notify_intercept, task_status=task_status)
        finally:
            self._on_end()


def first_problem(error: ValidationError) -> str:
    """The first thing that is wrong, and where; not what was sent."""
    first = error.errors(include_input=False, include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{first['msg']} at {place}" if place else first["msg"]


MAX_PAGES: Final = 200
MAX_ENTRIES: Final = 10_000
"""Of one list."""

_CUT_OFF: Final = "the list is not complete:"
"""How the reason begins for a page that could not be read."""

_CHANGES: Final = (
    types.ToolListChangedNotification,
    types.PromptListChangedNotification,
    types.ResourceListChangedNotification,
)
_CLOSED_FORM: Final[JsonObject] = {"requestedSchema": {"required": ["an answer"]}}
"""A form without defaults, which is declined."""
_CLOSED: Final = ("Connection closed", "SSE stream ")
"""How the SDK begins to say that a connection broke."""
_WILL_NOT_PASS: Final = frozenset({ErrorCode.AUTH_REQUIRED, ErrorCode.POLICY_DENIED, ErrorCode.NETWORK_ERROR})
"""Failures of the first request after which an older way to begin is not tried."""


class _Page(BaseModel):
    """What matters of any page of a list."""

    next_cursor: str | None = Field(None, alias="nextCursor")


class _Result(BaseModel):
    """Any result, as it is."""

    model_config = ConfigDict(extra="allow")


_CallRequest: TypeAlias = types.CallToolRequest | types.ReadResourceRequest | types.GetPromptRequest


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """What a session is opened with."""

    provider: str
    troubles: TransportTroubles
    limit_s: float
    """Seconds for each request that is no call."""
    changed: Callable[[], None]
    """Called when the server says that a list has changed."""
    ended: Callable[[], None]
    """Called when the connection has ended."""
    input_requests: McpInputRequests = "refuse"
    """Whether the server may ask for input (elicitation)."""


class McpSession:
    """An open session. Lists are for one task at a time; calls are not."""

    def __init__(self, client: ClientSession, wire: FilteringDispatcher, asking: SessionOptions) -> None:
        self._client = client
        self._wire = wire
        self._asking = asking
        self._provider = asking.provider

    async def listing(self, names: Collection[str]) -> ServerListing:
        """What the server offers now, in the lists of these names.

        Raises:
            SessionGone: The connection was lost.
            CallFailed: The server does not answer, refuses, or lists without end. If only a following page is refused,
                the listing has the pages before it and is cut off.
        """
        entries: dict[str, list[Json]] = {}
        malformed: list[Unusable] = []
        for name in names:
            if self._offers(name):
                entries[name] = await self._entries(name, malformed)
        info = self._client.server_info
        server: JsonObject | None = None if info is None else {"name": info.name, "version": info.version}
        found = read_listing(entries, server)
        cut_off = any(each.why.startswith(_CUT_OFF) for each in malformed)
        return ServerListing(found.offers, (*found.unusable, *malformed), server, is_cut_off=cut_off)

    async def call(
        self, capability: McpCapability, name: str, arguments: JsonObject, *, limit_s: float, answers: InputAnswers
    ) -> JsonObject:
        """Call a tool, read a resource or get a prompt; returns the result as the specification has it.

        Args:
            capability: What it is.
            name: As the server names it.
            arguments: Of the call.
            limit_s: Seconds for each request.
            answers: Answers the server if it asks for input; the call is made again with the answers.

        Raises:
            CallFailed: There is no result, or an invalid one.
        """
        given: dict[str, Any] = {}
        for _ in range(MAX_ROUNDS):
            result = await self._ask(self._request(capability, name, arguments, given), limit_s)
            if result.get("resultType") != "input_required":
                return result
            requests = cast("JsonObject", result.get("inputRequests") or {})
            given = {"input_responses": await answers(requests)} if requests else {}
            if result.get("requestState") is not None:
                given["request_state"] = result["requestState"]
        raise unusable(self._provider, f"it asks for more input {MAX_ROUNDS} times, the most that is answered")

    async def _ask(self, request: _CallRequest, limit_s: float) -> JsonObject:
        try:
            answer = await self._client.send_request(request, _Result, request_read_timeout_seconds=limit_s)
        except MCPError as problem:
            raise failure_of(problem, self._asking) from None
        except ValidationError as problem:
            raise unusable(self._provider, first_problem(problem)) from None
        return answer.model_dump()

    def _request(
        self, capability: McpCapability, name: str, arguments: JsonObject, given: Mapping[str, Any]
    ) -> _CallRequest:
        try:
            match capability:
                case "tool":
                    called = types.CallToolRequestParams(name=name, arguments=arguments, **given)
                    return types.CallToolRequest(params=called)
                case "resource":
                    read = types.ReadResourceRequestParams(uri=self._uri(name, arguments), **given)
                    return types.ReadResourceRequest(params=read)
                case "prompt":
                    got = types.GetPromptRequestParams(name=name, arguments=arguments, **given)
                    return types.GetPromptRequest(params=got)
        except ValidationError as problem:
            raise unusable(self._provider, first_problem(problem)) from None

    def _offers(self, name: str) -> bool:
        """Whether the server says that it has a list."""
        capabilities = self._client.server_capabilities or types.ServerCapabilities()
        by_list = {"tools": capabilities.tools, "prompts": capabilities.prompts}
        return by_list.get(name, capabilities.resources) is not None

    async def _entries(self, name: str, malformed: list[Unusable]) -> list[Json]:
        found: list[Json] = []
        cursor: str | None = None
        seen: set[str] = set()
        total = 0
        while len(seen) < MAX_PAGES and total <= MAX_ENTRIES:
            try:
                cursor, dropped = await self._page(name, cursor)
            except _NoSuchList:
                return found
            except SessionGone:
                raise
            except CallFailed as failure:
                if not seen:
                    raise
                why = f"{_CUT_OFF} its {len(found)} entries are used, and page {len(seen) + 1} is not there"
                malformed.append(Unusable(f"more {name}", f"/{name}/{total}", f"{why}: {failure.error.message}"))
                return found
            page = self._wire.page
            wrong = {**self._wire.malformed, **dropped}
            found += [entry for index, entry in enumerate(page) if index not in wrong]
            malformed += [
                Unusable(_entry_name(page[at], name), f"/{name}/{total + at}", why) for at, why in wrong.items()
            ]
            total += len(page)
            if cursor is None:
                return found
            if cursor in seen:
                break
            seen.add(cursor)
        bound = f"{MAX_PAGES} pages and {MAX_ENTRIES} entries"
        raise unusable(self._provider, f"its list of {name} does not end, or not within {bound}")

    async def _page(self, name: str, cursor: str | None) -> tuple[str | None, dict[int, str]]:
        """Where the next page is, and which entries of this one the SDK has dropped."""
        params = None if cursor is None else types.PaginatedRequestParams(cursor=cursor)
        try:
            if name == "tools":
                return await self._tools(params)
            return (await self._client.send_request(_request(name, params), _Page)).next_cursor, {}
        except MCPError as problem:
            if name != "tools" and problem.code == types.METHOD_NOT_FOUND:
                raise _NoSuchList from None
            failure = failure_of(problem, self._asking)
            raise SessionGone(failure.error) if _is_closed(problem) else failure from None
        except ValidationError as problem:
            raise unusable(self._provider, first_problem(problem)) from None

    async def _tools(self, params: types.PaginatedRequestParams | None) -> tuple[str | None, dict[int, str]]:
        """As `_page`, but with the SDK's method, which stores the arguments that become headers."""
        found = await self._client.list_tools(params=params)
        kept = {tool.name for tool in found.tools}
        lost = [at for at, entry in enumerate(self._wire.page) if _entry_name(entry, "tools") not in kept]
        dropped = {at: "its x-mcp-header is invalid" for at in lost if at not in self._wire.malformed}
        return found.next_cursor, dropped

    def _uri(self, name: str, arguments: JsonObject) -> str:
        try:
            return UriTemplate.parse(name).expand({key: str(value) for key, value in arguments.items()})
        except (InvalidUriTemplate, ValueError, TypeError) as problem:
            raise protocol_failure(self._provider, types.INVALID_PARAMS, f"the URI cannot be made: {problem}") from None


class _NoSuchList(Exception):
    """A server that does not support a list, although it declared the capability."""


async def hold(
    streams: AbstractAsyncContextManager[tuple[Any, Any]],
    asking: SessionOptions,
    *,
    legacy: bool,
    opened: Callable[[McpSession], None],
    leave: asyncio.Event,
) -> None:
    """Open a session, hand it out, and hold it open until it is left. All of it in the one task that calls.

    What prevents it, or ends it before it is left, is in the troubles.

    Args:
        streams: The transport.
        asking: What it is opened with.
        legacy: Begin the old way without trying the new one.
        opened: Is given the session.
        leave: When to close it.
    """
    info = types.Implementation(name="toolcrib", version=release())

    async def hear(message: IncomingMessage) -> None:
        if isinstance(message, _CHANGES):
            asking.changed()

    async def fill(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        """Answer a server that asks during a call, as those before 2026-07-28 do: nobody can be waited for."""
        del context
        given = params.model_dump(by_alias=True) if asking.input_requests == "defaults" else _CLOSED_FORM
        return types.ElicitResult.model_validate(filled_form(given))

    async with streams as (incoming, outgoing):
        wire = FilteringDispatcher(incoming, outgoing, on_end=asking.ended)
        async with ClientSession(
            dispatcher=wire,
            read_timeout_seconds=asking.limit_s,
            message_handler=hear,
            client_info=info,
            elicitation_callback=None if asking.input_requests == "refuse" else fill,
        ) as client:
            try:
                await _begin(client, asking, legacy=legacy)
            except CallFailed as failure:
                asking.troubles.last = failure
                return
            wire.version = client.protocol_version or wire.version
            asking.troubles.last = None
            opened(McpSession(client, wire, asking))
            await leave.wait()


async def _begin(client: ClientSession, asking: SessionOptions, *, legacy: bool) -> None:
    """Agree on a version: by `server/discover` (2026-07-28), or by `initialize`, as servers before it want it."""
    if not legacy:
        try:
            await client.discover()
        except MCPError as problem:
            failure = failure_of(problem, asking)
            if failure.error.code in _WILL_NOT_PASS:
                raise failure from None
        except (RuntimeError, ValidationError):
            pass  # it answers, and not as a server of that version does
        else:
            return
    try:
        await client.initialize()
    except MCPError as problem:
        raise failure_of(problem, asking) from None
    except RuntimeError as problem:
        raise connection_failure(asking.provider, str(problem), code=ErrorCode.PROVIDER_ERROR) from None
    except ValidationError as problem:
        raise unusable(asking.provider, first_problem(problem)) from None


def failure_of(problem: MCPError, asking: SessionOptions) -> CallFailed:
    """What an error of the protocol means: what our transport has met, or what the server says."""
    behind = asking.troubles.behind(problem.data)
    if behind is not None:
        return behind
    if _is_closed(problem):
        return asking.troubles.last or broken(asking.provider, asking.troubles.output)
    return protocol_failure(asking.provider, problem.code, problem.message)


def _is_closed(problem: MCPError) -> bool:
    """Whether the SDK says that the connection broke; servers use the same code for whatever they like."""
    return problem.code == types.CONNECTION_CLOSED and problem.message.startswith(_CLOSED)


def _request(
    name: str, params: types.PaginatedRequestParams | None
) -> types.ListPromptsRequest | types.ListResourcesRequest | types.ListResourceTemplatesRequest:
    match name:
        case "prompts":
            return types.ListPromptsRequest(params=params)
        case "resources":
            return types.ListResourcesRequest(params=params)
        case _:
            return types.ListResourceTemplatesRequest(params=params)


def _entry_name(entry: Json, name: str) -> str:
    found = cast("JsonObject", entry).get(NAMED_BY[name]) if isinstance(entry, dict) else None
    return found if isinstance(found, str) else ""
