"""Synchronous forms of the classes of several modules.

`toolcrib.crib.providers.connections`,
`toolcrib.crib.providers.model_catalog`,
`toolcrib.crib.providers.reference_data`,
`toolcrib.crib.providers.secrets`.

Written by `python -m tools.sync_facade`; not to be edited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.sync.event_loop import EventLoopThread, Facade

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from toolcrib.contracts import (
        Consent,
        ConsentRequest,
        Discovery,
        ProviderCheck,
        ProviderDefinition,
        ReferenceReading,
        ReferenceSnapshot,
        ReferenceValues,
        Revocation,
        SecretEntry,
        SecretScope,
        ToolRevision,
    )
    from toolcrib.contracts.providers.tool_access import ToolAccess
    from toolcrib.contracts.specs.model_listing import ModelInfo, ModelProviderInfo
    from toolcrib.contracts.workflows.provider_use import (
        ProviderImpact,
        ProviderRemoval,
        ProviderUsage,
        ToolsOfProvider,
    )
    from toolcrib.crib.providers.connections import Connections as AsynchronousConnections
    from toolcrib.crib.providers.model_catalog import ModelCatalog as AsynchronousModelCatalog
    from toolcrib.crib.providers.model_catalog import ModelsPage
    from toolcrib.crib.providers.reference_data import ReferenceData as AsynchronousReferenceData
    from toolcrib.crib.providers.secrets import Secrets as AsynchronousSecrets


class Connections(Facade):
    """Tests providers, and makes, lists and revokes connections.

    Args:
        parts: The parts of the crib.
        actor: The actor of the crib.
    """

    def __init__(self, asynchronous: AsynchronousConnections, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._connections = asynchronous

    def provider(self, name: str) -> ProviderDefinition:
        """The provider of this name in the caller's realm.

        Raises:
            NotFound: There is none.

        Example:
            crm = crib.connections.provider("crm")
            print(crm.base_url)
        """
        return self._loop.run(self._connections.provider, name)

    def test(self, name: str) -> ProviderCheck:
        """Reach a provider with the caller's credentials, by harmless requests or a connection.

        Raises:
            NotFound: There is no such provider. All other errors are in the result.

        Example:
            check = crib.connections.test("crm")
            print(check.reachable, check.authenticated, check.message)
        """
        return self._loop.run(self._connections.test, name)

    def discover(self, name: str) -> Discovery:
        """What a provider offers for import; nothing is imported.

        Raises:
            NotFound: There is no such provider.
            ReconnectRequired: It refuses the credentials, or there are none.
            Unavailable: It cannot be reached.
            PermissionDenied: The egress policy or the operator forbids it.
            InvalidInput: It answers with something else than expected.

        Example:
            from toolcrib.contracts import DatabaseConnection, ProviderDefinition

            shop = DatabaseConnection(url="${env:SHOP_DATABASE_URL}")
            crib.save_provider(ProviderDefinition(name="shop", connection=shop))
            print(crib.connections.discover("shop").items)
        """
        return self._loop.run(self._connections.discover, name)

    def access(self, *tools: ToolRevision | str) -> Sequence[ToolAccess]:
        """What stands between the caller and the systems behind tools: sign-ins and secrets, never their values.

        Args:
            *tools: The tools, or their names.

        Raises:
            NotFound: No such tool.

        Example:
            [access] = crib.connections.access("search_deals")
            print(access.ready, access.sign_in, [(use.reference, use.found_in) for use in access.secrets])
        """
        return self._loop.run(self._connections.access, *tools)

    def impact(self, name: str) -> ProviderImpact:
        """What depends on a provider: its tools, agentic tools with its lists, and what is bound to these.

        Raises:
            NotFound: There is no such provider.

        Example:
            from toolcrib.contracts import ProviderDefinition

            crib.save_provider(ProviderDefinition(name="crm", base_url="https://crm.example"))
            print([(each.kind, each.name) for each in crib.connections.impact("crm").dependents])
        """
        return self._loop.run(self._connections.impact, name)

    def remove(self, name: str, *, tools: ToolsOfProvider = "refuse") -> ProviderRemoval:
        """Remove a provider. Its connections and secrets stay; disconnect and remove them first if they are to go.

        Args:
            name: Of the provider.
            tools: What becomes of its tools, see `ToolsOfProvider`.

        Raises:
            NotFound: There is no such provider.
            Conflict: Something depends on it, and `tools` is `refuse`; the message names what would break.
            PermissionDenied: The principal may not write a tool that is to be removed.

        Example:
            from toolcrib.contracts import ProviderDefinition

            crib.save_provider(ProviderDefinition(name="old_crm", base_url="https://crm.example"))
            print(crib.connections.remove("old_crm").message)
        """
        return self._loop.run(self._connections.remove, name, tools=tools)

    def usage(
        self, *names: str, since: datetime | None = None, until: datetime | None = None, most_runs: int = 1000
    ) -> Sequence[ProviderUsage]:
        """The calls, errors, latencies and costs of providers in the runs that began in a time.

        The journals of the realm's runs are read, the newest first, so it is the work of a report and not of a call.

        Args:
            *names: Of the providers; all of the realm if none is given.
            since: Beginning of the time; 30 days before its end if null.
            until: Its end; now if null.
            most_runs: Maximum number of runs that are read; `complete` is false if there are more.

        Raises:
            NotFound: There is no such provider.
            InvalidInput: The time ends before it begins.

        Example:
            for usage in crib.connections.usage():
                print(usage.provider, usage.calls, usage.errors, usage.latency_ms, usage.cost_usd)
        """
        return self._loop.run(self._connections.usage, *names, since=since, until=until, most_runs=most_runs)

    def begin(self, name: str, *, redirect_uri: str) -> ConsentRequest:
        """Where to send a person to connect to a provider.

        Args:
            name: Of the provider; its authentication is an `AuthorizationCodeAuth` or a `ProtectedResourceAuth`.
            redirect_uri: Where the person comes back to: https, or http on this machine.

        Raises:
            NotFound: There is no such provider.
            InvalidInput: Its authentication does not use a browser, or an address is not protected.
            InvalidSettings: There are no master keys.
            ReconnectRequired: The client's own id or secret is missing.
            Unavailable: The authorization server cannot be reached.

        Example:
            from toolcrib.contracts import AuthorizationCodeAuth, ProviderDefinition

            login = "https://login.mail.example"
            auth = AuthorizationCodeAuth(
                authorization_url=f"{login}/authorize", token_url=f"{login}/token", client_id="toolcrib"
            )
            crib.save_provider(ProviderDefinition(name="mail", base_url="https://mail.example", auth=auth))
            request = crib.connections.begin("mail", redirect_uri="http://127.0.0.1:8765/callback")
            print("Open", request.url)
        """
        return self._loop.run(self._connections.begin, name, redirect_uri=redirect_uri)

    def finish(self, redirected: str | Mapping[str, str]) -> Consent:
        """Complete a connection with the address to which the browser was redirected.

        Args:
            redirected: The whole URL that the browser was sent to, or its parameters: `state` and `code`.

        Raises:
            NotFound: The state is unknown, used, expired or another principal's, or the provider is gone.
            InvalidInput: The server refused, or the answer is not its.
            ReconnectRequired: The token endpoint refused.
            Unavailable: The authorization server cannot be reached.

        Example:
            consent = crib.connections.finish("http://127.0.0.1:8765/callback?code=4711&state=s1")
            print(consent.provider, consent.status, consent.scopes)
        """
        return self._loop.run(self._connections.finish, redirected)

    def list(self) -> Sequence[Consent]:
        """The connections that the caller's calls use.

        Example:
            for connection in crib.connections.list():
                print(connection.provider, connection.status)
        """
        return self._loop.run(
            self._connections.list,
        )

    def revoke(self, name: str, *, shared: bool = False) -> Revocation:
        """Give up a connection; the answer says whether the server has taken its tokens back.

        Raises:
            NotFound: There is no such connection.

        Example:
            for connection in crib.connections.list():
                crib.connections.revoke(connection.provider)
        """
        return self._loop.run(self._connections.revoke, name, shared=shared)


class ModelCatalog(Facade):
    """Lists models and their providers. A principal sees those of providers that it has `ai://models/{name}/read` for.

    Args:
        parts: The parts of the crib.
        actor: The actor of the crib.
    """

    def __init__(self, asynchronous: AsynchronousModelCatalog, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._model_catalog = asynchronous

    def providers(self) -> Sequence[ModelProviderInfo]:
        """The providers of models by name, whether they can be asked or not.

        Example:
            for provider in crib.model_catalog.providers():
                print(provider.name, provider.wire, provider.key_set)
        """
        return self._loop.run(
            self._model_catalog.providers,
        )

    def page(
        self,
        *,
        provider: str | None = None,
        text: str = "",
        usable: bool | None = None,
        after: str = "",
        limit: int = 50,
    ) -> ModelsPage:
        """The models that come after a reference, as far as the price data or the application names them.

        Args:
            provider: Only models of this provider; null for those of all.
            text: Text to find in the reference.
            usable: Only models of providers that can be asked now, or cannot; null for all.
            after: A reference; empty for the beginning.
            limit: At most so many.

        Example:
            page = crib.model_catalog.page(provider="openai", text="4o", limit=5)
            for model in page.items:
                print(model.reference, model.context_window, model.prices)
        """
        return self._loop.run(
            self._model_catalog.page, provider=provider, text=text, usable=usable, after=after, limit=limit
        )

    def get(self, reference: str) -> ModelInfo:
        """What is known of one model, also of one that no list has.

        Args:
            reference: `provider:model`.

        Raises:
            NotFound: There is no such provider, or no such model where all are known.
            PermissionDenied: The principal has no grant to see the provider's models.

        Example:
            model = crib.model_catalog.get("anthropic:claude-sonnet-4-5")
            print(model.prices or model.why_unpriced)
        """
        return self._loop.run(self._model_catalog.get, reference)


class ReferenceData(Facade):
    """The reference data of a crib's providers.

    Args:
        parts: The parts of the crib.
        actor: The actor of the crib.
        invoke: Makes one call as a run, so that a sync has its receipt.
    """

    def __init__(self, asynchronous: AsynchronousReferenceData, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._reference_data = asynchronous

    def list(self, provider: str | None = None) -> Sequence[ReferenceSnapshot]:
        """Every list that a provider declares, or all do, with its last snapshot.

        Raises:
            NotFound: No such provider.

        Example:
            for snapshot in crib.reference_data.list("crm"):
                print(snapshot.name, snapshot.size, snapshot.age_s)
        """
        return self._loop.run(self._reference_data.list, provider)

    def history(self, provider: str, name: str) -> Sequence[ReferenceReading]:
        """The results of the last readings of a list, newest first, including those that were rejected as implausible.

        Raises:
            NotFound: No such provider, or it declares no such list.

        Example:
            for reading in crib.reference_data.history("crm", "stages"):
                print(reading.fetched_at, reading.size, reading.refused)
        """
        return self._loop.run(self._reference_data.history, provider, name)

    def values(self, provider: str, name: str) -> ReferenceValues:
        """The values of a list that are in use, however old they are.

        Raises:
            NotFound: No such provider, it declares no such list, or the list was never read.

        Example:
            stages = crib.reference_data.values("crm", "stages")
            print([each.label for each in stages.values])
        """
        return self._loop.run(self._reference_data.values, provider, name)

    def sync_due(self) -> Sequence[ReferenceSnapshot]:
        """Read every list of a realm whose schedule says so and whose turn no other process has taken.

        Example:
            for snapshot in crib.reference_data.sync_due():
                print(snapshot.name, snapshot.error or snapshot.size)
        """
        return self._loop.run(
            self._reference_data.sync_due,
        )

    def sync(self, provider: str | None = None, *names: str, accept: bool = False) -> Sequence[ReferenceSnapshot]:
        """Read lists now, however young their snapshots are. One that fails has its error and its last snapshot.

        Args:
            provider: Name of the provider; all if null.
            *names: Lists of it; all if none is given.
            accept: Believe lists that have lost most of their values.

        Raises:
            NotFound: No such provider, or it declares no such list.

        Example:
            [stages] = crib.reference_data.sync("crm", "stages")
            print(stages.size, stages.error)
        """
        return self._loop.run(self._reference_data.sync, provider, *names, accept=accept)


class Secrets(Facade):
    """Sets, lists and removes secrets.

    Args:
        parts: The parts of the crib.
        actor: The actor of the crib.
    """

    def __init__(self, asynchronous: AsynchronousSecrets, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._secrets = asynchronous

    def set(self, name: str, value: str, *, scope: SecretScope = "realm") -> SecretEntry:
        """Set a secret of the caller, of the caller's realm, or of all realms.

        Raises:
            InvalidInput: The name cannot be used in a reference, or the value is empty or too long.
            InvalidSettings: There are no master keys, or `toolcrib[vault]` is not installed.
            Conflict: Another process set it at the same time.

        Example:
            from toolcrib.contracts import BearerAuth, ProviderDefinition

            crib.secrets.set("CRM_TOKEN", "t0k3n")
            auth = BearerAuth(token="${secret:CRM_TOKEN}")
            crib.save_provider(ProviderDefinition(name="crm", base_url="https://api.crm.example", auth=auth))
        """
        return self._loop.run(self._secrets.set, name, value, scope=scope)

    def list(self) -> Sequence[SecretEntry]:
        """The secrets that the caller's calls can use, without values.

        Example:
            crib.secrets.set("CRM_TOKEN", "t0k3n")
            print([(entry.name, entry.version) for entry in crib.secrets.list()])
        """
        return self._loop.run(
            self._secrets.list,
        )

    def remove(self, name: str, *, scope: SecretScope = "realm") -> None:
        """Remove a secret.

        Raises:
            NotFound: The scope has no secret of this name.

        Example:
            crib.secrets.set("CRM_TOKEN", "t0k3n", scope="user")
            crib.secrets.remove("CRM_TOKEN", scope="user")
        """
        return self._loop.run(self._secrets.remove, name, scope=scope)

    def rotate(self) -> int:
        """Seal all secrets and connections of all realms under the newest master key; returns how many were not.

        Raises:
            InvalidSettings: There are no master keys, or an old one is missing.
            Unavailable: One changed during the rotation; rotate again.

        Example:
            count = crib.secrets.rotate()  # after a new first key in TOOLCRIB_MASTER_KEYS
        """
        return self._loop.run(
            self._secrets.rotate,
        )
