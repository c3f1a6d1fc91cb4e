"""Whatever a model says, its agent's run ends in order: inside its limits, in its shape, and with a reason."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.agents.crm import MODEL, Crm
from tests.unit.agents.desk import agent
from toolcrib import Crib, Limits, Result, ScriptedModel
from toolcrib.contracts import (
    ENDED,
    AgentDefinition,
    CallFinished,
    ModelError,
    ModelErrorKind,
    ModelFinished,
    RunFinished,
)
from toolcrib.core.registry import compile_schema
from toolcrib.llm import Message, Response, Stop, Text, TokenUsage, ToolCall

pytestmark = pytest.mark.requirement("agent.bad_models", "agent.exits")

SCHEMA: Any = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
KINDS: tuple[ModelErrorKind, ...] = ("auth", "content_filter", "context_length")
STOPS: tuple[Stop, ...] = ("end", "tool_calls", "length", "content_filter", "refusal", "pause", "other")

texts = st.sampled_from(["", " ", "Two.", '{"n": 2}', '{"n": "two"}', "```json\n{}\n```"]) | st.text(max_size=20)
calls = st.builds(
    ToolCall,
    st.sampled_from(["", "1", "2"]),
    st.sampled_from(["search_deals", "update_deals", "find_tools", "list_stages", "drop_all", ""]),
    st.sampled_from(
        [
            '{"company": "Acme"}',
            '{"ids": ["d0"], "stage": "3003"}',
            '{"query": "stages"}',
            "{}",
            "",
            "[1]",
            '{"comp',
            '{"company": null}',
        ]
    ),
)


def said(text: str, made: list[ToolCall]) -> Message:
    return Message("assistant", (*((Text(text),) if text else ()), *made))


def answered(message: Message, stop: Stop, problems: list[str], ready: bool) -> Response:
    return Response(message, stop, "", TokenUsage(), "m", "1", problems=tuple(problems), wants_format=ready)


messages = st.builds(said, texts, st.lists(calls, max_size=4))
problems = st.lists(st.just("line 1: no"), max_size=2)
responses = st.builds(answered, messages, st.sampled_from(STOPS), problems, st.booleans())
failures = st.builds(ModelError, st.sampled_from(KINDS), st.just("no"))
scripts = st.lists(messages | responses | failures, min_size=1, max_size=8)

FORMS: list[dict[str, Any]] = [
    {},
    {"response_format": "json"},
    {"response_format": "structured", "response_schema": SCHEMA},
]
TOOLS: list[list[str]] = [[], ["search_deals"], ["search_deals", "update_deals", "list_stages"]]
shapes = st.fixed_dictionaries(
    {
        "tools": st.sampled_from(TOOLS),
        "max_tools_in_context": st.sampled_from([1, 2, 40]),
        "parallel_tool_calls": st.booleans(),
        "side_effects": st.sampled_from(["reads", "writes"]),
    }
)
limits = st.builds(
    Limits, max_iterations=st.integers(1, 6), max_tool_calls=st.integers(0, 5), max_total_tokens=st.just(50_000)
)


async def played(definition: AgentDefinition, script: list[Any], crm: Crm) -> Result:
    """One run, whose model begins anew when its script is over."""
    turns = iter(script * 20)
    async with Crib("memory://", models={MODEL: ScriptedModel(lambda _: next(turns))}) as crib:
        crib.add(*crm.tools)
        await crib.agents.save(definition)
        return await crib.invoke("desk", {"message": "How many?"})


@settings(max_examples=60, deadline=None)
@given(script=scripts, form=st.sampled_from(FORMS), shape=shapes, most=limits)
async def test_a_run_ends_in_order_whatever_its_model_says(script: list[Any], form: Any, shape: Any, most: Limits):
    fields: Any = {**form, **shape, "limits": most}
    definition, crm = agent(**fields), Crm(2)
    result = await played(definition, script, crm)

    summary = result.summary
    assert summary.status in ENDED
    assert summary.stop_reason is not None
    assert summary.stop_reason != "timeout"
    events = [entry.event for entry in result.events]
    assert isinstance(events[-1], RunFinished)
    answers = [event for event in events if isinstance(event, ModelFinished)]
    assert sum(event.purpose != "formatting" for event in answers) <= most.max_iterations + 2
    made = sum(event.envelope.attempts for event in events if isinstance(event, CallFinished))
    assert made <= most.max_tool_calls
    assert len(crm.searches) + len(crm.updates) <= most.max_tool_calls
    if shape["side_effects"] == "reads":
        assert crm.updates == []
    _check_shape(result, definition)


def _check_shape(result: Result, definition: AgentDefinition) -> None:
    """What was put out is what the definition promises; an early end has an error, a warning and no output."""
    summary, output = result.summary, result.summary.output
    schema = definition.tool().output_schema
    assert schema is not None
    if output is not None:
        assert not compile_schema(schema).problems(output)
    assert result.ok is (summary.error is None)
    if result.ok:
        assert summary.stop_reason == "final_answer"
        assert output is not None
        assert output["response"]
        assert ("output" in output) is (definition.response_format != "text")
    else:
        assert output is None
    if summary.status == "incomplete":
        assert summary.stop_reason in {"max_iterations", "max_tool_calls", "max_cost", "max_tokens"}
        assert summary.warnings
