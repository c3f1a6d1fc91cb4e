"""Tools in the shapes of other systems."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.twins import make_definition, make_tool
from toolcrib import AgenticContext, AgenticStep, Crib, LLMConfig
from toolcrib.agents import agentic_definition
from toolcrib.contracts import Example, JsonSchema, NotFound, ToolDefinition
from toolcrib.core.export import (
    FORMATS,
    check_description,
    describe,
    export_names,
    export_tools,
    generate_description,
)

NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
TASK: JsonSchema = {
    "type": "object",
    "properties": {
        "task": {"type": "string", "description": "What to do"},
        "stage": {"enum": ["won", "lost"]},
    },
    "required": ["task"],
}


def definition(**changes: Any) -> ToolDefinition:
    return make_definition().model_copy(update={"description": "Find deals.", "input_schema": TASK, **changes})


def exported(form: Any, **changes: Any) -> Any:
    return export_tools([make_tool().model_copy(update={"definition": definition(**changes)})], form)[0]


def agent(**changes: Any) -> ToolDefinition:
    settings: dict[str, Any] = {
        "mode": "deterministic",
        "llm": LLMConfig(model="scripted:m"),
        "steps": [AgenticStep(id="search", tool="search_deals", purpose="search deals")],
        "context": AgenticContext(example_queries=("Update all Acme Corp deals to Negotiation",)),
        "description": "Manage HubSpot deals using natural language commands.",
        **changes,
    }
    return agentic_definition("hubspot-deal-manager", **settings)


@pytest.mark.requirement("authoring.export")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hubspot-deal-manager", "hubspot_deal_manager"),
        ("crm.searchDeals", "crm_search_deals"),
        ("HTTP2.get", "http2_get"),
        ("a" * 128, "a" * 64),
    ],
    ids=str,
)
def test_a_name_becomes_one_that_all_systems_take(name: str, said: str):
    assert export_names([name]) == {name: said}


@pytest.mark.requirement("authoring.export")
@given(st.lists(st.from_regex(r"[A-Za-z][A-Za-z0-9_.\-]{0,127}", fullmatch=True), unique=True))
def test_names_are_valid_and_no_two_are_alike(names: list[str]):
    found = export_names(names)

    assert list(found) == names
    assert len(set(found.values())) == len(names)
    assert all(NAME.fullmatch(name) for name in found.values())


@pytest.mark.requirement("authoring.export")
def test_the_universal_shape_is_that_of_the_specification():
    tool = exported("universal")

    assert set(tool) == {"name", "description", "parameters"}
    assert tool["parameters"] == TASK


@pytest.mark.requirement("authoring.export")
def test_openai_gets_a_function_with_a_description_that_is_not_too_long():
    tool = exported("openai", long_description="x" * 2000)

    assert tool["type"] == "function"
    assert set(tool["function"]) == {"name", "description", "parameters"}
    assert len(tool["function"]["description"]) == 1024


@pytest.mark.requirement("authoring.export")
def test_anthropic_gets_an_input_schema():
    assert set(exported("anthropic")) == {"name", "description", "input_schema"}


@pytest.mark.requirement("authoring.export")
def test_langchain_gets_the_fields_of_a_structured_tool():
    tool = exported("langchain")

    assert set(tool) == {"name", "description", "args_schema"}
    assert tool["args_schema"] == {"title": tool["name"], **TASK}


@pytest.mark.requirement("authoring.export")
@pytest.mark.parametrize(
    ("side_effects", "idempotent", "hints"),
    [
        ("none", False, (True, False, True, False)),
        ("reads", False, (True, False, True, True)),
        ("writes", False, (False, True, False, True)),
        ("writes", True, (False, True, True, True)),
    ],
    ids=str,
)
def test_mcp_gets_hints_from_what_a_tool_does(side_effects: str, idempotent: bool, hints: tuple[bool, ...]):
    tool = exported("mcp", side_effects=side_effects, idempotent=idempotent)
    names = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")

    assert tuple(tool["annotations"][name] for name in names) == hints
    assert tool["inputSchema"] == TASK
    assert tool["title"] == "Look up"


@pytest.mark.requirement("authoring.export")
def test_mcp_gets_an_output_schema_only_where_results_are_objects():
    shape = {"type": "object", "properties": {"n": {"type": "integer"}}}

    assert exported("mcp", output_schema=shape)["outputSchema"] == shape
    assert "outputSchema" not in exported("mcp", output_schema={"type": "array"})
    assert "outputSchema" not in exported("mcp")


@pytest.mark.requirement("authoring.export")
@pytest.mark.parametrize("form", [form for form in FORMATS if form not in ("gemini", "typescript", "skill")])
def test_a_tool_without_arguments_is_an_object_everywhere(form: Any):
    tool = exported(form, input_schema={"type": "object"})
    schema = next(
        tool[key] for key in ("parameters", "input_schema", "args_schema", "inputSchema", "function") if key in tool
    )

    assert schema.get("parameters", schema)["properties"] == {}


@pytest.mark.requirement("authoring.export")
async def test_a_crib_exports_one_tool_under_the_name_that_it_has_among_all():
    async with Crib("memory://") as crib:
        for name in ("crm.search", "crm-search"):
            await crib.save(make_definition(name).model_copy(update={"description": "Search."}))
        both = await crib.export(form="mcp")
        alone = await crib.export("crm.search", form="mcp")

        assert [tool["name"] for tool in both] == ["crm_search", "crm_search_2"]
        assert alone == [both[1]]
        with pytest.raises(NotFound):
            await crib.export("nothing")


@pytest.mark.requirement("authoring.descriptions")
def test_an_agentic_tool_is_described_as_the_specification_says():
    assert describe(agent()) == (
        "Use this tool to manage HubSpot deals using natural language commands. It does this for you: search deals.\n\n"
        "# Required inputs (always include these):\n"
        '- task: What to do, in plain words. Examples: "Update all Acme Corp deals to Negotiation".\n\n'
        "# What the tool outputs:\n"
        "Returns a summary of what was done. If the task is unclear, or a limit or a rule keeps it from being done, "
        "it fails with an error that asks or says why, and with what was done. All details are handled inside the tool."
    )


@pytest.mark.requirement("authoring.descriptions")
@pytest.mark.parametrize(
    ("description", "said"),
    [
        ("Move deals.", "Use this tool to move deals."),
        ("Deals of a company", "Use this tool for the following: Deals of a company."),
        ("Use this tool to move deals!", "Use this tool to move deals!"),
        ("", "Use this tool for the following: look_up."),
    ],
    ids=str,
)
def test_the_opening_is_a_sentence_whatever_the_author_wrote(description: str, said: str):
    assert generate_description(definition(description=description)).splitlines()[0] == said


@pytest.mark.requirement("authoring.descriptions")
def test_inputs_are_listed_with_their_values_and_examples():
    text = generate_description(
        definition(usage="Not for leads.", examples=(Example(scenario="s", input={"task": "Find Acme", "n": 1}),))
    )

    assert "Not for leads." in text
    assert '- task: What to do. Examples: "Find Acme".' in text
    assert "# Optional inputs:\n- stage: A value as its schema says. One of: won, lost." in text


@pytest.mark.requirement("authoring.descriptions")
@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (None, "Returns the result of the call."),
        ({"type": "array"}, "Returns a list."),
        (
            {"type": "object", "properties": {"n": {"description": "How many."}, "of": True}},
            "Returns an object with n (How many), of.",
        ),
    ],
    ids=str,
)
def test_outputs_are_told_as_far_as_their_schema_says(schema: JsonSchema | None, said: str):
    assert generate_description(definition(output_schema=schema)).endswith(said)


@pytest.mark.requirement("authoring.descriptions")
def test_the_result_of_an_agentic_tool_names_its_fields():
    shape = {"type": "object", "properties": {"summary": {"type": "string"}, "deals_affected": {"type": "integer"}}}

    assert "Returns summary, deals_affected." in describe(agent(result_schema=shape, description="Manage deals"))


@pytest.mark.requirement("authoring.descriptions")
def test_a_made_description_has_all_that_one_needs_and_prose_has_not():
    assert check_description(describe(agent()), agent()) == []
    assert check_description("Use it.", agent()) == [
        "it must begin with 'Use this tool'",
        "it lacks the heading '# Required inputs (always include these):'",
        "it lacks the heading '# What the tool outputs:'",
        "it does not list the required input 'task'",
    ]


@pytest.mark.requirement("authoring.descriptions")
def test_an_author_s_own_text_is_what_exports_show():
    assert exported("universal", long_description="Mine.")["description"] == "Mine."
    assert "# Required inputs (always include these):\n- none" in describe(definition(input_schema={}))
