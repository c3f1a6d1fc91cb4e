"""The one way from a tool to its provider: there, enabled, and with the credentials of whoever calls.

Runtimes of every kind go through here, so that what must hold for all providers is held in one place.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from toolcrib.contracts import ErrorCode, Principal, ProviderDefinition, Reason, SecurityRequirement, ToolRevision
from toolcrib.core.executor import CallFailed, Secrets, error
from toolcrib.core.providers.auth.consents import Consents
from toolcrib.core.providers.auth.credentials import Credentials, Holder, credentials_for
from toolcrib.core.providers.auth.tokens_part import Tokens

FindProvider: TypeAlias = Callable[[str, str], ProviderDefinition | None]
"""The provider of a realm (first) by name (second)."""


class ProviderAccess:
    """Finds providers for calls, and the credentials that a call may use there.

    Args:
        find: Finds providers.
        secrets: Resolves the references of their authentication.
        tokens: Fetches and keeps what token endpoints issue to us.
        consents: Has what they issue to people.
    """

    def __init__(self, find: FindProvider, secrets: Secrets, tokens: Tokens, consents: Consents) -> None:
        self._find = find
        self._secrets = secrets
        self._tokens = tokens
        self._consents = consents

    def require(self, tool: ToolRevision, name: str) -> ProviderDefinition:
        """The provider of a tool.

        Raises:
            CallFailed: `AUTH_REQUIRED` if there is none, `POLICY_DENIED` if it is disabled.
        """
        provider = self._find(tool.realm, name)
        if provider is None:
            message = f"tool {tool.name!r} authenticates with provider {name!r}, which does not exist; define it"
            raise CallFailed(error(ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET, message))
        if not provider.enabled:
            message = f"tool {tool.name!r} needs provider {name!r}, which is disabled; enable it to call its tools"
            raise CallFailed(error(ErrorCode.POLICY_DENIED, Reason.PROVIDER_DISABLED, message))
        return provider

    async def secret(self, reference: str, principal: Principal) -> str | None:
        """The secret behind a reference that stands elsewhere than in the authentication; null if there is none.

        Raises:
            CallFailed: `AUTH_REQUIRED` if what keeps it cannot be read.
        """
        return await self.holder(principal).secret(reference)

    def holder(self, principal: Principal) -> Holder:
        """What a principal may take credentials from."""
        return Holder(principal, self._secrets, self._tokens, self._consents)

    async def credentials(
        self,
        provider: ProviderDefinition,
        url: str,
        principal: Principal,
        security: Sequence[SecurityRequirement] | None = None,
    ) -> Credentials:
        """The credentials of a principal for a request to a URL; see `credentials_for`."""
        return await credentials_for(provider, url, self.holder(principal), security)

    def forget(self, credentials: Credentials) -> bool:
        """These credentials were refused: returns whether there are tokens among them to fetch anew."""
        self._consents.forget(credentials.fetched)
        return self._tokens.forget(credentials.fetched)
