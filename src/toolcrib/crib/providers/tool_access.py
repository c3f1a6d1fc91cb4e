"""Finds out what stands between a principal and the systems behind tools: sign-ins and secrets, never their values."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from toolcrib.contracts import (
    SECRET_SCOPES,
    Consent,
    Principal,
    ProviderAuth,
    ProviderDefinition,
    SecretScope,
    ToolRevision,
)
from toolcrib.contracts.providers.tool_access import SecretUse, SignInStatus, ToolAccess
from toolcrib.core.executor import CallFailed
from toolcrib.core.policy import permits
from toolcrib.core.providers import BrowserAuth
from toolcrib.core.providers.auth.credentials import hosts_of, ways_accepted
from toolcrib.core.registry import Providers, all_references_of, references_of
from toolcrib.crib.container.environment import CredentialServices
from toolcrib.infrastructure.secrets import EnvironmentSecrets, reference_parts
from toolcrib.kinds.http.shape import HttpImplementation


@dataclass(frozen=True, slots=True)
class _Need:
    """The secrets and sign-ins that one way to authenticate needs, and whether all of them are there."""

    uses: tuple[SecretUse, ...]
    consents: tuple[tuple[BrowserAuth, Consent | None], ...]

    @property
    def is_met(self) -> bool:
        return all(use.found_in for use in self.uses) and all(
            consent is not None and consent.status == "connected" for _, consent in self.consents
        )


@dataclass(frozen=True, slots=True)
class AccessReader:
    """Tells of one principal's access to tools.

    Args:
        who: The principal.
        providers: All of them.
        variables: The environment, as definitions may use it.
        scopes: The scope that each name of the vault is taken from.
        consents: The connections that the principal's calls use.
        is_application: Whether the application itself asks, from which nothing is hidden.
    """

    who: Principal
    providers: Providers
    variables: EnvironmentSecrets
    scopes: Mapping[str, SecretScope]
    consents: Sequence[Consent]
    is_application: bool

    @classmethod
    async def open(
        cls, who: Principal, providers: Providers, keeping: CredentialServices, *, is_application: bool
    ) -> Self:
        """Read what the principal has."""
        entries = sorted(await keeping.vault.list(who), key=lambda entry: -SECRET_SCOPES.index(entry.scope))
        scopes: dict[str, SecretScope] = {entry.name: entry.scope for entry in entries}
        consents = await keeping.consents.list(who)
        return cls(who, providers, keeping.variables, scopes, consents, is_application)

    def of(self, tool: ToolRevision) -> ToolAccess:
        """The principal's access to a tool."""
        name = tool.definition.provider
        own = [secret.reference for secret in tool.definition.secrets if secret.required]
        uses = [self._use(reference, ()) for reference in own]
        if name is None:
            return self._told(tool, None, _Need(tuple(uses), ()))
        provider = self.providers.find(self.who.realm, name)
        if provider is None:
            msg = f"there is no provider {name!r}; define it"
            return ToolAccess(tool=tool.name, provider=name, problem=msg, ready=False)
        implementation = tool.definition.implementation
        security = implementation.security if isinstance(implementation, HttpImplementation) else None
        try:
            alternatives = ways_accepted(provider, security)
        except CallFailed as failure:
            return ToolAccess(tool=tool.name, provider=name, problem=failure.error.message, ready=False)
        needs = [self._need([auth for auth, _ in ways], provider) for ways in alternatives]
        chosen = next((need for need in needs if need.is_met), needs[0])
        uses += [self._use(reference, ()) for reference in _of_connection(provider)]
        problem = None if provider.enabled else f"provider {name!r} is disabled; enable it to call its tools"
        return self._told(tool, name, _Need((*uses, *chosen.uses), chosen.consents), problem)

    def _need(self, ways: Iterable[ProviderAuth], provider: ProviderDefinition) -> _Need:
        uses: list[SecretUse] = []
        consents: list[tuple[BrowserAuth, Consent | None]] = []
        for auth in ways:
            hosts = hosts_of(auth, provider)
            uses += [self._use(reference, hosts) for reference in references_of(auth)]
            if isinstance(auth, BrowserAuth):
                consents.append((auth, self._consent(provider.name, shared=auth.shared)))
        return _Need(tuple(uses), tuple(consents))

    def _consent(self, provider: str, *, shared: bool) -> Consent | None:
        found = (each for each in self.consents if each.provider == provider and (each.user is None) is shared)
        return next(found, None)

    def _use(self, reference: str, hosts: Sequence[str]) -> SecretUse:
        kind, name = reference_parts(reference)
        if kind == "secret":
            scope = self.scopes.get(name)
            problem = None if scope else "it is not set; set it: toolcrib secret set, or PUT /api/v1/secrets/{name}"
            return SecretUse(reference=reference, found_in=scope, problem=problem)
        if self.variables.find(name, self.who.realm, hosts) is not None:
            return SecretUse(reference=reference, found_in="environment")
        is_released = self.variables.is_released(name, self.who.realm, hosts)
        problem = (
            "the variable is not set; the operator sets it"
            if is_released
            else "the variable is not released to definitions of this realm for this host; "
            "the operator releases it by TOOLCRIB_RELEASED_ENV"
        )
        return SecretUse(reference=reference, found_in=None, problem=problem)

    def _told(self, tool: ToolRevision, provider: str | None, need: _Need, problem: str | None = None) -> ToolAccess:
        """What the principal is told of what a tool needs."""
        shown = tuple(use for use in dict.fromkeys(need.uses) if self._may_know(use.reference))
        auth, consent = next(iter(need.consents), (None, None))
        return ToolAccess(
            tool=tool.name,
            provider=provider,
            problem=problem,
            sign_in=_status(consent) if auth is not None else "not_needed",
            shared=auth is not None and auth.shared,
            expires_at=None if consent is None else consent.expires_at,
            secrets=shown,
            hidden_secrets=len(dict.fromkeys(need.uses)) - len(shown),
            ready=problem is None and need.is_met,
        )

    def _may_know(self, reference: str) -> bool:
        _, name = reference_parts(reference)
        return self.is_application or permits(self.who.grants, f"ai://secrets/{name}/read")


def _status(consent: Consent | None) -> SignInStatus:
    if consent is None:
        return "missing"
    return "connected" if consent.status == "connected" else "expired"


def _of_connection(provider: ProviderDefinition) -> Sequence[str]:
    """The references in how a provider is reached, besides its authentication."""
    of_auth = {each for auth in (provider.auth, *provider.schemes.values()) for each in references_of(auth)}
    return [each for each in all_references_of(provider) if each not in of_auth]
