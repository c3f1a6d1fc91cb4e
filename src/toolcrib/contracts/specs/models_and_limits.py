"""The choice of a model, the limits of a run, and model services that an operator defines.

Example:
    llm = LLMConfig(model="anthropic:claude-sonnet-4", temperature=0, max_tokens=2000)
    desk = crib.agent("desk", model=llm, limits=Limits(max_tool_calls=5, timeout_s=60))
"""

from decimal import Decimal
from typing import Literal, Self, TypeAlias

from pydantic import Field, model_validator

from toolcrib.contracts.base.base import Contract, JsonObject, Record, Usd
from toolcrib.contracts.base.media import ModelInput

CLOSING_S = 10.0
"""Seconds that a run has beyond the time-out of what it runs, so that the inner end is the one that is reported."""
LONGEST_CALL_S = 86_400.0
"""Seconds of one call: a day."""


ToolCalling: TypeAlias = Literal["native", "schema", "text"]
"""How a model calls tools: `native`, by its API's own means; `schema`, by an answer that follows a schema of them;
`text`, by fenced blocks in its words."""
OnMalformed: TypeAlias = Literal["refuse", "skip"]
"""What becomes of an answer with a malformed block: no call in it runs, or only the malformed ones do not."""


class LLMConfig(Contract):
    """Which model, and how it answers. Never holds a key, only where to find one."""

    model: str = Field(min_length=1)
    """`provider:model`, for example `anthropic:claude-sonnet-4`."""
    temperature: float | None = Field(default=None, ge=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1)
    """Output tokens per answer; an agentic tool allows 1,000 to 8,000."""
    max_input_tokens: int | None = Field(default=None, ge=1)
    """Context window to fill at most; null for what the model's is known to be."""
    top_p: float | None = Field(default=None, ge=0, le=1)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    reasoning_effort: str | None = Field(default=None, pattern=r"^[a-z]+$")
    """How much the model shall think before it answers: `none`, `low`, `medium`, `high`… as the provider defines it;
    its default if null."""
    base_url: str | None = None
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; the provider's usual one if null."""
    tool_calling: ToolCalling | None = None
    """The provider's usual way if null."""
    on_malformed: OnMalformed = "refuse"
    """For `text`."""
    inputs: tuple[ModelInput, ...] | None = None
    """What the model can read besides text: `image`, `pdf`, `audio`. What is known of it if null; nothing is known of a
    model on a server of your own. Files of other kinds are described to it in words."""
    prompt_cache: bool = True
    """Ask providers that cache only on request to keep what a conversation's next prompt will repeat."""
    extra: JsonObject = Field(default_factory=dict)
    """Passed to the provider as it is."""
    fallbacks: tuple[str, ...] = Field(default=(), max_length=5)
    """Models, as `provider:model`, that are asked in this order when the provider of `model` fails for good: it cannot
    be reached, is overloaded, refuses the key, or does not know the model. See `asking` for how they are asked."""

    @model_validator(mode="after")
    def _fall_back_on_others(self) -> Self:
        named = (self.model, *self.fallbacks)
        for place, model in enumerate(self.fallbacks, start=1):
            if not model or model in named[:place]:
                raise ValueError(f"fallbacks: {model!r} is empty or asked before already; name each model once")
        return self

    @property
    def candidates(self) -> tuple[Self, ...]:
        """A configuration for each model that may be asked: for `model` first, then for its fallbacks."""
        return tuple(self.asking(model) for model in (self.model, *self.fallbacks))

    def asking(self, model: str) -> Self:
        """The same for another model, without fallbacks.

        How its own model is reached holds for one of the same provider only.

        Args:
            model: `provider:model`.
        """
        if model.partition(":")[0] == self.model.partition(":")[0]:
            return self.model_copy(update={"model": model, "fallbacks": ()})
        return type(self)(model=model, temperature=self.temperature, max_tokens=self.max_tokens, top_p=self.top_p)


class Limits(Contract):
    """What one run may spend. Checked before spending, by reservation; a limit ends the run with its partial result."""

    max_iterations: int = Field(default=10, ge=1)
    """Model responses with their calls."""
    max_tool_calls: int = Field(default=25, ge=0)
    """Executor dispatches."""
    timeout_s: float = Field(default=300.0, gt=0, le=604_800)
    """Seconds of the whole run, waiting for people excluded; a week at most."""
    max_tokens_per_call: int = Field(default=4000, ge=1)
    """Output tokens of one model call; a larger configured `max_tokens` raises it."""
    max_total_tokens: int | None = Field(default=None, ge=1)
    """Input and output tokens of all model calls; null for no limit."""
    max_cost_usd: Usd | None = Field(default=Decimal("1.00"), ge=0)
    """US dollars; applies where the price is known. A limit other than the default is refused when it is saved with a
    model whose price is not known, see `allow_unpriced`."""
    allow_unpriced: bool = False
    """A model without a known price may be asked although there is a cost limit: then only its tokens are limited."""
    max_parallel_calls: int = Field(default=8, ge=1)
    max_requests: int = Field(default=200, ge=1)
    """HTTP requests inside calls: pages and retries count."""

    @property
    def call_timeout_s(self) -> float:
        """Seconds for a call of what runs within these limits: a day at most, as for every call."""
        return min(self.timeout_s + CLOSING_S, LONGEST_CALL_S)


class Allowance(Contract):
    """What a run had left when it called a tool that is a run of its own: the most that this may spend without it."""

    tool_calls: int = Field(ge=0)
    requests: int = Field(ge=0)
    tokens: int | None = Field(default=None, ge=0)
    """Null for no limit, as in the next."""
    cost_usd: Usd | None = Field(default=None, ge=0)
    seconds: float = Field(ge=0)
    """Waiting for people excluded."""

    def within(self, other: "Allowance") -> "Allowance":
        """The smaller of two allowances in each of its kinds."""
        return Allowance(
            tool_calls=min(self.tool_calls, other.tool_calls),
            requests=min(self.requests, other.requests),
            tokens=min((most for most in (self.tokens, other.tokens) if most is not None), default=None),
            cost_usd=min((most for most in (self.cost_usd, other.cost_usd) if most is not None), default=None),
            seconds=min(self.seconds, other.seconds),
        )

    def plus(self, other: "Allowance") -> "Allowance":
        """Both together; no limit stays none."""
        return Allowance(
            tool_calls=self.tool_calls + other.tool_calls,
            requests=self.requests + other.requests,
            tokens=None if self.tokens is None or other.tokens is None else self.tokens + other.tokens,
            cost_usd=None if self.cost_usd is None or other.cost_usd is None else self.cost_usd + other.cost_usd,
            seconds=self.seconds + other.seconds,
        )

    def divide(self, parts: int) -> "Allowance":
        """One of several equal parts; time passes for all of them at once."""
        return Allowance(
            tool_calls=self.tool_calls // parts,
            requests=self.requests // parts,
            tokens=None if self.tokens is None else self.tokens // parts,
            cost_usd=None if self.cost_usd is None else self.cost_usd / parts,
            seconds=self.seconds,
        )

    def bounding(self, limits: Limits) -> Limits:
        """The limits, as far as they allow no more than this; null here does not raise them."""
        tokens = [most for most in (limits.max_total_tokens, self.tokens) if most is not None]
        costs = [most for most in (limits.max_cost_usd, self.cost_usd) if most is not None]
        return limits.model_copy(
            update={
                "max_tool_calls": min(limits.max_tool_calls, self.tool_calls),
                "max_requests": min(limits.max_requests, self.requests),
                "max_total_tokens": min(tokens, default=None),
                "max_cost_usd": min(costs, default=None),
                "timeout_s": min(limits.timeout_s, self.seconds),
            }
        )


class Usage(Record):
    """Tokens of model calls. `input_tokens` includes cached ones."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False
    """The provider did not count; the numbers are estimates."""

    @property
    def total_tokens(self) -> int:
        """Input and output tokens."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        """The sum, estimated if either part is."""
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            estimated=self.estimated or other.estimated,
        )


ServiceWire: TypeAlias = Literal["openai", "openai-responses", "anthropic", "google", "plain"]


class ModelService(Contract):
    """Where models are and how they are spoken to; `NAME:MODEL` names one of them."""

    base_url: str
    wire: ServiceWire = "openai"
    """The API that it has; `plain`: one request and one answer of JSON, as the fields below say."""
    api_key_env: str | None = None
    """Variable of the key; null if it wants none."""
    tool_calling: ToolCalling | None = None
    """Null for the usual way of the wire; `plain` always calls by schema."""
    path: str = ""
    """For `plain`: behind `base_url`."""
    headers: dict[str, str] = Field(default_factory=dict)
    """For `plain`: templates over `key`; `authorization: Bearer ${key}` if empty and there is a key."""
    request: JsonObject = Field(default_factory=lambda: {"system": "${system}", "prompt": "${prompt}"})
    """For `plain`: the body, with templates over `model`, `system`, `prompt` (the conversation as one text), `messages`
    (a list of `{role, text}`), `schema`, `temperature` and `max_tokens`."""
    text: str = "$.text"
    """For `plain`: RFC 9535 path of the answer's text."""
    input_tokens: str | None = None
    """For `plain`: RFC 9535 path of the tokens read; they are estimated if null."""
    output_tokens: str | None = None
    """For `plain`: likewise, of those written."""
