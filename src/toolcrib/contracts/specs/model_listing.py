"""The models that an installation can use, as lists show them: where they are, what they cost, and what they can do.

What is not known is null. Nothing here contains the value of a key.
"""

from typing import Literal, TypeAlias

from toolcrib.contracts.base.base import Contract, Timestamp, Usd
from toolcrib.contracts.base.media import ModelInput
from toolcrib.contracts.specs.models_and_limits import ToolCalling

ModelOrigin: TypeAlias = Literal["built_in", "operator", "application"]
"""Who has defined a provider of models: this library, the operator (model services, plugins), or the application, which
has given the model to its crib."""


class ModelProviderInfo(Contract):
    """A provider of models, and whether this installation can ask it."""

    name: str
    """What stands before the colon of `provider:model`."""
    origin: ModelOrigin
    wire: str | None
    """Format of its requests: `chat`, `responses`, `anthropic`, `gemini`, `plain`; null for a model of the
    application."""
    address: str | None
    """Where it is; null if definitions must name it, or if the model runs in this process."""
    key_env: str | None
    """The environment variable that its key is read from; null if it takes no key."""
    key_set: bool | None
    """Whether there is a key; null if it takes none."""
    usable: bool
    """Whether a definition that names only `provider:model` can ask it. Nothing is sent to find out."""
    why_not: str | None = None
    """What is missing, and what to do."""
    prices_known: bool
    """Whether the prices of its models are in the price data."""
    tool_calling: ToolCalling | None
    """How its models call tools unless a definition says otherwise; null for a model of the application."""


class ModelPrices(Contract):
    """US dollars for a million tokens."""

    input_usd: Usd
    output_usd: Usd
    cache_read_usd: Usd
    """For input that is read from the provider's cache."""
    cache_write_usd: Usd
    tiered: bool = False
    """Longer inputs cost more; these are the rates of short ones."""
    source: str
    """The table and its version, or the configured pattern."""
    as_of: Timestamp
    """The moment for which the rates were looked up; rates change over time, and with some providers over the day."""
    note: str | None = None
    """What the price data says about them, such as when they were verified."""


class ModelInfo(Contract):
    """A model that definitions can name."""

    reference: str
    """`provider:model`."""
    provider: str
    title: str | None = None
    description: str | None = None
    usable: bool
    """As its provider's."""
    prices: ModelPrices | None
    """Null means unknown, never free."""
    why_unpriced: str | None = None
    context_window: int | None
    """Tokens that it takes in and gives out at most."""
    max_output_tokens: int | None
    """Output tokens of one answer at most, where that is known beside the context window."""
    tools: ToolCalling | None
    """How it calls tools: `native`, `schema` or `text`."""
    structured_output: str | None
    """How its answers are made to follow a schema: `json_schema`, `json_object`, `tool` or `prompt`."""
    inputs: tuple[ModelInput, ...] | None
    """What it reads besides text: `image`, `pdf`, `audio`. Of a model of which nothing is known it is empty, and files
    are described to it in words; null for a model of the application."""
    reasoning: bool | None
    """Whether it thinks before it answers, and takes no temperature."""
    deprecated: bool | None
    """Whether its provider is giving it up."""
