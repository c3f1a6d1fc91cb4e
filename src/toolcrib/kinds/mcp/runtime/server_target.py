"""What is known about a server before a connection to it is opened."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from toolcrib.contracts import McpConnection, Principal, ProviderDefinition
from toolcrib.core.providers import ProviderAccess
from toolcrib.infrastructure.net import HttpSession


@dataclass(frozen=True, slots=True)
class ServerTarget:
    """A server, and in whose name it is asked."""

    provider: ProviderDefinition
    connection: McpConnection
    """The provider's."""
    principal: Principal
    session: HttpSession
    access: ProviderAccess
    now: Callable[[], datetime]
    environment: Mapping[str, str] = field(repr=False)
    """All variables of a program."""
    secrets: tuple[str, ...] = field(repr=False)
    """Those of its values that must not be shown."""
