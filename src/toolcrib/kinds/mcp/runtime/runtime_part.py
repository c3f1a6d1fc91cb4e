"""`McpRuntime`: one call of what an MCP server offers, if the server still says of it what was trusted."""

from collections.abc import Mapping, Sequence
from typing import Final

from toolcrib.contracts import ErrorCode, JsonObject, McpCapability, McpImplementation, Reason
from toolcrib.core.executor import Attic, CallFailed, Dispatch, Outcome, error
from toolcrib.core.providers import ProviderAccess
from toolcrib.core.providers.reach import count_request
from toolcrib.core.providers.reaching import request_limit_s
from toolcrib.kinds.mcp.importer import Listing, differences
from toolcrib.kinds.mcp.runtime.connection import Connection
from toolcrib.kinds.mcp.runtime.failures import SessionGone
from toolcrib.kinds.mcp.runtime.runtime import Reading
from toolcrib.kinds.mcp.runtime.servers import McpServers

_LISTS: Final[Mapping[McpCapability, Sequence[str]]] = {
    "tool": ("tools",),
    "prompt": ("prompts",),
    "resource": ("resources", "resourceTemplates"),
}


class McpRuntime:
    """Executes tools of kind `mcp`.

    A server may say something else of a tool today than it said when a person took it in ("rug pull"). So the server is
    asked what it lists before each call, or as seldom as the provider's `verify_s` allows; a tool that is not what it
    was is not called. If a connection turns out to have been lost before anything was asked of it, the call is made on
    a new one; one that breaks during the call fails it, as its effect is not known.

    Args:
        servers: Connections.
        access: Finds providers.
        attic: Keeps images, sounds and other bytes of results.
    """

    def __init__(self, servers: McpServers, access: ProviderAccess, *, attic: Attic) -> None:
        self._servers = servers
        self._access = access
        self._attic = attic

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
        async with self._servers.connection(realm, provider, principal) as connection:
            try:
                result = await self._ask(dispatch, implementation, connection)
                outcome = await Reading(dispatch, self._attic).outcome(implementation.capability, result)
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
            return await connection.call(implementation.capability, implementation.name, dispatch.input, limit_s)
        except SessionGone:
            connection.leave()
            raise


def _hold(tool: str, implementation: McpImplementation, listing: Listing) -> None:
    """Refuse what is not what was trusted.

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
