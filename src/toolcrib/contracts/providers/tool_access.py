"""Whether a tool's provider can be used by a principal: its sign-in, and where its secrets come from. Never a value."""

from typing import Literal, TypeAlias

from toolcrib.contracts.base.base import Contract, Timestamp
from toolcrib.contracts.providers.connections import SecretScope

SignInStatus: TypeAlias = Literal["not_needed", "connected", "expired", "missing"]
"""`expired`: the person or the realm has to connect again. `missing`: nobody has connected yet."""
SecretSource: TypeAlias = SecretScope | Literal["environment"]


class SecretUse(Contract):
    """A secret that calls of a tool need."""

    reference: str
    """`${secret:NAME}` or `${env:NAME}`."""
    found_in: SecretSource | None
    """The scope that calls of this principal take it from: one of the vault's, or the environment; null if there is
    none."""
    problem: str | None = None
    """Why there is none, and what to do."""


class ToolAccess(Contract):
    """What stands between a principal and the system behind a tool. What the tool calls has its own."""

    tool: str
    provider: str | None
    """Null for a tool without one."""
    problem: str | None = None
    """Why no call gets that far: the provider does not exist, or is disabled."""
    sign_in: SignInStatus = "not_needed"
    shared: bool = False
    """The sign-in is that of the whole realm."""
    expires_at: Timestamp | None = None
    """When the current token expires; it is then refreshed if possible."""
    secrets: tuple[SecretUse, ...] = ()
    """Those that the principal may know of; of several ways to authenticate, those of the one that calls would take."""
    hidden_secrets: int = 0
    """Others, which it has no `ai://secrets/{name}/read` for."""
    ready: bool
    """Whether nothing is missing. Whether the provider accepts the credentials, only a test of it tells."""
