"""The synchronous operations on triggers, mcp servers, server.

Written by `python -m tools.rest_client`.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from toolcrib.client.answers import Count, Health, McpServerPage, TriggerPage
from toolcrib.client.groups import SyncApi
from toolcrib.client.operations import triggers as asynchronous
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


class TriggersApi(SyncApi[asynchronous.AsyncTriggersApi]):
    """The operations on triggers."""

    def get_state(self, name: str) -> TriggerState:
        """The next time of a trigger, its last run, and why it started nothing."""
        return self._loop.run(self._api.get_state, name)

    def pause(self, name: str, *, idempotency_key: str | None = None) -> TriggerState:
        """Have a trigger start nothing until it is resumed."""
        return self._loop.run(self._api.pause, name, idempotency_key=idempotency_key)

    def resume(self, name: str, *, idempotency_key: str | None = None) -> TriggerState:
        """Have a paused trigger start runs again; what has passed meanwhile is not caught up."""
        return self._loop.run(self._api.resume, name, idempotency_key=idempotency_key)

    def fire(self, name: str, *, event: JsonObject | None = None, idempotency_key: str | None = None) -> TriggerStart:
        """Start now what a trigger starts."""
        return self._loop.run(self._api.fire, name, event=event, idempotency_key=idempotency_key)

    def query(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> TriggerPage:
        """The triggers that a filter means, page by page."""
        return self._loop.run(
            self._api.query, filter=filter, sort=sort, after=after, limit=limit, idempotency_key=idempotency_key
        )

    def count(self, *, filter: str | None = None) -> Count:
        """How many triggers a filter means, of those that the caller may see."""
        return self._loop.run(self._api.count, filter=filter)

    def list(
        self, *, filter: str | None = None, sort: str | None = None, after: str | None = None, limit: int | None = None
    ) -> TriggerPage:
        """The triggers that the caller may read."""
        return self._loop.run(self._api.list, filter=filter, sort=sort, after=after, limit=limit)

    def each(
        self, *, filter: str | None = None, sort: str | None = None, limit: int | None = None
    ) -> Iterator[TriggerDefinition]:
        """The triggers that the caller may read.

        All of them: the next page is read when it is needed.
        """
        return self._loop.iterate(self._api.each, filter=filter, sort=sort, limit=limit)

    def get(self, name: str) -> TriggerDefinition:
        """The trigger in its newest revision, which the header `ETag` names."""
        return self._loop.run(self._api.get, name)

    def save(
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
        return self._loop.run(
            self._api.save,
            name,
            when=when,
            start=start,
            account=account,
            description=description,
            input=input,
            overlap=overlap,
            enabled=enabled,
            if_match=if_match,
        )

    def remove(self, name: str) -> None:
        """Take a trigger out. Runs that it has started continue."""
        return self._loop.run(self._api.remove, name)


class McpServersApi(SyncApi[asynchronous.AsyncMcpServersApi]):
    """The operations on mcp servers."""

    def query(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> McpServerPage:
        """The mcp servers that a filter means, page by page."""
        return self._loop.run(
            self._api.query, filter=filter, sort=sort, after=after, limit=limit, idempotency_key=idempotency_key
        )

    def count(self, *, filter: str | None = None) -> Count:
        """How many mcp servers a filter means, of those that the caller may see."""
        return self._loop.run(self._api.count, filter=filter)

    def list(
        self, *, filter: str | None = None, sort: str | None = None, after: str | None = None, limit: int | None = None
    ) -> McpServerPage:
        """The mcp_servers that the caller may read."""
        return self._loop.run(self._api.list, filter=filter, sort=sort, after=after, limit=limit)

    def each(
        self, *, filter: str | None = None, sort: str | None = None, limit: int | None = None
    ) -> Iterator[McpServerDefinition]:
        """The mcp_servers that the caller may read.

        All of them: the next page is read when it is needed.
        """
        return self._loop.iterate(self._api.each, filter=filter, sort=sort, limit=limit)

    def get(self, name: str) -> McpServerDefinition:
        """The mcp_server in its newest revision, which the header `ETag` names."""
        return self._loop.run(self._api.get, name)

    def save(
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
        return self._loop.run(
            self._api.save,
            name,
            tools=tools,
            title=title,
            description=description,
            excluded_tools=excluded_tools,
            offer=offer,
            enabled=enabled,
            if_match=if_match,
        )

    def remove(self, name: str) -> None:
        """Take a virtual MCP server out; its address is not found any more."""
        return self._loop.run(self._api.remove, name)


class ServerApi(SyncApi[asynchronous.AsyncServerApi]):
    """The operations on server."""

    def schemas(self) -> dict[str, JsonObject]:
        """The JSON Schema of every contract, by name."""
        return self._loop.run(self._api.schemas)

    def health(self) -> Health:
        """Shows that the server is running."""
        return self._loop.run(self._api.health)
