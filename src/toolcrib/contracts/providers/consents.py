"""What may be told of the connections that people make to providers: everything but their tokens."""

from typing import Literal, TypeAlias

from toolcrib.contracts.base.base import Contract, Timestamp

ConsentStatus: TypeAlias = Literal["connected", "reconnect_required"]


class ConsentRequest(Contract):
    """Where a person is sent to connect, and what comes back with them."""

    provider: str
    url: str
    """To be opened in the person's browser."""
    state: str
    """Comes back in the redirect, once; it belongs to whoever began."""
    redirect_uri: str
    expires_at: Timestamp


class Consent(Contract):
    """A connection of a user, or of the whole realm, to a provider."""

    provider: str
    user: str | None
    """Whose it is; null if it is shared by all of the realm."""
    status: ConsentStatus
    problem: str | None = None
    """Why it has to be made again."""
    scopes: tuple[str, ...] = ()
    expires_at: Timestamp | None = None
    """When the token at hand expires; it is refreshed then if that is possible."""
    refreshable: bool
    made_by: str
    updated_at: Timestamp


class Revocation(Contract):
    """What became of a connection that was given up. It is gone here in any case."""

    provider: str
    user: str | None
    revoked: bool
    """Whether the server has taken its tokens back."""
    message: str
