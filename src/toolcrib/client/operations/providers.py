"""The operations on providers, connections, secrets.

Written by `python -m tools.rest_client`.
"""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Literal

from toolcrib.client.answer_parts import ProviderView
from toolcrib.client.answers import (
    ConsentPage,
    Count,
    ImportView,
    ProviderPage,
    ProviderUsageList,
    ReadingPage,
    SecretPage,
    SnapshotPage,
)
from toolcrib.client.groups import AsyncApi
from toolcrib.client.transport import ApiRequest, given
from toolcrib.contracts import (
    Consent,
    ConsentRequest,
    Discovery,
    JsonObject,
    ProviderCheck,
    ProviderDefinition,
    ProviderSync,
    Revocation,
    SecretEntry,
)
from toolcrib.contracts.workflows.provider_use import ProviderImpact, ProviderRemoval, ProviderUsage


class AsyncProvidersApi(AsyncApi):
    """The operations on providers."""

    async def sync(self, name: str, *, accept: bool | None = None, idempotency_key: str | None = None) -> ImportView:
        """Import a provider again from where it was imported: its server, its database, or the address of its document."""
        return await self._transport.send(
            ImportView,
            ApiRequest(
                method="POST",
                path="/api/v1/providers/{name}/sync",
                place={"name": name},
                body=given(accept=accept),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def schedule(
        self, name: str, *, every_s: float | None = None, cron: str | None = None, timezone: str | None = None
    ) -> ProviderSync:
        """Have serving processes sync a provider by themselves, at an interval or at times."""
        return await self._transport.send(
            ProviderSync,
            ApiRequest(
                method="PUT",
                path="/api/v1/providers/{name}/schedule",
                place={"name": name},
                body=given(every_s=every_s, cron=cron, timezone=timezone),
            ),
        )

    async def unschedule(self, name: str) -> ProviderSync:
        """End the schedule of a provider: it is then synced only on request."""
        return await self._transport.send(
            ProviderSync, ApiRequest(method="DELETE", path="/api/v1/providers/{name}/schedule", place={"name": name})
        )

    async def list_reference_data(self, name: str) -> SnapshotPage:
        """Every list that a provider declares, with its last snapshot."""
        return await self._transport.send(
            SnapshotPage, ApiRequest(method="GET", path="/api/v1/providers/{name}/reference-data", place={"name": name})
        )

    async def sync_reference_data(
        self,
        name: str,
        *,
        names: Sequence[str] | None = None,
        accept: bool | None = None,
        idempotency_key: str | None = None,
    ) -> SnapshotPage:
        """Read lists now. One that fails has its error and its last snapshot."""
        return await self._transport.send(
            SnapshotPage,
            ApiRequest(
                method="POST",
                path="/api/v1/providers/{name}/reference-data/sync",
                place={"name": name},
                body=given(names=names, accept=accept),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def reference_data_history(self, name: str, list_name: str) -> ReadingPage:
        """The results of the last readings of a list, newest first."""
        return await self._transport.send(
            ReadingPage,
            ApiRequest(
                method="GET",
                path="/api/v1/providers/{name}/reference-data/{list_name}/history",
                place={"name": name, "list_name": list_name},
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
    ) -> ProviderPage:
        """The providers that a filter means, page by page."""
        return await self._transport.send(
            ProviderPage,
            ApiRequest(
                method="POST",
                path="/api/v1/providers/query",
                body=given(filter=filter, sort=sort, after=after, limit=limit),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def count(self, *, filter: str | None = None) -> Count:
        """How many providers a filter means, of those that the caller may see."""
        return await self._transport.send(
            Count, ApiRequest(method="GET", path="/api/v1/providers/count", query=given(filter=filter))
        )

    async def list(
        self, *, filter: str | None = None, sort: str | None = None, after: str | None = None, limit: int | None = None
    ) -> ProviderPage:
        """The providers that the caller may read. They contain references to secrets, never values."""
        return await self._transport.send(
            ProviderPage,
            ApiRequest(
                method="GET", path="/api/v1/providers", query=given(filter=filter, sort=sort, after=after, limit=limit)
            ),
        )

    def each(
        self, *, filter: str | None = None, sort: str | None = None, limit: int | None = None
    ) -> AsyncGenerator[ProviderView]:
        """The providers that the caller may read. They contain references to secrets, never values.

        All of them: the next page is read when it is needed.
        """
        return self._transport.each(
            ProviderPage,
            ApiRequest(method="GET", path="/api/v1/providers", query=given(filter=filter, sort=sort, limit=limit)),
            "after",
        )

    async def define(self, definition: JsonObject, *, idempotency_key: str | None = None) -> ProviderDefinition:
        """Create or replace a provider. The caller needs a grant for each secret that it names."""
        return await self._transport.send(
            ProviderDefinition,
            ApiRequest(
                method="POST", path="/api/v1/providers", body=definition, headers={"Idempotency-Key": idempotency_key}
            ),
        )

    async def get(self, name: str) -> ProviderView:
        """A provider's definition, with its last sync."""
        return await self._transport.send(
            ProviderView, ApiRequest(method="GET", path="/api/v1/providers/{name}", place={"name": name})
        )

    async def replace(self, name: str, definition: JsonObject) -> ProviderDefinition:
        """Create or replace a provider under its name. The caller needs a grant for each secret that it names."""
        return await self._transport.send(
            ProviderDefinition,
            ApiRequest(method="PUT", path="/api/v1/providers/{name}", place={"name": name}, body=definition),
        )

    async def remove(self, name: str, *, tools: Literal["refuse", "keep", "remove"] | None = None) -> ProviderRemoval:
        """Remove a provider that nothing depends on; any other with `tools=remove` (its tools too) or `tools=keep`."""
        return await self._transport.send(
            ProviderRemoval,
            ApiRequest(
                method="DELETE", path="/api/v1/providers/{name}", place={"name": name}, query=given(tools=tools)
            ),
        )

    async def get_impact(self, name: str) -> ProviderImpact:
        """What depends on a provider: its tools, agentic tools with its lists, and what is bound to these."""
        return await self._transport.send(
            ProviderImpact, ApiRequest(method="GET", path="/api/v1/providers/{name}/impact", place={"name": name})
        )

    async def get_usage(
        self, name: str, *, since: datetime | None = None, until: datetime | None = None
    ) -> ProviderUsage:
        """Calls, errors, latencies and costs of a provider in the runs that began in a time; the last 30 days."""
        return await self._transport.send(
            ProviderUsage,
            ApiRequest(
                method="GET",
                path="/api/v1/providers/{name}/usage",
                place={"name": name},
                query=given(since=since, until=until),
            ),
        )

    async def test(self, name: str, *, idempotency_key: str | None = None) -> ProviderCheck:
        """Reach a provider with the caller's credentials, by one harmless request or connection."""
        return await self._transport.send(
            ProviderCheck,
            ApiRequest(
                method="POST",
                path="/api/v1/providers/{name}/test",
                place={"name": name},
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def discover(self, name: str, *, idempotency_key: str | None = None) -> Discovery:
        """What a provider offers for import; nothing is imported."""
        return await self._transport.send(
            Discovery,
            ApiRequest(
                method="POST",
                path="/api/v1/providers/{name}/discover",
                place={"name": name},
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def connect(
        self, name: str, *, redirect_uri: str | None = None, idempotency_key: str | None = None
    ) -> ConsentRequest:
        """The address where a person grants access. The cookie is for the browser of that person, who is the caller."""
        return await self._transport.send(
            ConsentRequest,
            ApiRequest(
                method="POST",
                path="/api/v1/providers/{name}/connect",
                place={"name": name},
                body=given(redirect_uri=redirect_uri),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def list_usage(self, *, since: datetime | None = None, until: datetime | None = None) -> ProviderUsageList:
        """The same of all providers that the caller may read."""
        return await self._transport.send(
            ProviderUsageList,
            ApiRequest(method="GET", path="/api/v1/usage/providers", query=given(since=since, until=until)),
        )


class AsyncConnectionsApi(AsyncApi):
    """The operations on connections."""

    async def list(self) -> ConsentPage:
        """The caller's own connections, and those of the realm to providers that the caller may read."""
        return await self._transport.send(ConsentPage, ApiRequest(method="GET", path="/api/v1/connections"))

    async def finish(self, *, url: str, idempotency_key: str | None = None) -> Consent:
        """Take in what a person came back with; the caller is who began."""
        return await self._transport.send(
            Consent,
            ApiRequest(
                method="POST",
                path="/api/v1/connections",
                body=given(url=url),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def revoke(self, name: str, *, shared: bool | None = None) -> Revocation:
        """Revoke a connection, the caller's own or the realm's; the response says whether its tokens were revoked."""
        return await self._transport.send(
            Revocation,
            ApiRequest(
                method="DELETE", path="/api/v1/connections/{name}", place={"name": name}, query=given(shared=shared)
            ),
        )


class AsyncSecretsApi(AsyncApi):
    """The operations on secrets."""

    async def query(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> SecretPage:
        """The secrets that a filter means, page by page."""
        return await self._transport.send(
            SecretPage,
            ApiRequest(
                method="POST",
                path="/api/v1/secrets/query",
                body=given(filter=filter, sort=sort, after=after, limit=limit),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def count(self, *, filter: str | None = None) -> Count:
        """How many secrets a filter means, of those that the caller may see."""
        return await self._transport.send(
            Count, ApiRequest(method="GET", path="/api/v1/secrets/count", query=given(filter=filter))
        )

    async def list(
        self, *, filter: str | None = None, sort: str | None = None, after: str | None = None, limit: int | None = None
    ) -> SecretPage:
        """The secrets that the caller's calls can use and that the caller may know of."""
        return await self._transport.send(
            SecretPage,
            ApiRequest(
                method="GET", path="/api/v1/secrets", query=given(filter=filter, sort=sort, after=after, limit=limit)
            ),
        )

    def each(
        self, *, filter: str | None = None, sort: str | None = None, limit: int | None = None
    ) -> AsyncGenerator[SecretEntry]:
        """The secrets that the caller's calls can use and that the caller may know of.

        All of them: the next page is read when it is needed.
        """
        return self._transport.each(
            SecretPage,
            ApiRequest(method="GET", path="/api/v1/secrets", query=given(filter=filter, sort=sort, limit=limit)),
            "after",
        )

    async def set(self, name: str, *, value: str, scope: Literal["user", "realm", "org"] | None = None) -> SecretEntry:
        """Set or replace a secret of the caller or of the realm."""
        return await self._transport.send(
            SecretEntry,
            ApiRequest(
                method="PUT", path="/api/v1/secrets/{name}", place={"name": name}, body=given(value=value, scope=scope)
            ),
        )

    async def remove(self, name: str, *, scope: Literal["user", "realm", "org"] | None = None) -> None:
        """Remove a secret of the caller or of the realm."""
        await self._transport.send(
            None,
            ApiRequest(method="DELETE", path="/api/v1/secrets/{name}", place={"name": name}, query=given(scope=scope)),
        )
