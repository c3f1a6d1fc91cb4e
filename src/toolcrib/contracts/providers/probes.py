"""What a look at a provider tells: whether it can be reached and lets us in, and what it offers."""

from toolcrib.contracts.base.base import Contract
from toolcrib.contracts.base.errors import ToolError


class ProviderCheck(Contract):
    """One harmless request or connection to a provider, made with the credentials of whoever asks."""

    provider: str
    reachable: bool
    """Whether it answered at all."""
    authenticated: bool | None
    """Whether it let us in; null if nobody can tell: it was not reached, or asks for no credentials here."""
    message: str
    seconds: float
    http_status: int | None = None
    error: ToolError | None = None
    """What a call would fail with."""


class Discovery(Contract):
    """What a provider offers for import."""

    provider: str
    items: tuple[str, ...]
    """Names of tools, services or tables, or addresses of documents; sorted."""
    kind: str
    """What they are: `tools`, `services`, `tables`, `documents`."""
    message: str
    """How to import them."""
