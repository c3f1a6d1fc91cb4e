"""Plans in doubt: asked about once, mended where nothing is lost, else a question."""

from typing import Any

import pytest

from tests.unit.agents.crm import DONE, Crm, own_prompt, plan, purposes, run_sequence
from toolcrib import AgenticContext, ReferenceSource
from toolcrib.contracts import JsonObject

pytestmark = pytest.mark.requirement("agents.doubts")

LIVE = AgenticContext(reference_data=(ReferenceSource(name="stages", tool="list_stages", applies_to=("stage",)),))
TASK = "Move all Acme deals to Negotiation"


def move(**changes: Any) -> JsonObject:
    """The plan with another stage or company."""
    written = plan(search_deals={"input": {"company": changes.get("company", "Acme"), **changes.get("more", {})}})
    written["update_deals"]["input"]["stage"] = changes.get("stage", "3003")
    return written


async def test_a_plan_that_follows_from_the_task_costs_nothing_extra():
    result, _ = await run_sequence(Crm(1), move(), DONE, task=TASK, context=LIVE)

    assert purposes(result) == ["planning", "formatting"]
    assert result.summary.warnings == ()


async def test_a_label_is_as_good_as_its_value():
    crm = Crm(1)

    result, model = await run_sequence(crm, move(stage="negotiation"), DONE, task=TASK, context=LIVE)

    assert result.ok
    assert crm.updates == [(["d0"], "3003")]
    assert "Negotiation" in str(model.requests[0].output_schema)


async def test_what_nobody_asked_for_is_left_out_without_asking_if_nothing_else_is_lost():
    crm = Crm(3)

    result, _ = await run_sequence(crm, move(more={"limit": 1}), DONE, task=TASK, context=LIVE)

    assert purposes(result) == ["planning", "formatting"]
    assert crm.updates == [(["d0", "d1", "d2"], "3003")]
    assert result.summary.warnings == (
        "left out of the plan: search_deals: limit 1 is not mentioned in the task; leave it out",
    )


async def test_a_wrong_value_is_asked_about_once_and_may_be_corrected():
    crm = Crm(1)

    result, model = await run_sequence(crm, move(stage="3001"), move(), DONE, task=TASK, context=LIVE)

    assert purposes(result) == ["planning", "error_recovery", "formatting"]
    told = model.requests[1].messages[-1].text
    assert "- update_deals: stage 'Qualified' is not mentioned in the task; use what the task says, or ask" in told
    assert "- the task mentions 'Negotiation', but no step uses it" in told
    assert crm.updates == [(["d0"], "3003")]


async def test_another_doubt_about_the_corrected_plan_is_asked_about_too():
    crm = Crm(1)

    result, model = await run_sequence(
        crm, move(stage="3001"), move(company="Initech"), move(), DONE, task=TASK, context=LIVE
    )

    assert purposes(result) == ["planning", "error_recovery", "error_recovery", "formatting"]
    assert "the task mentions 'Acme', but no step uses it" in model.requests[2].messages[-1].text
    assert crm.updates == [(["d0"], "3003")]


async def test_a_plan_that_stays_in_doubt_writes_nothing_and_asks():
    crm = Crm(1)
    wrong = move(stage="3001")

    result, _ = await run_sequence(crm, wrong, wrong, task=TASK, context=LIVE)

    assert result.ok
    assert crm.updates == crm.searches == []
    assert result.output["question"].startswith("I could not plan this safely: update_deals: stage 'Qualified'")


async def test_a_plan_that_only_reads_goes_on_with_a_warning():
    crm = Crm(1)
    reading = plan(update_deals={"skip": True})

    result, _ = await run_sequence(crm, reading, reading, DONE, task="Find Acme deals over 500", context=LIVE)

    assert crm.searches == ["Acme"]
    assert result.summary.warnings == ("the plan may not fit the task: the task mentions '500', but no step uses it",)


async def test_words_that_nothing_uses_are_asked_about_before_anything_is_written():
    crm = Crm(1)

    result, model = await run_sequence(
        crm, move(), plan(question="What is stale?"), task="Move all stale Acme deals to Negotiation", context=LIVE
    )

    assert "no step uses 'stale'" in model.requests[1].messages[-1].text
    assert result.output == {"question": "What is stale?"}
    assert crm.updates == []


async def test_what_the_documentation_says_counts_as_said():
    context = LIVE.model_copy(update={"documentation": "Show at most 50 deals."})

    result, _ = await run_sequence(Crm(1), move(more={"limit": 50}), DONE, task=TASK, context=context)

    assert result.summary.warnings == ()


async def test_the_prompt_is_a_fraction_of_the_schemas():
    _, model = await run_sequence(Crm(1), move(), DONE, task=TASK, context=LIVE, system_prompt="{{integration_schema}}")

    assert own_prompt(model.requests[0]) == (
        "search_deals: {company: string, limit?: integer | null}\n"
        'update_deals: {ids: string[], stage: "Qualified" | "Proposal" | "Negotiation"}'
    )


async def test_a_doubt_makes_no_question_of_a_plan_that_only_reads():
    crm = Crm(1)
    reading = plan(update_deals={"skip": True})
    asking = plan(question="Which deals?", update_deals={"skip": True})

    result, _ = await run_sequence(crm, reading, asking, DONE, task="Find Acme deals over 500", context=LIVE)

    assert crm.searches == ["Acme"]
    assert result.output == DONE


async def test_a_text_that_is_a_number_becomes_one_where_the_tool_wants_one():
    crm = Crm(3)
    written = plan(search_deals={"input": {"company": "Acme", "limit": "2"}})

    result, _ = await run_sequence(crm, written, DONE, task="Move 2 Acme deals to Negotiation", context=LIVE)

    assert result.ok
    assert crm.updates == [(["d0", "d1"], "3003")]
