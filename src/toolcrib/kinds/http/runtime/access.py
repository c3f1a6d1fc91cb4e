"""With what right a call is made: the credentials of its provider, found anew when a fetched token was refused."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from toolcrib.contracts import Principal, ProviderDefinition, Reason, SecurityRequirement
from toolcrib.core.executor import CallFailed
from toolcrib.core.providers import Credentials, ProviderAccess
from toolcrib.infrastructure.net.origins import Origin, origin_of


@dataclass(frozen=True, slots=True)
class Access:
    """One operation's way to its credentials."""

    provider: ProviderDefinition | None
    """Null for an operation without credentials."""
    url: str
    security: Sequence[SecurityRequirement] | None
    principal: Principal
    providers: ProviderAccess = field(repr=False)

    @property
    def origins(self) -> frozenset[Origin | None]:
        """Where a following page may be: the operation's own origin, and its provider's."""
        base = None if self.provider is None else self.provider.address
        return frozenset({origin_of(self.url), origin_of(base or self.url)} - {None})

    async def credentials(self) -> Credentials:
        """What a request has to carry now; see `ProviderAccess.credentials`."""
        if self.provider is None:
            return Credentials()
        return await self.providers.credentials(self.provider, self.url, self.principal, self.security)

    def judged(self, failure: CallFailed, credentials: Credentials) -> CallFailed:
        """A failure, which says who has to act where a person's connection was refused for good."""
        if failure.http_status == 401 and credentials.consented and self.provider is not None:
            name = self.provider.name
            message = f"{failure.error.message}; reconnect with `toolcrib provider connect {name}`"
            details = {**(failure.error.details or {}), "reason": Reason.RECONNECT_REQUIRED.value}
            failure.error = failure.error.model_copy(update={"message": message, "details": details})
        return failure

    def forget(self, credentials: Credentials) -> bool:
        """These credentials were refused: returns whether there are tokens among them to fetch anew."""
        return self.providers.forget(credentials)
