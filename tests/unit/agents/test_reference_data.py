"""Reference data: valid values from a tool or from the definition, as live enums and in the prompt."""

from typing import Any, Literal

import pytest

from tests.twins import AT
from tests.unit.agents.crm import (
    DONE,
    Crm,
    asks,
    own_prompt,
    plan,
    positions,
    purposes,
    run_agent,
    run_sequence,
    run_tool,
    told,
)
from toolcrib import AgenticContext, ReferenceSource, ScriptedModel, tool
from toolcrib.agents.toolset.schema_narrowing import narrow
from toolcrib.contracts import Json, JsonSchema, ToolEnvelope
from toolcrib.core.providers import ReferenceItem, ReferenceList
from toolcrib.core.registry import compile_schema

LIVE = AgenticContext(reference_data=(ReferenceSource(name="stages", tool="list_stages", applies_to=("stage",)),))


def fixed(*values: Json, applies_to: tuple[str, ...] = ("stage",)) -> AgenticContext:
    """Reference data that is written in the definition."""
    return AgenticContext(reference_data=(ReferenceSource(name="stages", values=values, applies_to=applies_to),))


@pytest.mark.requirement("agents.live_enums", "agents.purposes")
async def test_a_stage_that_does_not_exist_is_refused_in_the_plan_with_the_nearest_and_their_labels():
    crm = Crm(1)
    wrong = {"for_each": "${search_deals.results}", "input": {"ids": ["${item.id}"], "stage": "negotiations"}}

    result, model = await run_sequence(crm, plan(update_deals=wrong), plan(), DONE, context=LIVE)

    assert result.ok
    assert purposes(result) == ["planning", "error_recovery", "formatting"]
    said = model.requests[1].messages[-1].text
    assert "'negotiations' is not one of the 3 valid values; nearest: '3003' (Negotiation)" in said
    assert crm.updates == [(["d0"], "3003")]


@pytest.mark.requirement("agents.live_enums", "agents.review")
async def test_a_stage_that_comes_by_reference_is_refused_before_the_call():
    crm = Crm(1)
    named = {"for_each": "${search_deals.results}", "input": {"ids": ["${item.id}"], "stage": "${input.task}"}}

    result, model = await run_sequence(crm, plan(update_deals=named), {"skip": True}, DONE, context=LIVE)

    assert crm.updates == []
    refused: ToolEnvelope = result.envelopes[2]
    assert (refused.position, refused.attempts) == ("update_deals[0]", 0)
    assert refused.error is not None
    assert "is not one of the 3 valid values" in refused.error.message
    assert "nearest: '3003' (Negotiation)" in model.requests[1].messages[0].text
    assert purposes(result) == ["planning", "error_recovery", "formatting"]


@pytest.mark.requirement("agents.live_enums", "agents.recovery")
async def test_an_agent_that_names_a_wrong_stage_is_told_the_right_ones():
    crm = Crm(1)

    result, model = await run_agent(
        crm,
        asks(("update_deals", {"ids": ["d0"], "stage": "Proposl"})),
        asks(("update_deals", {"ids": ["d0"], "stage": "3002"})),
        "Moved.",
        context=LIVE,
    )

    assert result.ok
    assert crm.updates == [(["d0"], "3002")]
    assert "nearest: '3002' (Proposal)" in told(model.requests[1])[0]


@pytest.mark.requirement("agents.live_enums")
async def test_a_model_sees_the_values_and_what_people_call_them():
    _, model = await run_agent(Crm(1), "Nothing to do.", context=LIVE)

    update = model.requests[0].tools.tools[1]
    assert update.schema["properties"]["stage"] == {
        "enum": ["3001", "3002", "3003"],
        "description": "One of: 3001 = Qualified; 3002 = Proposal; 3003 = Negotiation",
    }


@pytest.mark.requirement("agents.live_enums")
async def test_no_keyword_of_ours_is_in_a_schema_that_a_model_gets():
    _, planned = await run_sequence(Crm(1), plan(), DONE, context=LIVE)
    _, chosen = await run_agent(Crm(1), "Nothing to do.", context=LIVE)

    assert "x-labels" not in str(planned.requests[0].output_schema)
    assert "3003 = Negotiation" in str(planned.requests[0].output_schema)
    assert "x-labels" not in str(chosen.requests[0].tools.tools)
    assert "x-labels" not in planned.requests[0].system


@pytest.mark.requirement("agents.reference_data", "agents.prompt")
async def test_lists_stand_in_the_prompt_by_name_and_all_together():
    prompt = "ONE {{reference_data.stages}} ALL {{reference_data}}"

    _, model = await run_sequence(Crm(1), plan(), DONE, context=LIVE, system_prompt=prompt)

    stages = "3001 = Qualified; 3002 = Proposal; 3003 = Negotiation"
    assert own_prompt(model.requests[0]) == f'ONE {stages} ALL {{"stages":"{stages}"}}'


@pytest.mark.requirement("agents.reference_data")
async def test_lists_are_read_by_calls_of_the_run():
    result, _ = await run_sequence(Crm(1), plan(), DONE, context=LIVE)

    assert positions(result) == ["reference.stages", "search_deals", "update_deals[0]"]
    assert result.summary.tool_calls == 3


@pytest.mark.requirement("agents.reference_data")
async def test_the_input_of_a_list_and_where_its_items_are_can_be_said():
    @tool(side_effects="reads")
    async def list_pipelines(pipeline: str) -> dict[str, Any]:
        return {"data": {pipeline: [{"key": 1, "name": "New"}, {"key": 2, "name": "Won"}]}}

    source = ReferenceSource(
        name="stages",
        tool="list_pipelines@^1.0",
        input={"pipeline": "sales"},
        items="$.data.sales[*]",
        value="key",
        label="name",
    )
    model = ScriptedModel(["Nothing to do."])

    await run_tool(
        Crm(),
        model,
        "agentic",
        list_pipelines,
        tools=["search_deals"],
        context=AgenticContext(reference_data=(source,)),
        system_prompt="{{reference_data.stages}}",
    )

    assert own_prompt(model.requests[0]) == "1 = New; 2 = Won"


@pytest.mark.requirement("agents.reference_data", "agents.live_enums")
async def test_values_may_be_written_in_the_definition():
    crm = Crm(1)
    wrong = plan(update_deals={"input": {"ids": ["d0"], "stage": "lost"}})
    right = plan(update_deals={"input": {"ids": ["d0"], "stage": "won"}})

    result, model = await run_sequence(
        crm,
        wrong,
        right,
        DONE,
        task="Mark d0 of Acme as won",
        context=fixed("won", "open"),
        system_prompt="{{reference_data.stages}}",
    )

    assert positions(result) == ["search_deals", "update_deals"]
    assert own_prompt(model.requests[0]) == "won; open"
    assert crm.updates == [(["d0"], "won")]


@pytest.mark.requirement("agents.reference_data")
@pytest.mark.parametrize("mode", ["deterministic", "agentic"])
async def test_a_list_that_cannot_be_read_ends_the_run_before_the_model_is_asked(
    mode: Literal["deterministic", "agentic"],
):
    @tool(side_effects="reads")
    async def broken() -> list[str]:
        raise RuntimeError("no connection")

    crm, model = Crm(), ScriptedModel([])
    context = AgenticContext(reference_data=(ReferenceSource(name="stages", tool="broken", applies_to=("stage",)),))
    tools: Any = {"steps": ["update_deals"]} if mode == "deterministic" else {"tools": ["update_deals"]}

    result = await run_tool(crm, model, mode, broken, context=context, **tools)

    assert result.summary.status == "failed"
    assert result.summary.error is not None
    assert "reference data 'stages' could not be read" in result.summary.error.message
    assert "no connection" in result.summary.error.message
    assert (model.requests, crm.updates) == ([], [])


@pytest.mark.requirement("agents.reference_data")
async def test_a_list_that_is_none_ends_the_run_with_what_to_correct():
    crm = Crm()
    crm.stages = [{"key": "3001"}]

    result, model = await run_sequence(crm, context=LIVE)

    assert result.summary.status == "failed"
    assert result.summary.error is not None
    assert "'stages': an item has no 'id'" in result.summary.error.message
    assert model.requests == []


@pytest.mark.requirement("agents.reference_data", "agents.allocation")
async def test_a_tool_that_writes_cannot_be_a_list():
    written: list[str] = []

    @tool(side_effects="writes")
    async def reset_stages() -> list[str]:
        written.append("reset")
        return []

    context = AgenticContext(reference_data=(ReferenceSource(name="stages", tool="reset_stages"),))
    result = await run_tool(Crm(), ScriptedModel([]), "agentic", reset_stages, tools=["search_deals"], context=context)

    assert result.summary.status == "failed"
    assert result.summary.error is not None
    assert "this run allows at most 'reads'" in result.summary.error.message
    assert written == []


@pytest.mark.requirement("agents.allocation")
async def test_the_tool_that_lists_values_is_not_thereby_allotted():
    result, model = await run_agent(Crm(1), asks(("list_stages", {})), "ok", context=LIVE)

    assert result.envelopes[1].status == "denied"
    assert "list_stages" not in [offered.name for offered in model.requests[0].tools.tools]


STAGE: Json = {"type": "string"}
SCHEMA: JsonSchema = {
    "type": "object",
    "properties": {
        "stage": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "stages": {"type": "array", "items": {"$ref": "#/$defs/Old"}},
        "change": {"type": "object", "properties": {"stage": STAGE}},
        "changes": {"type": "array", "items": {"$ref": "#/$defs/Change"}},
        "kind": {"type": ["string", "null"], "enum": ["old", None], "maxLength": 2},
        "anything": True,
        "other": STAGE,
    },
    "$defs": {"Old": {"enum": ["old"]}, "Change": {"type": "object", "properties": {"stage": STAGE}}},
    "additionalProperties": False,
}


@pytest.mark.requirement("agents.live_enums")
@pytest.mark.parametrize(
    ("arguments", "valid"),
    [
        ({}, True),
        ({"stage": None}, True),
        ({"stage": "won"}, True),
        ({"stage": "lost"}, False),
        ({"stages": ["won", "open"]}, True),
        ({"stages": ["won", "lost"]}, False),
        ({"stages": "won"}, False),
        ({"change": {"stage": "open"}}, True),
        ({"change": {"stage": "lost"}}, False),
        ({"changes": [{"stage": "open"}]}, True),
        ({"changes": [{"stage": "lost"}]}, False),
        ({"kind": "old"}, False),
        ({"kind": "won"}, True),
        ({"kind": None}, True),
        ({"anything": "won"}, True),
        ({"anything": 1}, False),
        ({"other": "lost"}, True),
    ],
    ids=str,
)
def test_a_list_closes_every_property_of_its_name_wherever_and_whatever_it_is(arguments: Any, valid: bool):
    items = (ReferenceItem("won", "Won"), ReferenceItem("open", "open"))
    stages = ReferenceList("stages", items, AT, None)

    narrowed = narrow(SCHEMA, dict.fromkeys(("stage", "stages", "kind", "anything"), stages))

    assert compile_schema(narrowed).is_valid(arguments) is valid


@pytest.mark.requirement("agents.live_enums")
async def test_a_list_that_is_empty_closes_nothing():
    crm = Crm(1)
    crm.stages = []

    result, _ = await run_sequence(crm, plan(), DONE, context=LIVE)

    assert result.ok
    assert crm.updates == [(["d0"], "3003")]


@pytest.mark.requirement("agents.live_enums", "agents.recovery")
async def test_a_list_that_is_too_long_to_be_shown_is_checked_all_the_same():
    crm = Crm(1)
    crm.stages = [{"id": str(number), "label": f"Stage {number}"} for number in range(501)]

    result, model = await run_agent(
        crm,
        asks(("update_deals", {"ids": ["d0"], "stage": "age 300"})),
        asks(("update_deals", {"ids": ["d0"], "stage": "300"})),
        "Moved.",
        context=LIVE,
        system_prompt="{{reference_data.stages}}",
    )

    assert result.ok
    assert crm.updates == [(["d0"], "300")]
    shown = model.requests[0].tools.tools[1].schema["properties"]["stage"]
    assert shown == {"type": ["string"], "description": "One of 501 values; another is refused with the closest."}
    assert model.requests[0].system.endswith("199 = Stage 199; … 301 more of 501")
    assert "not one of the 501 valid values; nearest: '300' (Stage 300)" in told(model.requests[1])[0]
