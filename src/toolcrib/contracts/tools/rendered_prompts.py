"""Whole prompts: what a tool would send to its model, and what a run has sent. These views send nothing."""

from pydantic import Field

from toolcrib.contracts.base.base import Contract, Json, JsonObject, JsonSchema, Usd
from toolcrib.contracts.runs.runs import Purpose
from toolcrib.contracts.specs.agents import AgenticMode


class PromptTokens(Contract):
    """The length of a prompt in tokens, by its parts."""

    system: int
    messages: int
    tools: int
    total: int
    method: str
    """How they were counted; the provider's own count may differ."""


class PromptTool(Contract):
    """A tool as the model sees it."""

    name: str
    description: str
    input_schema: JsonSchema


class ModelPrompt(Contract):
    """A request to a model, whatever the format of its wire."""

    model: str
    """`provider:model`."""
    system: str
    messages: tuple[JsonObject, ...]
    """`role` and `parts` of each; a part has a `type`: `text`, `tool_call`, `tool_result`…"""
    tools: tuple[PromptTool, ...]
    tool_choice: Json
    """`auto`, `none`, `any`, or the tool that must be called."""
    output_schema: JsonSchema | None
    """What the answer must follow; null for words."""
    settings: JsonObject = Field(default_factory=dict)
    """`max_tokens`, `temperature` and what else is set."""
    tokens: PromptTokens
    input_cost_usd: Usd | None
    """What so many input tokens cost; null means unknown."""


class SentPrompt(ModelPrompt):
    """A request of a past model call, as its run made it."""

    run_id: str
    position: str
    purpose: Purpose
    attempt: int
    """1 for the first; several attempts have the same prompt."""


class PlaceholderValue(Contract):
    """A placeholder of a system prompt."""

    name: str
    """Without the braces: `available_tools`, `reference_data.stages`."""
    description: str
    used: bool
    """Whether the prompt has it."""
    characters: int | None
    """Length of its value now; null if it differs with each input or turn."""
    tokens: int | None
    """Estimated likewise."""
    preview: str | None = None
    """The beginning of its value."""


class PromptPlaceholders(Contract):
    """The placeholders that a tool's system prompt can use."""

    tool: str
    items: tuple[PlaceholderValue, ...]
    problems: tuple[str, ...] = ()
    """Why values are not known, and what is wrong with the prompt."""


class RenderedPrompt(Contract):
    """The first request that a tool would send to its model for an input. Nothing was sent."""

    tool: str
    mode: AgenticMode
    model: str
    input: JsonObject
    prompt: ModelPrompt | None
    """Null if it could not be made."""
    placeholders: tuple[PlaceholderValue, ...] = ()
    problems: tuple[str, ...] = ()
    """What would go wrong: unknown placeholders, missing tools, drift."""
