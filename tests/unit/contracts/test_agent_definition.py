"""An agent as one flat document, and as the tool that it is stored as: nothing is lost between them."""

from decimal import Decimal
from typing import Any

import pytest

from toolcrib.contracts import (
    AgentDefinition,
    AgentImplementation,
    AgentMemory,
    AllocatedTool,
    ErrorRule,
    Example,
    InvalidDefinition,
    Limits,
    LLMConfig,
    PinnedHandle,
    PinSelector,
    RateLimit,
    RetryPolicy,
    SecretReference,
    ToolDefinition,
)
from toolcrib.contracts.specs.agents import AgentParts
from toolcrib.contracts.specs.guardrails import NoDelete
from toolcrib.kinds.python.shape import PythonImplementation

pytestmark = pytest.mark.requirement("agents.definition")

LLM = LLMConfig(model="anthropic:claude-sonnet-4")
EVERYTHING: dict[str, Any] = {
    "name": "deal-desk",
    "version": "2.1.0",
    "title": "Deal desk",
    "description": "Looks after deals.",
    "long_description": "In short: deals.",
    "category": "sales",
    "tags": ("crm",),
    "usage": "For deals only.",
    "examples": (Example(scenario="one", input={"message": "hi"}),),
    "source": "imported",
    "metadata": {"owner": "crm-team"},
    "input_schema": {"type": "object", "properties": {"message": {"type": "string"}}},
    "idempotent": True,
    "cache": "ttl",
    "cache_ttl_s": 5.0,
    "output_schema": {"type": "object"},
    "select": "$.response",
    "deletes": False,
    "untrusted": True,
    "idempotency_key": "key",
    "reconcile": "look",
    "on_unknown": "ask",
    "transactional": True,
    "error_handling": (ErrorRule(when="TIMEOUT", action="retry"),),
    "cost_usd_per_call": Decimal("0.1"),
    "cost_from": "$.cost",
    "runs_on": "client",
    "secrets": (SecretReference(name="key", reference="${env:KEY}"),),
    "retry": RetryPolicy(count=1),
    "rate_limit": RateLimit(count=1, per_s=1.0),
    "estimated_latency_s": 3.0,
    "cost_hint": "cents",
    "requires_confirmation": True,
    "confirmation_expires_s": 60.0,
    "sequential": True,
    "max_output_bytes": 1000,
    "security_uri": "ai://agents/sales/execute",
    "available_as": ("tool",),
    "enabled": False,
    "status": "draft",
    "llm": LLM,
    "system_prompt": "You look after deals.",
    "prompt_fragments": ("tone",),
    "response_format": "structured",
    "response_schema": {"type": "object", "properties": {"n": {"type": "integer"}}},
    "tools": (AllocatedTool(tool="search_deals", priority=2),),
    "tool_categories": ("crm",),
    "tool_tags": ("deals",),
    "excluded_tools": ("*_delete",),
    "max_tools_in_context": 7,
    "delegates": ("researcher",),
    "can_create_workflows": True,
    "limits": Limits(max_iterations=3, max_cost_usd=Decimal("0.5")),
    "side_effects": "reads",
    "parallel_tool_calls": False,
    "durable": True,
    "memory": AgentMemory(strategy="summary", summary_agent="shortener"),
    "guardrails": (NoDelete(),),
    "requires_approval": True,
    "principal_ref": "deal-bot",
    "realms": ("default",),
    "pins": (PinnedHandle(name="deals", selector=PinSelector(tool="search_deals")),),
}


def test_everything_that_is_said_of_an_agent_stands_in_its_tool_and_comes_back():
    definition = AgentDefinition(**EVERYTHING)
    tool = definition.tool()

    assert AgentDefinition.model_fields.keys() == EVERYTHING.keys()
    assert AgentDefinition.of(tool) == definition
    assert AgentDefinition.of(tool).tool() == tool
    assert AgentDefinition.model_validate_json(definition.model_dump_json()) == definition
    assert ToolDefinition.model_validate_json(tool.model_dump_json()) == tool


def test_an_agent_takes_a_message_and_context_and_answers_with_a_response():
    tool = AgentDefinition(name="a", llm=LLM).tool()

    assert tool.input_schema["required"] == ["message"]
    assert tool.parameter_names() == ("message", "context")
    assert tool.output_schema is not None
    assert tool.output_schema["required"] == ["response"]
    assert "output" not in tool.output_schema["properties"]
    assert (tool.category, tool.timeout_s, tool.security()) == ("agent", 310.0, "ai://agents/a/execute")


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}, {"type": "object"}),
        ({"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": {}}}, {}),
    ],
    ids=["plain", "with references"],
)
def test_its_output_has_the_shape_that_it_promises(schema: Any, shown: Any):
    tool = AgentDefinition(name="a", llm=LLM, response_format="structured", response_schema=schema).tool()

    assert (tool.output_schema or {})["properties"]["output"] == shown


@pytest.mark.parametrize(
    ("parts", "schema"),
    [({}, None), ({"response_format": "json"}, {"type": "object"})],
    ids=["text", "json"],
)
def test_its_answer_is_text_or_an_object(parts: Any, schema: Any):
    assert AgentImplementation(llm=LLM, **parts).answer_schema == schema


def test_a_tool_without_a_priority_is_written_as_its_name():
    definition = AgentDefinition.model_validate(
        {"name": "a", "llm": {"model": "x:y"}, "tools": ["one", {"tool": "two", "priority": 1}]}
    )

    assert definition.tools == (AllocatedTool(tool="one"), AllocatedTool(tool="two", priority=1))
    with pytest.raises(ValueError, match="tools"):
        AgentDefinition.model_validate({"name": "a", "llm": {"model": "x:y"}, "tools": "one"})


def test_a_tool_of_another_kind_is_no_agent():
    tool = ToolDefinition(name="search", implementation=PythonImplementation(function="crm:search"))

    with pytest.raises(InvalidDefinition, match="tool 'search' is of kind 'python', not an agent"):
        AgentDefinition.of(tool)


def test_whatever_can_be_said_of_a_tool_can_be_said_of_an_agent():
    derived = {"implementation", "side_effects", "timeout_s"}
    only_of_what_reads = {"mcp"}

    assert ToolDefinition.model_fields.keys() - derived - only_of_what_reads <= AgentDefinition.model_fields.keys()


def test_a_promise_of_its_own_about_what_it_puts_out_is_kept():
    own = {"type": "object", "required": ["response"]}
    definition = AgentDefinition(name="a", llm=LLM, output_schema=own)

    assert definition.tool().output_schema == own
    assert AgentDefinition.of(definition.tool()) == definition


def test_a_call_of_it_never_lasts_longer_than_calls_may():
    tool = AgentDefinition(name="a", llm=LLM, limits=Limits(timeout_s=604_800)).tool()

    assert tool.timeout_s == 86_400


def test_what_an_agent_is_made_of_says_nothing_of_its_name():
    assert "name" not in AgentParts.model_fields
