"""A provider: a system that tools talk to, with its address, its authentication and its default headers."""

import re

from pydantic import Field

from toolcrib.contracts.base.base import Contract, JsonObject
from toolcrib.contracts.base.retries import RetryPolicy
from toolcrib.contracts.providers.auth import NoAuth, ProviderAuth, SecurityRequirement
from toolcrib.contracts.providers.connections import Connection, HttpConnection
from toolcrib.contracts.providers.providers import ReferenceSource

NAME_PATTERN = r"^[A-Za-z][A-Za-z0-9_.\-]{0,127}$"
"""Names of providers and tools."""

_VARIABLE = re.compile(r"\{([^{}]*)\}")


class ServerVariable(Contract):
    """A part of the base address that differs between installations (OpenAPI 3.1, Server Variable Object)."""

    default: str
    value: str | None = None
    """What is used; the default if null."""
    enum: tuple[str, ...] = ()
    """The values that are allowed; empty for any."""
    description: str = ""


class ProviderDefinition(Contract):
    """A system and how to reach it. Secrets only by reference."""

    name: str = Field(pattern=NAME_PATTERN)
    title: str | None = None
    enabled: bool = True
    """Its tools are not called while it is not."""
    connection: Connection = HttpConnection()
    base_url: str = ""
    """Absolute, with `{name}` for variables; empty for a program, and for a database."""
    variables: dict[str, ServerVariable] = Field(default_factory=dict)
    auth: ProviderAuth = NoAuth()
    """The one way to authenticate, where `security` is null and the operation names no other."""
    schemes: dict[str, ProviderAuth] = Field(default_factory=dict)
    """Ways to authenticate by name, for `security` here and in operations."""
    security: tuple[SecurityRequirement, ...] | None = None
    """For operations that say nothing: alternatives of which one is met, in order of preference."""
    headers: dict[str, str] = Field(default_factory=dict)
    timeout_s: float | None = Field(default=None, gt=0, le=86_400)
    """Seconds of one request; a tool's own `timeout_s` bounds all of its call."""
    retry: RetryPolicy | None = None
    """For tools whose own `retry` has a count of 0."""
    reference_data: tuple[ReferenceSource, ...] = ()
    """Lists of valid values that agentic tools may name, read by tools of this provider."""
    metadata: JsonObject = Field(default_factory=dict)
    """Where it came from: document title, version, digest."""

    @property
    def address(self) -> str:
        """The base address with its variables filled in; a name that is no variable stays."""

        def fill(match: re.Match[str]) -> str:
            variable = self.variables.get(match[1])
            if variable is None:
                return match[0]
            return variable.default if variable.value is None else variable.value

        return _VARIABLE.sub(fill, self.base_url)

    def locate(self, url: str) -> str:
        """An operation's URL in full: below the base address if it is a path, with the variables filled in either case.

        Args:
            url: From `/` on, or absolute; one that does not begin with `base_url` stays as it is.
        """
        if url.startswith("/"):
            return self.address.rstrip("/") + url
        return self.address + url.removeprefix(self.base_url) if url.startswith(self.base_url) else url
