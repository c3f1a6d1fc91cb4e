"""The handlers of the MCP server: list and call tools, and read runs as resources.

The protocol itself (revisions, transports, JSON-RPC) is that of the official SDK. Every request acts as the principal
of its own key, whatever session it belongs to.

Example:
    from toolcrib.interfaces.mcp.server import McpServer

    server = McpServer(lambda _: crib).build()
    print(server.name)
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, TypeAlias, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolcrib.contracts import (
    InvalidInput,
    Json,
    JsonObject,
    McpServerDefinition,
    NotFound,
    PermissionDenied,
    ToolRevision,
)
from toolcrib.contracts.base.base import release
from toolcrib.core.export import mcp_tool
from toolcrib.core.runs import Result
from toolcrib.crib import ActingCrib, Crib
from toolcrib.interfaces.mcp.calls.following import run_tool, set_level
from toolcrib.interfaces.mcp.calls.settling import StillWaiting, carry_on, settle
from toolcrib.interfaces.mcp.calls.tasks import McpTasks, declares_tasks
from toolcrib.interfaces.mcp.changes import ChangeWatch
from toolcrib.interfaces.mcp.offers import NameOf, ToolOffers, find_server
from toolcrib.interfaces.mcp.prompts import McpPrompts, complete
from toolcrib.interfaces.mcp.resources import McpResources
from toolcrib.interfaces.mcp.results import failure, result_of
from toolcrib.interfaces.mcp.tool_search import CALL, SEARCH, meant_call, refuse, search_pair, search_tools

Context: TypeAlias = ServerRequestContext[Any, Any]
CribOf: TypeAlias = Callable[[Context], ActingCrib]
"""The crib as the principal of a request uses it."""
ServerOf: TypeAlias = Callable[[Context], Awaitable[McpServerDefinition | None]]
"""The virtual server that a request is for; null for all tools."""
SERVED: Final = ContextVar[McpServerDefinition | None]("toolcrib_mcp_server", default=None)
"""The virtual server of the connection that begins: clients read its title and description once."""

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
        self.tasks = McpTasks(self._offers, self_approval=self_approval)

    def build(self) -> Server[Any]:
        """The server of the SDK, for one of its transports."""
        server = _SdkServer(
            "toolcrib",
            title="Toolcrib",
            version=release(),
            instructions=_INSTRUCTIONS,
            get_tool_input_schema=lambda _: None,  # the executor checks arguments
            on_list_tools=self.list_tools,
            on_call_tool=cast("Any", self.call_tool),  # the SDK passes on results of extensions, and has no type for it
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
        self.tasks.add_to(server)
        server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
        server.add_request_handler("server/discover", types.RequestParams, self._discover(server))
        return server

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Serve what goes on between requests: changes that clients are told of, and tasks."""
        async with self.changes:
            try:
                yield
            finally:
                await self.tasks.close()

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
    ) -> types.CallToolResult | types.InputRequiredResult | JsonObject:
        """Run a tool; or carry on the run of an earlier request with the answer to what it asked.

        A call that takes long is a task, if its client takes one.

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
            result = await carry_on(crib, tool, params.request_state)
        else:
            result = await self._run(ctx, crib, tool, called.arguments or {})
        if isinstance(result, dict):
            return result
        settled = await self._settle(ctx, crib, result, params)
        if isinstance(settled, StillWaiting):
            return failure(settled.text, settled.result)
        if isinstance(settled, types.InputRequiredResult | dict):
            return settled
        return await result_of(crib, tool, settled, protocol=ctx.protocol_version)

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

    async def get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """The messages of a prompt, or what the client is asked first.

        Raises:
            MCPError: There is no such prompt for this principal, or it cannot be made with these arguments.
        """
        try:
            prompts = McpPrompts(await self._offers(ctx))
            tool = await prompts.find(params.name)
            if params.request_state is not None:
                result = await carry_on(prompts.crib, tool, params.request_state)
            else:
                result = await prompts.run(tool, params.arguments or {})
            settled = await self._settle(ctx, prompts.crib, result, params)
            if isinstance(settled, types.InputRequiredResult):
                return settled
            if not isinstance(settled, StillWaiting):
                return await prompts.read(tool, cast("Result[Json]", settled))  # a prompt is never a task
        except InvalidInput as problem:
            raise MCPError(types.INVALID_PARAMS, str(problem)) from problem
        raise MCPError(types.INVALID_PARAMS, settled.text)

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

    async def _run(
        self, ctx: Context, crib: ActingCrib, tool: ToolRevision, arguments: JsonObject
    ) -> Result | JsonObject:
        if declares_tasks(ctx):
            return await self.tasks.start(crib, tool, arguments)
        return await run_tool(ctx, crib, tool, arguments)

    async def _settle(
        self, ctx: Context, crib: ActingCrib, result: Result, params: types.InputResponseRequestParams
    ) -> Result | types.InputRequiredResult | StillWaiting | JsonObject:
        is_call = isinstance(params, types.CallToolRequestParams)
        resume = partial(self.tasks.resume, crib) if is_call and declares_tasks(ctx) else crib.resume
        given = dict(params.input_responses or {})
        return await settle(ctx, crib, result, given, self_approval=self._self_approval, resume=resume)


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
    async with crib, mcp_server.open():
        SERVED.set(None if server_name is None else await find_server(acting, server_name))
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
