"""The definition of an agent as an author writes it: one flat document.

It is stored as a tool of kind `agent`. Only this module divides its fields between the tool and the implementation;
the conversion is lossless in both directions.

Example:
    desk = AgentDefinition(
        name="desk", llm=LLMConfig(model="anthropic:claude-sonnet-4"), tools=["search_deals"], system_prompt="Be brief."
    )
    await crib.agents.save(desk)
"""

import json
from collections.abc import Sequence
from typing import Any, Final, Literal, Self, cast

from pydantic import Field, field_validator

from toolcrib.contracts.base.base import Contract, JsonObject, JsonSchema, RetryPolicy, Usd
from toolcrib.contracts.base.errors import InvalidDefinition
from toolcrib.contracts.providers.providers import NAME_PATTERN
from toolcrib.contracts.specs.agents import AgentImplementation, AgentParts
from toolcrib.contracts.tools.tools import (
    CachePolicy,
    ErrorRule,
    Example,
    RateLimit,
    SecretReference,
    Surface,
    ToolDefinition,
    ToolSource,
    UnknownOutcome,
)


class Identity(Contract):
    """How it is called and described, as a tool among others."""

    name: str = Field(pattern=NAME_PATTERN)
    """Unique per realm, among tools of all kinds."""
    version: str = "1.0.0"
    """Semantic version."""
    title: str | None = None
    description: str = ""
    """What it does, for people and for agents that may call it."""
    long_description: str | None = None
    tags: tuple[str, ...] = ()
    usage: str | None = None
    """When to call it and when not."""
    examples: tuple[Example, ...] = ()
    source: ToolSource = "manual"
    metadata: JsonObject = Field(default_factory=dict)
    """As `ToolDefinition` describes it."""


class CallRules(Contract):
    """Each field as `ToolDefinition` describes it."""

    select: str | None = None
    deletes: bool | None = None
    untrusted: bool | None = None
    idempotent: bool = False
    idempotency_key: str | None = None
    reconcile: str | None = None
    on_unknown: UnknownOutcome = "fail"
    transactional: bool = False
    cache: CachePolicy = "none"
    cache_ttl_s: float | None = Field(default=None, gt=0)
    retry: RetryPolicy = RetryPolicy.model_construct()
    error_handling: tuple[ErrorRule, ...] = ()
    rate_limit: RateLimit | None = None
    estimated_latency_s: float | None = None
    cost_usd_per_call: Usd | None = None
    cost_from: str | None = None
    cost_hint: str | None = None
    requires_confirmation: bool = False
    """Every call waits for a person, before anything inside begins."""
    confirmation_expires_s: float | None = Field(default=None, gt=0, le=31_536_000)
    sequential: bool = False
    max_output_bytes: int = Field(default=2 * 1024 * 1024, ge=1)
    runs_on: Literal["server", "client"] = "server"
    secrets: tuple[SecretReference, ...] = ()

    security_uri: str | None = None
    """Permission needed to run it; `ai://agents/{name}/execute` or `ai://workflows/{name}/execute` if null."""
    available_as: tuple[Surface, ...] = ("tool", "workflow_step", "mcp_tool")
    enabled: bool = True


AGENT_CATEGORY: Final = "agent"

MESSAGE_INPUT: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "message": {"type": "string", "description": "What the agent is asked, in plain words.", "minLength": 1},
        "context": {"type": "object", "description": "Facts that it needs to know, by name."},
    },
    "required": ["message"],
    "additionalProperties": False,
}
"""What agents take if they do not say it themselves."""


class AgentDefinition(AgentParts, CallRules, Identity):
    """Everything that an author says about an agent."""

    category: str = AGENT_CATEGORY
    input_schema: JsonSchema = MESSAGE_INPUT
    """Parameters: `message` and whatever else the model is to be told before it."""

    output_schema: JsonSchema | None = None
    """The output schema; null to derive it from the format of the answer."""

    @field_validator("tools", mode="before")
    @classmethod
    def _expand_tools(cls, given: Any) -> Any:
        """A tool without a priority may be written as its reference alone."""
        if not isinstance(given, list | tuple):
            return given
        items = cast("Sequence[Any]", given)
        return [{"tool": item} if isinstance(item, str) else item for item in items]

    def tool(self) -> ToolDefinition:
        """The agent as a tool. Its side effects are those that it may have; saving looks at what its tools have."""
        inside: dict[str, Any] = {name: getattr(self, name) for name in AgentParts.model_fields}
        around: dict[str, Any] = {name: getattr(self, name) for name in _AROUND}
        implementation = AgentImplementation(**inside)
        around["output_schema"] = self.output_schema or _output_schema(implementation.answer_schema)
        return ToolDefinition(
            **around,
            side_effects=self.side_effects,
            timeout_s=self.limits.call_timeout_s,
            implementation=implementation,
        )

    @classmethod
    def of(cls, definition: ToolDefinition) -> Self:
        """The agent that a tool is.

        Raises:
            InvalidDefinition: The tool is no agent.
        """
        inside = definition.implementation
        if not isinstance(inside, AgentImplementation):
            msg = f"tool {definition.name!r} is of kind {inside.kind!r}, not an agent"
            raise InvalidDefinition(msg)
        around: dict[str, Any] = {name: getattr(definition, name) for name in _AROUND}
        if definition.output_schema == _output_schema(inside.answer_schema):
            around["output_schema"] = None
        return cls(**around, **{name: getattr(inside, name) for name in AgentParts.model_fields})


_AROUND = AgentDefinition.model_fields.keys() - AgentParts.model_fields.keys()
"""What the tool says itself. Its side effects and its time-out follow from the implementation."""


def _output_schema(answer: JsonSchema | None) -> JsonSchema:
    """The output schema of an agent. A run that a limit ended has no `output`, but has its `calls`."""
    properties: JsonSchema = {
        "response": {"type": "string", "description": "What it answers, in words; empty if it came to no answer."},
        "calls": {"type": "array", "description": "What was done until a limit or a failure ended it."},
    }
    if answer is not None:
        # References inside it would mean other places here. The run itself holds its answer against the schema.
        plain = "$ref" not in json.dumps(answer)
        properties["output"] = {key: value for key, value in answer.items() if key != "$schema"} if plain else {}
    return {"type": "object", "properties": properties, "required": ["response"]}
