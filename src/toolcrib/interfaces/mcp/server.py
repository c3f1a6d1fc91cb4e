"""The handlers of the MCP server: list and call tools, and read runs as resources.

The protocol itself (revisions, transports, JSON-RPC) is that of the official SDK. Every request acts as the principal
of its own key, whatever session it belongs to.

Example:
    from toolcrib.interfaces.mcp.server import McpServer

    server = McpServer(lambda _: crib).build()
    print(server.name)
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Final, TypeAlias

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolcrib.contracts import (
    Conflict,
    InvalidInput,
    Json,
    JsonObject,
    McpServerDefinition,
    NotFound,
    PermissionDenied,
    ToolCallEnd,
    ToolcribError,
    ToolProgress,
    ToolRevision,
)
from toolcrib.contracts.base.base import release
from toolcrib.core.export import mcp_tool
from toolcrib.core.runs import Result
from toolcrib.crib import ActingCrib, Crib
from toolcrib.interfaces.mcp.changes import ChangeWatch
from toolcrib.interfaces.mcp.offers import NameOf, ToolOffers, find_server
from toolcrib.interfaces.mcp.prompts import McpPrompts, complete
from toolcrib.interfaces.mcp.resources import OPEN, McpResources
from toolcrib.interfaces.mcp.results import failure, result_of
from toolcrib.interfaces.mcp.tool_search import CALL, SEARCH, meant_call, refuse, search_pair, search_tools
from toolcrib.interfaces.mcp.waiting import AnswerForm, answer, explain_wait, form_of, run_of_state, state_of

Context: TypeAlias = ServerRequestContext[Any, Any]
CribOf: TypeAlias = Callable[[Context], ActingCrib]
"""The crib as the principal of a request uses it."""
ServerOf: TypeAlias = Callable[[Context], Awaitable[McpServerDefinition | None]]
"""The virtual server that a request is for; null for all tools."""
SERVED: Final = ContextVar[McpServerDefinition | None]("toolcrib_mcp_server", default=None)
"""The virtual server of the connection that begins: clients read its title and description once."""

_CALL: Final = "call"
"""Position of the call of a run that is one call."""
_CANCEL_S: Final = 5.0
_INSTRUCTIONS: Final = (
    "Each call is checked against a policy and recorded as a run; `_meta` of a result names it. A result with isError "
    "says what to change. If it says that the call waits, do not call the tool again: read the resource that it names."
)


class McpServer:
    """The tools of a crib for MCP clients.

    Args:
        crib_of: The crib as the principal of a request uses it.
        self_approval: Whether who calls a tool may decide on the call.
        name_of: Names of the tools that are offered; all tools under the names of the export if null.
        server_of: The virtual server that a request is for; null if there are none.
    """

    def __init__(
        self,
        crib_of: CribOf,
        *,
        self_approval: bool = False,
        name_of: NameOf | None = None,
        server_of: ServerOf | None = None,
    ) -> None:
        self._crib_of = crib_of
        self._self_approval = self_approval
        self._name_of = name_of
        self._server_of = server_of
        self.changes = ChangeWatch()

    def build(self) -> Server[Any]:
        """The server of the SDK, for one of its transports."""
        server = _SdkServer(
            "toolcrib",
            title="Toolcrib",
            version=release(),
            instructions=_INSTRUCTIONS,
            get_tool_input_schema=lambda _: None,  # the executor checks arguments
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_resource_templates,
            on_read_resource=self.read_resource,
            on_list_prompts=self.list_prompts,
            on_get_prompt=self.get_prompt,
            on_completion=self.complete,
            on_subscribe_resource=self.subscribe,
            on_unsubscribe_resource=self.unsubscribe,
            on_subscriptions_listen=self.listen,
        )
        server.add_request_handler("server/discover", types.RequestParams, self._discover(server))
        return server

    async def list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """A page of the tools that the principal may execute."""
        offers = await self._offers(ctx)
        await self.changes.note_list(ctx, "tools", lambda: self._offers(ctx))
        if offers.searches:
            return types.ListToolsResult(tools=list(await search_pair(offers)))
        try:
            page = await offers.page(params.cursor if params is not None else None)
        except InvalidInput as problem:
            raise MCPError(types.INVALID_PARAMS, str(problem)) from problem
        tools = [types.Tool.model_validate(mcp_tool(each.tool.definition, each.name)) for each in page.tools]
        return types.ListToolsResult(tools=tools, next_cursor=page.cursor)

    async def call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Run a tool; or carry on the run of an earlier request with the answer to what it asked.

        Raises:
            MCPError: There is no such tool for this principal, or no such run.
        """
        offers = await self._offers(ctx)
        crib = offers.crib
        if offers.searches and params.name == SEARCH:
            return await search_tools(offers, params.arguments or {})
        called = meant_call(params) if offers.searches and params.name == CALL else params
        if isinstance(called, types.CallToolResult):
            return called
        tool = await offers.find(called.name)
        if tool is None and called is not params:
            return refuse(f"there is no tool {called.name[:100]!r}; {SEARCH} finds the names of those there are")
        if tool is None:
            msg = f"there is no tool {params.name[:100]!r}; tools/list lists those that this key may call"
            raise MCPError(types.INVALID_PARAMS, msg)
        if params.request_state is not None:
            result = await self._carry_on(crib, tool, params.request_state)
        else:
            result = await _run(ctx, crib, tool, called.arguments or {})
        return await self._finish(ctx, crib, tool, result, dict(params.input_responses or {}))

    async def list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """The resources of tools, and the newest runs of the principal."""
        await self.changes.note_list(ctx, "resources", lambda: self._offers(ctx))
        return await McpResources(await self._offers(ctx)).page(params.cursor if params is not None else None)

    async def list_resource_templates(
        self, ctx: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """The addresses of resources that have variables."""
        return await McpResources(await self._offers(ctx)).templates()

    async def read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """A run, or an attachment of one.

        Raises:
            MCPError: There is no such resource for this principal.
        """
        try:
            return await McpResources(await self._offers(ctx)).read(params.uri)
        except (NotFound, PermissionDenied, InvalidInput) as problem:
            raise MCPError(types.INVALID_PARAMS, str(problem), {"uri": params.uri[:500]}) from problem

    async def list_prompts(self, ctx: Context, _params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        """The prompts that the principal may use."""
        await self.changes.note_list(ctx, "prompts", lambda: self._offers(ctx))
        return await McpPrompts(await self._offers(ctx)).list()

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """The messages of a prompt.

        Raises:
            MCPError: There is no such prompt for this principal, or it cannot be made with these arguments.
        """
        try:
            return await McpPrompts(await self._offers(ctx)).get(params.name, params.arguments or {})
        except InvalidInput as problem:
            raise MCPError(types.INVALID_PARAMS, str(problem)) from problem

    async def complete(self, ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Values of an argument of a prompt or of an address.

        Raises:
            MCPError: There is no such prompt or resource for this principal.
        """
        offers = await self._offers(ctx)
        if isinstance(params.ref, types.PromptReference):
            tool = await offers.find(params.ref.name, "prompt")
        else:
            tool = await McpResources(offers).find(params.ref.uri)
        if tool is None:
            msg = "there is nothing of this name or address to complete an argument of; list prompts or resources"
            raise MCPError(types.INVALID_PARAMS, msg)
        return types.CompleteResult(completion=complete(tool, params.argument.name, params.argument.value))

    async def _offers(self, ctx: Context) -> ToolOffers:
        return ToolOffers(self._crib_of(ctx), self._name_of, await self._server(ctx))

    async def _server(self, ctx: Context) -> McpServerDefinition | None:
        try:
            return None if self._server_of is None else await self._server_of(ctx)
        except NotFound as problem:
            raise MCPError(types.INVALID_REQUEST, str(problem)) from problem

    def _discover(self, server: Server[Any]) -> Callable[[Context, Any], Awaitable[types.DiscoverResult]]:
        async def discover(ctx: Context, _params: types.RequestParams | None) -> types.DiscoverResult:
            return types.DiscoverResult(
                supported_versions=list(MODERN_PROTOCOL_VERSIONS),
                capabilities=server.get_capabilities(protocol_version=ctx.protocol_version),
                instructions=instructions_for(await self._server(ctx)),
            )

        return discover

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Tell a session when a run changes. An address of anything else is accepted; it does not change."""
        await self.changes.subscribe(ctx, str(params.uri), lambda: self._offers(ctx))
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """Tell a session nothing of a run any more."""
        await self.changes.unsubscribe(ctx, str(params.uri), lambda: self._offers(ctx))
        return types.EmptyResult()

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Tell a client what changes, until it closes the stream."""
        return await self.changes.listen(ctx, params, lambda: self._offers(ctx))

    async def _finish(
        self, ctx: Context, crib: ActingCrib, tool: ToolRevision, result: Result, given: dict[str, types.InputResponse]
    ) -> types.CallToolResult | types.InputRequiredResult:
        """The result of a run, after it got the answers that are given and the client was asked what else it asks."""
        while result.status in OPEN:
            form = await form_of(crib, result.run_id, self_approval=self._self_approval)
            answered = None if form is None else given.pop(form.request_key, None)
            if form is None or (answered is None and not _can_ask(ctx)):
                return failure(await explain_wait(crib, result), result)
            if answered is None and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
                return types.InputRequiredResult(
                    input_requests={form.request_key: form.request()}, request_state=state_of(result.run_id, form)
                )
            if answered is None:
                answered = await ctx.session.elicit_form(form.message, dict(form.schema), ctx.request_id)
            if not isinstance(answered, types.ElicitResult):
                continue  # it is the answer to something else
            if not await self._answer(crib, result.run_id, form, answered):
                return failure(await explain_wait(crib, result), result)
            result = await crib.resume(result.run_id)
        return await result_of(crib, tool, result, protocol=ctx.protocol_version)

    async def _carry_on(self, crib: ActingCrib, tool: ToolRevision, state: str) -> Result:
        """The run that the state of a request names, as it stands."""
        run_id = run_of_state(state)
        try:
            run = None if run_id is None else await crib.executions.run_for(run_id, crib.principal, "execute")
        except (NotFound, PermissionDenied):
            run = None
        if run is None or run_id is None or run.request.tool_name != tool.name:
            msg = "request_state names no run of this tool; leave it out to make a new call"
            raise MCPError(types.INVALID_PARAMS, msg)
        return await crib.resume(run_id)

    async def _answer(self, crib: ActingCrib, run_id: str, form: AnswerForm, given: types.ElicitResult) -> bool:
        try:
            return await answer(crib, run_id, form, given)
        except ToolcribError as problem:
            raise MCPError(types.INVALID_PARAMS, str(problem)) from problem


async def _run(ctx: Context, crib: ActingCrib, tool: ToolRevision, arguments: JsonObject) -> Result[Json]:
    """Run a tool; a client that asked for progress hears of it, and ends the run if it cancels its request."""
    ref = f"{tool.name}@{tool.content_hash}"
    if ctx.meta is None or "progress_token" not in ctx.meta:
        return await crib.invoke(ref, arguments)
    run_id = await crib.submit(ref, arguments)
    ended = 0
    try:
        async for _, event in crib.stream(run_id, drive=True):
            if isinstance(event, ToolProgress) and event.position == _CALL:
                await ctx.session.report_progress(event.done, event.total, event.message or None)
            elif isinstance(event, ToolCallEnd) and event.envelope.position != _CALL:
                ended += 1
                await ctx.session.report_progress(ended, None, event.envelope.name)
    except asyncio.CancelledError:
        with anyio.move_on_after(_CANCEL_S, shield=True), suppress(Conflict):  # it has ended since
            await crib.cancel(run_id, reason="the client cancelled its request")
        raise
    return await crib.executions.result(run_id)


class _SdkServer(Server[Any]):
    """The server of the SDK, which tells clients of older revisions about the virtual server that they connect to."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """What a session begins with."""
        told = notification_options or NotificationOptions(
            prompts_changed=True, resources_changed=True, tools_changed=True
        )
        options = super().create_initialization_options(told, experimental_capabilities, extensions)
        served = SERVED.get()
        title = options.title if served is None else served.title or served.name
        return options.model_copy(update={"title": title, "instructions": instructions_for(served)})


def instructions_for(server: McpServerDefinition | None) -> str:
    """What clients tell their model about the server."""
    return "\n\n".join(filter(None, ("" if server is None else server.description, _INSTRUCTIONS)))


async def serve_stdio(
    crib: Crib, acting: ActingCrib, *, self_approval: bool = False, server_name: str | None = None
) -> None:
    """Serve one client until it closes standard input. Nothing else may write to standard output meanwhile.

    Args:
        crib: Is opened, and closed at the end.
        acting: The same crib as the principal that the client acts as.
        self_approval: Whether the person at the client may decide on its calls.
        server_name: The virtual server whose tools are served; null for all tools.

    Raises:
        NotFound: There is no such virtual server, or it is disabled.
    """

    async def server_of(_: Context) -> McpServerDefinition | None:
        return None if server_name is None else await find_server(acting, server_name)

    mcp_server = McpServer(lambda _: acting, self_approval=self_approval, server_of=server_of)
    server = mcp_server.build()
    async with crib, mcp_server.changes:
        SERVED.set(None if server_name is None else await find_server(acting, server_name))
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())


def _can_ask(ctx: Context) -> bool:
    """Whether the client shows forms."""
    capabilities = ctx.session.client_capabilities
    elicits = capabilities is not None and capabilities.elicitation is not None
    return elicits and (ctx.protocol_version in MODERN_PROTOCOL_VERSIONS or ctx.session.can_send_request)
