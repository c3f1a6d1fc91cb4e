"""The operations on triggers, mcp servers, server.

Written by `python -m tools.rest_client`.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Literal

from toolcrib.client.answers import Count, Health, McpServerPage, TriggerPage
from toolcrib.client.groups import AsyncApi
from toolcrib.client.transport import ApiRequest, given
from toolcrib.contracts import (
    CronSource,
    JsonObject,
    McpServerDefinition,
    RunEndSource,
    TriggerDefinition,
    TriggerStart,
    TriggerState,
    WebhookSource,
)


class AsyncTriggersApi(AsyncApi):
    """The operations on triggers."""

    async def get_state(self, name: str) -> TriggerState:
        """The next time of a trigger, its last run, and why it started nothing."""
        return await self._transport.send(
            TriggerState, ApiRequest(method="GET", path="/api/v1/ai/triggers/{name}/state", place={"name": name})
        )

    async def pause(self, name: str, *, idempotency_key: str | None = None) -> TriggerState:
        """Have a trigger start nothing until it is resumed."""
        return await self._transport.send(
            TriggerState,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/triggers/{name}/pause",
                place={"name": name},
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def resume(self, name: str, *, idempotency_key: str | None = None) -> TriggerState:
        """Have a paused trigger start runs again; what has passed meanwhile is not caught up."""
        return await self._transport.send(
            TriggerState,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/triggers/{name}/resume",
                place={"name": name},
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def fire(
        self, name: str, *, event: JsonObject | None = None, idempotency_key: str | None = None
    ) -> TriggerStart:
        """Start now what a trigger starts."""
        return await self._transport.send(
            TriggerStart,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/triggers/{name}/fire",
                place={"name": name},
                body=given(event=event),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def query(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> TriggerPage:
        """The triggers that a filter means, page by page."""
        return await self._transport.send(
            TriggerPage,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/triggers/query",
                body=given(filter=filter, sort=sort, after=after, limit=limit),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def count(self, *, filter: str | None = None) -> Count:
        """How many triggers a filter means, of those that the caller may see."""
        return await self._transport.send(
            Count, ApiRequest(method="GET", path="/api/v1/ai/triggers/count", query=given(filter=filter))
        )

    async def list(
        self, *, filter: str | None = None, sort: str | None = None, after: str | None = None, limit: int | None = None
    ) -> TriggerPage:
        """The triggers that the caller may read."""
        return await self._transport.send(
            TriggerPage,
            ApiRequest(
                method="GET",
                path="/api/v1/ai/triggers",
                query=given(filter=filter, sort=sort, after=after, limit=limit),
            ),
        )

    def each(
        self, *, filter: str | None = None, sort: str | None = None, limit: int | None = None
    ) -> AsyncGenerator[TriggerDefinition]:
        """The triggers that the caller may read.

        All of them: the next page is read when it is needed.
        """
        return self._transport.each(
            TriggerPage,
            ApiRequest(method="GET", path="/api/v1/ai/triggers", query=given(filter=filter, sort=sort, limit=limit)),
            "after",
        )

    async def get(self, name: str) -> TriggerDefinition:
        """The trigger in its newest revision, which the header `ETag` names."""
        return await self._transport.send(
            TriggerDefinition, ApiRequest(method="GET", path="/api/v1/ai/triggers/{name}", place={"name": name})
        )

    async def save(
        self,
        name: str,
        *,
        when: CronSource | JsonObject | WebhookSource | RunEndSource,
        start: str,
        account: str,
        description: str | None = None,
        input: JsonObject | None = None,
        overlap: Literal["allow", "skip", "queue"] | None = None,
        enabled: bool | None = None,
        if_match: int | str | None = None,
    ) -> TriggerDefinition:
        """Store a trigger. It counts from now on; nothing earlier is caught up."""
        return await self._transport.send(
            TriggerDefinition,
            ApiRequest(
                method="PUT",
                path="/api/v1/ai/triggers/{name}",
                place={"name": name},
                body=given(
                    name=name,
                    when=when,
                    start=start,
                    account=account,
                    description=description,
                    input=input,
                    overlap=overlap,
                    enabled=enabled,
                ),
                headers={"If-Match": if_match},
            ),
        )

    async def remove(self, name: str) -> None:
        """Take a trigger out. Runs that it has started continue."""
        await self._transport.send(
            None, ApiRequest(method="DELETE", path="/api/v1/ai/triggers/{name}", place={"name": name})
        )


class AsyncMcpServersApi(AsyncApi):
    """The operations on mcp servers."""

    async def query(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> McpServerPage:
        """The mcp servers that a filter means, page by page."""
        return await self._transport.send(
            McpServerPage,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/mcp_servers/query",
                body=given(filter=filter, sort=sort, after=after, limit=limit),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def count(self, *, filter: str | None = None) -> Count:
        """How many mcp servers a filter means, of those that the caller may see."""
        return await self._transport.send(
            Count, ApiRequest(method="GET", path="/api/v1/ai/mcp_servers/count", query=given(filter=filter))
        )

    async def list(
        self, *, filter: str | None = None, sort: str | None = None, after: str | None = None, limit: int | None = None
    ) -> McpServerPage:
        """The mcp_servers that the caller may read."""
        return await self._transport.send(
            McpServerPage,
            ApiRequest(
                method="GET",
                path="/api/v1/ai/mcp_servers",
                query=given(filter=filter, sort=sort, after=after, limit=limit),
            ),
        )

    def each(
        self, *, filter: str | None = None, sort: str | None = None, limit: int | None = None
    ) -> AsyncGenerator[McpServerDefinition]:
        """The mcp_servers that the caller may read.

        All of them: the next page is read when it is needed.
        """
        return self._transport.each(
            McpServerPage,
            ApiRequest(method="GET", path="/api/v1/ai/mcp_servers", query=given(filter=filter, sort=sort, limit=limit)),
            "after",
        )

    async def get(self, name: str) -> McpServerDefinition:
        """The mcp_server in its newest revision, which the header `ETag` names."""
        return await self._transport.send(
            McpServerDefinition, ApiRequest(method="GET", path="/api/v1/ai/mcp_servers/{name}", place={"name": name})
        )

    async def save(
        self,
        name: str,
        *,
        tools: Sequence[str],
        title: str | None = None,
        description: str | None = None,
        excluded_tools: Sequence[str] | None = None,
        offer: Literal["tools", "search"] | None = None,
        enabled: bool | None = None,
        if_match: int | str | None = None,
    ) -> McpServerDefinition:
        """Store a virtual MCP server. Its clients are offered the new selection from their next request on."""
        return await self._transport.send(
            McpServerDefinition,
            ApiRequest(
                method="PUT",
                path="/api/v1/ai/mcp_servers/{name}",
                place={"name": name},
                body=given(
                    name=name,
                    tools=tools,
                    title=title,
                    description=description,
                    excluded_tools=excluded_tools,
                    offer=offer,
                    enabled=enabled,
                ),
                headers={"If-Match": if_match},
            ),
        )

    async def remove(self, name: str) -> None:
        """Take a virtual MCP server out; its address is not found any more."""
        await self._transport.send(
            None, ApiRequest(method="DELETE", path="/api/v1/ai/mcp_servers/{name}", place={"name": name})
        )


class AsyncServerApi(AsyncApi):
    """The operations on server."""

    async def schemas(self) -> dict[str, JsonObject]:
        """The JSON Schema of every contract, by name."""
        return await self._transport.send(dict[str, JsonObject], ApiRequest(method="GET", path="/api/v1/schemas"))

    async def health(self) -> Health:
        """Shows that the server is running."""
        return await self._transport.send(Health, ApiRequest(method="GET", path="/health"))
