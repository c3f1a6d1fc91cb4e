"""Bad input to agentic tools and imports: one clear error or a question back, and nothing is written or stored."""

from typing import Any

import orjson
import pytest

from tests.unit.agents.crm import MODEL, Crm, asks, plan, run_agent, run_sequence, told
from toolcrib import AgenticContext, Crib, Principal, ReferenceSource, ScriptedModel
from toolcrib.contracts import AgenticMode, InvalidDefinition, JsonObject, Reason

STAGES = AgenticContext(
    reference_data=(ReferenceSource(name="stages", tool="list_stages", applies_to=("stage",)),),
)
MODES: tuple[AgenticMode, ...] = ("deterministic", "agentic")
WON: JsonObject = {"for_each": "${search_deals.results}", "input": {"ids": ["${item.id}"], "stage": "Negotiations"}}


def text(answer: JsonObject) -> str:
    return orjson.dumps(answer).decode()


@pytest.mark.requirement("bad_input.prose")
@pytest.mark.parametrize(
    "prose", ["Sure, I will move them.", "```\nmove(deals)\n```", "{}", "null", "[1]", '{"plan": 1']
)
async def test_a_model_that_answers_prose_where_a_plan_was_asked_writes_nothing(prose: str):
    crm = Crm()

    result, _ = await run_sequence(crm, prose, prose, prose)

    assert result.summary.error is not None
    assert "no usable plan after 3 answers" in result.summary.error.message
    assert (crm.searches, crm.updates) == ([], [])


@pytest.mark.requirement("bad_input.unknown_stage")
async def test_a_planned_stage_that_does_not_exist_is_sent_back_with_the_closest_and_nothing_is_written():
    crm = Crm()
    wrong = plan(update_deals=WON)

    result, model = await run_sequence(crm, wrong, wrong, wrong, context=STAGES)

    assert result.summary.status == "failed"
    assert "Negotiation" in model.requests[1].messages[-1].text
    assert crm.updates == []


@pytest.mark.requirement("bad_input.unknown_stage")
async def test_a_plan_may_ask_which_stage_was_meant_and_then_nothing_is_written():
    crm = Crm()
    question = {"reasoning": "There is no such stage.", "question": "Which stage is meant by Victory?"}
    skipped = {"search_deals": {"skip": True}, "update_deals": {"skip": True}}

    result, _ = await run_sequence(crm, {**question, **skipped}, context=STAGES, task="Move Acme's deals to Victory")

    assert result.summary.status == "awaiting_answer"
    assert result.question is not None
    assert result.question.question == "Which stage is meant by Victory?"
    assert (crm.searches, crm.updates) == ([], [])


@pytest.mark.requirement("bad_input.unknown_stage")
async def test_a_chosen_stage_that_does_not_exist_is_refused_with_the_closest_and_nothing_is_written():
    crm = Crm()
    call = asks(("update_deals", {"ids": ["d1"], "stage": "Negotiations"}))

    result, model = await run_agent(crm, call, "Which stage is meant?", context=STAGES)

    assert result.output == {"summary": "Which stage is meant?"}
    assert "Negotiation" in told(model.requests[1])[0]
    assert crm.updates == []


@pytest.mark.requirement("bad_input.no_permission")
@pytest.mark.parametrize("mode", MODES)
async def test_an_account_without_the_permission_to_update_writes_nothing(mode: AgenticMode):
    crm = Crm()
    reader = Principal(id="user:reader", grants=("ai://tools/*/search_deals/execute", "ai://tools/*/agent/execute"))
    call = asks(("update_deals", {"ids": ["d1"], "stage": "3003"}))
    scripted = {"deterministic": [text(plan()), text({"summary": "I may not."})], "agentic": [call, "I may not."]}
    tools = ["search_deals", "update_deals"]

    async with Crib("memory://", models={MODEL: ScriptedModel(scripted[mode])}) as crib:
        crib.add(*crm.tools)
        allotted: Any = {"steps" if mode == "deterministic" else "tools": tools}
        crib.agentic_tool("agent", mode=mode, model=MODEL, grounding="off", **allotted)
        task = {"task": "Move Acme's deals to Negotiation"}
        result = await crib.acting_as(reader).invoke("agent", task)

    denied = [envelope for envelope in result.envelopes if envelope.name == "update_deals"]
    assert denied
    for envelope in denied:
        assert envelope.error is not None
        assert (envelope.status, envelope.error.reason) == ("denied", Reason.PERMISSION_MISSING)
    assert crm.updates == []


@pytest.mark.requirement("bad_input.hostile_document")
@pytest.mark.parametrize(
    "document",
    [
        "",
        "just text",
        "[1, 2]",
        '{"openapi": "3.1.0", "paths": {',
        "openapi: 3.1.0\npaths: &a {x: *a}",
        "\n".join(["a0: &a0 [x, x, x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}]" for n in range(1, 40))]),
        '{"openapi": "3.1.0", "a": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"openapi": "3.1.0", "info": {"title": "' + "x" * 50_000_000 + '"}}',
    ],
    ids=["empty", "text", "list", "cut", "cycle", "bomb", "deep", "50 MB"],
)
async def test_a_document_that_cannot_be_imported_is_one_error_and_stores_nothing(document: str):
    async with Crib("memory://") as crib:
        with pytest.raises(InvalidDefinition) as refused:
            await crib.imports.openapi(document, name="api")

        assert len(str(refused.value)) < 500
        assert not crib.registry.names(crib.principal.realm)
        assert crib.providers.find(crib.principal.realm, "api") is None
