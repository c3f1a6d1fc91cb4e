"""Reference data: the valid values of an argument, where they are listed, and a reading of them at one moment.

A source says where a list comes from. A snapshot names what a sync brought, by the hash of its content; the values
themselves are a blob, not a contract.
"""

from pydantic import Field

from toolcrib.contracts.base.base import Contract, Json, JsonObject, Timestamp


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
    """Seconds for which all runs of the realm may use what one of them has read; 0: each run reads it anew."""
    sync_every_s: float | None = Field(default=None, ge=10, le=31_536_000)
    """Seconds between readings by a serving process, for a list that a provider declares; null for none."""
    max_loss: float = Field(default=0.5, ge=0, le=1)
    """Share of its values that a list of five or more may lose at once; a list that loses more, or all, is not used
    until it is accepted."""
    keep: int = Field(default=20, ge=1, le=1_000)
    """Readings that the history shows."""


class ProviderData(Contract):
    """Reference data that a provider declares, by name (`integrationId` and `dataTypes` of 000, section 4.3)."""

    provider: str
    data_types: tuple[str, ...] = Field(min_length=1)
    """Names in the provider's `reference_data`."""


class ReferenceSnapshot(Contract):
    """One list of a provider, as it was read last."""

    provider: str
    name: str
    tool: str | None
    """The tool that lists the values; null if they stand in the provider's definition."""
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
    """What readings of a list brought, as long as they brought the same."""

    id: str
    """Content hash of the values: what a run that used them has in its trace."""
    size: int
    first_at: Timestamp
    fetched_at: Timestamp
    """Of the last of these readings."""
    refused: str | None = None
    """Why the list was not believed, if it was not."""
