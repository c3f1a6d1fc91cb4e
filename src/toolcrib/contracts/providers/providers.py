"""Providers, their reference data and syncs, service accounts and prompt fragments.

A reference source says where valid values are listed. A snapshot identifies one reading of them by its content hash;
the values are stored as a blob. To save an agent that acts as a service account, an author needs
`ai://accounts/{name}/execute`; a caller of the agent does not.

Example:
    from toolcrib.contracts import ProviderDefinition

    stages = ReferenceSource(name="stages", values=({"id": "won", "label": "Won"},), applies_to=("stage",))
    crm = ProviderDefinition(name="crm", base_url="https://api.crm.example", reference_data=(stages,))
    await crib.save_provider(crm)
"""

import re
from typing import Final, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from toolcrib.contracts.base.base import Contract, Json, JsonObject, RetryPolicy, Timestamp
from toolcrib.contracts.base.identity import content_hash
from toolcrib.contracts.base.principals import Principal
from toolcrib.contracts.providers.auth import NoAuth, ProviderAuth, SecurityRequirement
from toolcrib.contracts.providers.connections import Connection, HttpConnection


class ReferenceSource(Contract):
    """A named list of valid values, as context for the model and as live enums in the schemas it sees."""

    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """`{{reference_data.NAME}}` in the prompt."""
    tool: str | None = None
    """Tool that lists the values; null if `values` are given."""
    input: JsonObject = Field(default_factory=dict)
    values: tuple[Json, ...] = ()
    items: str = "$[*]"
    """RFC 9535 path of the items in the tool's output."""
    value: str = "id"
    """Field of an item that is sent."""
    label: str = "label"
    """Field of an item that people say."""
    applies_to: tuple[str, ...] = ()
    """Property names in the tools' schemas whose values this list closes."""
    max_age_s: float = Field(default=0.0, ge=0)
    """Seconds for which all runs of the realm may share one reading; 0: each run reads again."""
    sync_every_s: float | None = Field(default=None, ge=10, le=31_536_000)
    """Seconds between readings by a serving process, for a list that a provider declares; null for none."""
    max_loss: float = Field(default=0.5, ge=0, le=1)
    """Share of its values that a list of five or more may lose at once; a list that loses more, or all, is not used
    until it is accepted."""
    keep: int = Field(default=20, ge=1, le=1_000)
    """Readings that the history shows."""


class ProviderData(Contract):
    """Reference data that a provider declares, by name."""

    provider: str
    data_types: tuple[str, ...] = Field(min_length=1)
    """Names in the provider's `reference_data`."""


class ReferenceSnapshot(Contract):
    """One list of a provider, as it was read last."""

    provider: str
    name: str
    tool: str | None
    """The tool that lists the values; null if they are in the provider's definition."""
    id: str | None = None
    """Content hash of the values; null if they were never read."""
    size: int = 0
    """Values in the list."""
    fetched_at: Timestamp | None = None
    age_s: float | None = None
    """Seconds since then."""
    max_age_s: float = 0.0
    error: str | None = None
    """Why the last reading failed or is not believed; the snapshot is then the one before."""
    failed_at: Timestamp | None = None


class ReferenceReading(Contract):
    """Consecutive readings of a list with the same result."""

    id: str
    """Content hash of the values: what a run that used them has in its trace."""
    size: int
    first_at: Timestamp
    fetched_at: Timestamp
    """Of the last of these readings."""
    refused: str | None = None
    """Why the list was not believed, if it was not."""


class ReferenceValue(Contract):
    """One valid value."""

    value: Json
    """What is sent: text, a number or a boolean."""
    label: str
    """What people say; the value itself where the list has no labels."""
    extra: JsonObject = Field(default_factory=dict)
    """Everything else that the list says about it."""


class ReferenceValues(Contract):
    """The values of one list of a provider that are in use."""

    provider: str
    name: str
    id: str | None = None
    """Content hash of the snapshot; null if the values are in the provider's definition."""
    fetched_at: Timestamp | None = None
    """When they were read; null as for `id`."""
    values: tuple[ReferenceValue, ...]


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


SyncResult: TypeAlias = Literal["unchanged", "changed", "held", "failed"]
"""unchanged: it offers what it did. changed: its tools were brought up to date. held: some changes wait for a person,
and the others were adopted. failed: it could not be asked, or nothing of its offer was adopted."""


class AutoDiscover(Contract):
    """When a serving process asks a provider again what it offers: at an interval, or at times."""

    every_s: float | None = Field(default=None, ge=60, le=31_536_000)
    """Seconds between syncs."""
    cron: str | None = Field(default=None, min_length=1, max_length=200)
    """Times, in place of an interval, as triggers have them: `0 6 * * mon-fri`."""
    timezone: str = "UTC"
    """Of the times: a name of the IANA database, such as `Europe/Berlin`."""

    @model_validator(mode="after")
    def _has_one_schedule(self) -> Self:
        if (self.every_s is None) == (self.cron is None):
            raise ValueError("give either every_s, the seconds between syncs, or cron, such as '0 6 * * *'")
        return self


class ProviderSync(Contract):
    """How a provider's syncs stand, whether a schedule or a person began them."""

    provider: str
    at: Timestamp | None = None
    """When it was asked last; null if never."""
    result: SyncResult | None = None
    """Of that sync."""
    synced_at: Timestamp | None = None
    """When the last one was that did not fail."""
    counts: dict[str, int] = Field(default_factory=dict)
    """Tools by what became of them in that one: `new`, `unchanged`, `changed`, `held`, `kept`, `gone`, `returned`."""
    held: tuple[str, ...] = ()
    """Tools whose change waits for a person; the first 20."""
    error: str | None = None
    """Why the last sync failed."""
    failures: int = 0
    """Failed syncs in a row."""
    next_at: Timestamp | None = None
    """When it is asked next by itself; null if it has no schedule, or is disabled."""


class ProviderDefinition(Contract):
    """A system and how to reach it. Secrets only by reference."""

    name: str = Field(pattern=NAME_PATTERN)
    title: str | None = None
    enabled: bool = True
    """Its tools are not called while it is not."""
    connection: Connection = HttpConnection.model_construct()
    base_url: str = ""
    """Absolute, with `{name}` for variables; empty for a program, and for a database."""
    variables: dict[str, ServerVariable] = Field(default_factory=dict)
    auth: ProviderAuth = NoAuth.model_construct()
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
    imported_from: JsonObject | None = None
    """What an import has read and a sync reads again: the kind of its tools, and the fields of its import source. Null
    for what a sync asks without it, such as an MCP server, and for what cannot be asked again, such as a file."""
    auto_discover: AutoDiscover | None = None
    """When a serving process syncs it; null for never."""

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


_PREFIX: Final = "account:"


class ServiceAccount(Contract):
    """An identity without a person."""

    name: str = Field(pattern=NAME_PATTERN)
    """Unique per realm."""
    description: str = ""
    grants: tuple[str, ...] = ()
    """Patterns of security URIs, as of any principal."""
    enabled: bool = True
    """A disabled account can do nothing, also in active runs."""

    def principal(self, realm: str) -> Principal:
        """The principal that acts: `account:{name}`, which no other principal can have as id.

        It has its own secrets and connections, and none of the caller's or of a user with the same name.
        """
        grants = self.grants if self.enabled else ()
        return Principal(id=f"{_PREFIX}{self.name}", kind="service", realm=realm, grants=grants)


def account_of(principal: Principal) -> str | None:
    """Name of the principal's service account; null if it is not a service account."""
    is_account = principal.kind == "service" and principal.id.startswith(_PREFIX)
    return principal.id.removeprefix(_PREFIX) if is_account else None


class PromptFragment(Contract):
    """A named text. An agent names it, and has its newest revision in every run that begins."""

    name: str = Field(pattern=NAME_PATTERN)
    """Unique per realm."""
    description: str = ""
    """Its purpose, for authors."""
    text: str = Field(min_length=1, max_length=100_000)

    @property
    def content_hash(self) -> str:
        """The hash of all this, which names the revision."""
        return content_hash(self.model_dump(mode="json"))
