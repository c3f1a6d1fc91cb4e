"""The synchronous operations on providers, connections, secrets.

Written by `python -m tools.rest_client`.
"""

from collections.abc import Iterator, Sequence
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
from toolcrib.client.groups import SyncApi
from toolcrib.client.operations import providers as asynchronous
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


class ProvidersApi(SyncApi[asynchronous.AsyncProvidersApi]):
    """The operations on providers."""

    def sync(self, name: str, *, accept: bool | None = None, idempotency_key: str | None = None) -> ImportView:
        """Import a provider again from where it was imported: its server, its database, or the address of its document."""
        return self._loop.run(self._api.sync, name, accept=accept, idempotency_key=idempotency_key)

    def schedule(
        self, name: str, *, every_s: float | None = None, cron: str | None = None, timezone: str | None = None
    ) -> ProviderSync:
        """Have serving processes sync a provider by themselves, at an interval or at times."""
        return self._loop.run(self._api.schedule, name, every_s=every_s, cron=cron, timezone=timezone)

    def unschedule(self, name: str) -> ProviderSync:
        """End the schedule of a provider: it is then synced only on request."""
        return self._loop.run(self._api.unschedule, name)

    def list_reference_data(self, name: str) -> SnapshotPage:
        """Every list that a provider declares, with its last snapshot."""
        return self._loop.run(self._api.list_reference_data, name)

    def sync_reference_data(
        self,
        name: str,
        *,
        names: Sequence[str] | None = None,
        accept: bool | None = None,
        idempotency_key: str | None = None,
    ) -> SnapshotPage:
        """Read lists now. One that fails has its error and its last snapshot."""
        return self._loop.run(
            self._api.sync_reference_data, name, names=names, accept=accept, idempotency_key=idempotency_key
        )

    def reference_data_history(self, name: str, list_name: str) -> ReadingPage:
        """The results of the last readings of a list, newest first."""
        return self._loop.run(self._api.reference_data_history, name, list_name)

    def query(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> ProviderPage:
        """The providers that a filter means, page by page."""
        return self._loop.run(
            self._api.query, filter=filter, sort=sort, after=after, limit=limit, idempotency_key=idempotency_key
        )

    def count(self, *, filter: str | None = None) -> Count:
        """How many providers a filter means, of those that the caller may see."""
        return self._loop.run(self._api.count, filter=filter)

    def list(
        self, *, filter: str | None = None, sort: str | None = None, after: str | None = None, limit: int | None = None
    ) -> ProviderPage:
        """The providers that the caller may read. They contain references to secrets, never values."""
        return self._loop.run(self._api.list, filter=filter, sort=sort, after=after, limit=limit)

    def each(
        self, *, filter: str | None = None, sort: str | None = None, limit: int | None = None
    ) -> Iterator[ProviderView]:
        """The providers that the caller may read. They contain references to secrets, never values.

        All of them: the next page is read when it is needed.
        """
        return self._loop.iterate(self._api.each, filter=filter, sort=sort, limit=limit)

    def define(self, definition: JsonObject, *, idempotency_key: str | None = None) -> ProviderDefinition:
        """Create or replace a provider. The caller needs a grant for each secret that it names."""
        return self._loop.run(self._api.define, definition, idempotency_key=idempotency_key)

    def get(self, name: str) -> ProviderView:
        """A provider's definition, with its last sync."""
        return self._loop.run(self._api.get, name)

    def replace(self, name: str, definition: JsonObject) -> ProviderDefinition:
        """Create or replace a provider under its name. The caller needs a grant for each secret that it names."""
        return self._loop.run(self._api.replace, name, definition)

    def remove(self, name: str, *, tools: Literal["refuse", "keep", "remove"] | None = None) -> ProviderRemoval:
        """Remove a provider that nothing depends on; any other with `tools=remove` (its tools too) or `tools=keep`."""
        return self._loop.run(self._api.remove, name, tools=tools)

    def get_impact(self, name: str) -> ProviderImpact:
        """What depends on a provider: its tools, agentic tools with its lists, and what is bound to these."""
        return self._loop.run(self._api.get_impact, name)

    def get_usage(self, name: str, *, since: datetime | None = None, until: datetime | None = None) -> ProviderUsage:
        """Calls, errors, latencies and costs of a provider in the runs that began in a time; the last 30 days."""
        return self._loop.run(self._api.get_usage, name, since=since, until=until)

    def test(self, name: str, *, idempotency_key: str | None = None) -> ProviderCheck:
        """Reach a provider with the caller's credentials, by one harmless request or connection."""
        return self._loop.run(self._api.test, name, idempotency_key=idempotency_key)

    def discover(self, name: str, *, idempotency_key: str | None = None) -> Discovery:
        """What a provider offers for import; nothing is imported."""
        return self._loop.run(self._api.discover, name, idempotency_key=idempotency_key)

    def connect(
        self, name: str, *, redirect_uri: str | None = None, idempotency_key: str | None = None
    ) -> ConsentRequest:
        """The address where a person grants access. The cookie is for the browser of that person, who is the caller."""
        return self._loop.run(self._api.connect, name, redirect_uri=redirect_uri, idempotency_key=idempotency_key)

    def list_usage(self, *, since: datetime | None = None, until: datetime | None = None) -> ProviderUsageList:
        """The same of all providers that the caller may read."""
        return self._loop.run(self._api.list_usage, since=since, until=until)


class ConnectionsApi(SyncApi[asynchronous.AsyncConnectionsApi]):
    """The operations on connections."""

    def list(self) -> ConsentPage:
        """The caller's own connections, and those of the realm to providers that the caller may read."""
        return self._loop.run(self._api.list)

    def finish(self, *, url: str, idempotency_key: str | None = None) -> Consent:
        """Take in what a person came back with; the caller is who began."""
        return self._loop.run(self._api.finish, url=url, idempotency_key=idempotency_key)

    def revoke(self, name: str, *, shared: bool | None = None) -> Revocation:
        """Revoke a connection, the caller's own or the realm's; the response says whether its tokens were revoked."""
        return self._loop.run(self._api.revoke, name, shared=shared)


class SecretsApi(SyncApi[asynchronous.AsyncSecretsApi]):
    """The operations on secrets."""

    def query(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> SecretPage:
        """The secrets that a filter means, page by page."""
        return self._loop.run(
            self._api.query, filter=filter, sort=sort, after=after, limit=limit, idempotency_key=idempotency_key
        )

    def count(self, *, filter: str | None = None) -> Count:
        """How many secrets a filter means, of those that the caller may see."""
        return self._loop.run(self._api.count, filter=filter)

    def list(
        self, *, filter: str | None = None, sort: str | None = None, after: str | None = None, limit: int | None = None
    ) -> SecretPage:
        """The secrets that the caller's calls can use and that the caller may know of."""
        return self._loop.run(self._api.list, filter=filter, sort=sort, after=after, limit=limit)

    def each(
        self, *, filter: str | None = None, sort: str | None = None, limit: int | None = None
    ) -> Iterator[SecretEntry]:
        """The secrets that the caller's calls can use and that the caller may know of.

        All of them: the next page is read when it is needed.
        """
        return self._loop.iterate(self._api.each, filter=filter, sort=sort, limit=limit)

    def set(self, name: str, *, value: str, scope: Literal["user", "realm", "org"] | None = None) -> SecretEntry:
        """Set or replace a secret of the caller or of the realm."""
        return self._loop.run(self._api.set, name, value=value, scope=scope)

    def remove(self, name: str, *, scope: Literal["user", "realm", "org"] | None = None) -> None:
        """Remove a secret of the caller or of the realm."""
        return self._loop.run(self._api.remove, name, scope=scope)
