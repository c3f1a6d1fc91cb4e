"""Small models: they outline a task, look at what they have left over, and plan as others where nothing else helps."""

from datetime import date
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.unit.agents.crm import DONE, Crm
from tests.unit.agents.test_planning import LIVE, TASK
from toolcrib import Crib, FunctionTool, Result, ScriptedModel, tool
from toolcrib.contracts import JsonObject

SMALL = "local:qwen2.5-coder-1.5b"
ACME: JsonObject = {"words": "Acme", "field": "company", "value": "Acme"}
MOVED: JsonObject = {"words": "to Negotiation", "field": "stage", "value": "Negotiation"}


def outline(*conditions: JsonObject, changes: tuple[JsonObject, ...] = (MOVED,)) -> JsonObject:
    return {"wants": "change", "conditions": list(conditions), "changes": list(changes)}


def said_of(words: str, **others: str) -> JsonObject:
    return {word: others.get(word, "joins") for word in words.split()}


async def run_small(
    crm: Crm, *answers: JsonObject, task: str = TASK, others: tuple[FunctionTool[..., Any], ...] = (), **options: Any
) -> tuple[Result, ScriptedModel]:
    """Run a tool with the profile of a small model."""
    model = ScriptedModel([orjson.dumps(one).decode() for one in answers])
    model.name = SMALL
    async with Crib("memory://", models={SMALL: model}) as crib:
        crib.add(*crm.tools, *others)
        settings: dict[str, Any] = {"steps": ["search_deals", "update_deals"], "context": LIVE, **options}
        crib.agentic_tool("deals", mode="deterministic", model=SMALL, **settings)
        return await crib.invoke("deals", {"task": task}), model


@pytest.mark.requirement("agents.profiles")
async def test_a_small_model_writes_an_outline_and_looks_at_the_words_that_it_left_over():
    crm = Crm(1)

    result, model = await run_small(crm, outline(ACME), said_of("Move all", Move="asks"), DONE)

    assert result.ok
    assert crm.updates == [(["d0"], "3003")]
    assert [request.output_name for request in model.requests] == ["outline", "words", "answer"]
    assert model.requests[1].messages[-1].text.endswith("set stage 'Negotiation'\nWords: Move, all")


@pytest.mark.requirement("agents.profiles")
async def test_a_small_model_that_forgets_a_name_begins_afresh_with_a_hint():
    crm = Crm(1)

    result, model = await run_small(crm, outline(), said_of("Move all"), outline(ACME), DONE)

    assert result.ok
    assert crm.updates == [(["d0"], "3003")]
    assert model.requests[2].messages[-1].text.endswith('\nDo not forget "Acme".')


@pytest.mark.requirement("agents.profiles")
async def test_a_condition_that_a_small_model_does_not_find_again_is_dropped():
    crm = Crm(1)
    added = {"words": "deals", "field": "limit", "value": 5}

    denied = {"words": "none", "stated": "no"}
    result, model = await run_small(crm, outline(ACME, added), denied, said_of("Move all"), DONE)

    assert result.ok
    assert model.requests[1].messages[-1].text.endswith("Read as condition: limit is 5")
    assert crm.updates == [(["d0"], "3003")]


@pytest.mark.requirement("agents.profiles")
async def test_a_change_that_does_not_stand_in_the_task_is_shown_to_a_person_whatever_a_small_model_says():
    crm = Crm(1)
    closing = outline(ACME, changes=({"words": "talk terms", "field": "stage", "value": "Negotiation"},))

    result, _ = await run_small(
        crm, closing, said_of("All are ready to"), task="All Acme deals are ready to talk terms"
    )

    assert not crm.updates
    assert result.summary.status == "awaiting_answer"
    assert result.question is not None
    assert '"talk terms" was read as stage' in result.question.question


@pytest.mark.requirement("agents.profiles")
@pytest.mark.parametrize(("words", "kept"), [("deals", True), ("limit 5", False)])
async def test_a_condition_is_kept_if_a_small_model_finds_it_again_in_the_tasks_own_words(words: str, kept: bool):
    crm = Crm(7)
    added = {"words": "deals", "field": "limit", "value": 5}

    await run_small(crm, outline(ACME, added), {"words": words, "stated": "yes"}, said_of("Move all"), DONE)

    assert sum(len(ids) for ids, _ in crm.updates) == (5 if kept else 7)


@pytest.mark.requirement("agents.profiles")
async def test_a_word_that_restricts_and_stays_unread_is_asked_about():
    crm = Crm(1)
    left = said_of("Move all stale", stale="restricts")

    result, _ = await run_small(
        crm,
        outline(ACME),
        left,
        outline(ACME),
        task="Move all stale Acme deals to Negotiation",
    )

    assert not crm.updates
    assert result.summary.status == "awaiting_answer"
    assert result.question is not None
    assert 'it is not clear what "stale" asks for' in result.question.question


@pytest.mark.requirement("agents.profiles")
async def test_a_small_models_plan_goes_on_from_an_answer(tmp_path: Path):
    crm = Crm(1)
    other: JsonObject = {"wants": "other", "question": "Which deals?"}
    answers = [other, outline(ACME), said_of("Move them"), DONE]
    model = ScriptedModel([orjson.dumps(one).decode() for one in answers])
    model.name = SMALL
    async with Crib(f"sqlite:///{tmp_path / 'runs.db'}", models={SMALL: model}) as crib:
        crib.add(*crm.tools)
        steps = ["search_deals", "update_deals"]
        crib.agentic_tool("deals", mode="deterministic", model=SMALL, steps=steps, context=LIVE)
        asked = await crib.invoke("deals", {"task": "Move them to Negotiation"})
        assert asked.question is not None
        result = await crib.questions.answer(asked.run_id, "those of Acme")

    assert result.ok
    assert crm.updates == [(["d0"], "3003")]


@pytest.mark.requirement("agents.profiles")
async def test_a_second_look_that_fails_leaves_what_is_open_to_a_person():
    crm = Crm(1)

    result, _ = await run_small(crm, outline(), {}, {})

    assert not crm.updates
    assert result.summary.status == "awaiting_answer"


@pytest.mark.requirement("agents.profiles")
async def test_a_small_model_plans_as_others_where_there_is_no_outline_and_is_told_what_it_has_left_out():
    crm = Crm(1)
    closed: list[list[str]] = []

    @tool(side_effects="writes", idempotent=True)
    async def close_deals(ids: list[str]) -> dict[str, Any]:
        """Close deals."""
        closed.append(ids)
        return {}

    close = {"for_each": "${search_deals.results}", "input": {"ids": ["${item.id}"]}}
    forgetful: JsonObject = {
        "reasoning": "",
        "question": None,
        "search_deals": {"input": {"company": "deals"}},
        "close_deals": close,
    }
    right = {**forgetful, "search_deals": {"input": {"company": "Acme"}}}

    result, model = await run_small(
        crm,
        forgetful,
        right,
        DONE,
        task="Close all Acme deals",
        others=(close_deals,),
        steps=["search_deals", "close_deals"],
    )

    first, second = (request.messages[-1].text for request in model.requests[:2])
    assert 'The task names "Acme":' in first
    assert '- no step uses "Acme"; add it to search_deals as company' in second
    assert result.ok
    assert closed == [["d0"]]


@pytest.mark.requirement("agents.profiles")
async def test_a_name_is_not_carried_by_a_quotation_of_another():
    crm = Crm(1)
    greedy = outline({"words": "Zeta's Acme deals", "field": "company", "value": "Acme"})

    result, model = await run_small(
        crm,
        greedy,
        said_of("Move"),
        greedy,
        task="Move Zeta's Acme deals to Negotiation",
    )

    assert not crm.updates
    assert result.summary.status == "awaiting_answer"
    assert model.requests[2].messages[-1].text.endswith('Do not forget "Zeta".')


@pytest.mark.requirement("agents.profiles")
async def test_words_of_a_condition_that_was_dropped_are_not_forgotten():
    crm = Crm(1)
    misread = {"words": "small", "field": "limit", "value": 5}
    denied = {"words": "none", "stated": "no"}

    result, _ = await run_small(
        crm,
        outline(ACME, misread),
        denied,
        said_of("Move all small"),
        outline(ACME, misread),
        task="Move all small Acme deals to Negotiation",
    )

    assert not crm.updates
    assert result.summary.status == "awaiting_answer"


@pytest.mark.requirement("agents.profiles")
async def test_words_that_nobody_could_look_at_count_as_restricting():
    crm = Crm(1)

    result, _ = await run_small(crm, outline(ACME), {}, {})

    assert not crm.updates
    assert result.summary.status == "awaiting_answer"
    assert result.question is not None
    assert 'it is not clear what "Move all" asks for' in result.question.question


@pytest.mark.requirement("agents.profiles")
async def test_strict_takes_no_condition_on_the_word_of_a_small_model():
    crm = Crm(7)
    added = {"words": "deals", "field": "limit", "value": 5}

    result, model = await run_small(crm, outline(ACME, added), said_of("Move all"), grounding="strict")

    assert not crm.updates
    assert result.summary.status == "awaiting_answer"
    assert "value" not in [request.output_name for request in model.requests]


@pytest.mark.requirement("agents.profiles")
async def test_an_outline_that_does_not_say_the_change_is_asked_for_again():
    crm = Crm(1)
    none: JsonObject = {"words": "none of these", "field": "stage", "value": "none of these"}

    result, model = await run_small(crm, outline(ACME, changes=(none,)), outline(ACME), said_of("Move all"), DONE)

    assert result.ok
    assert crm.updates == [(["d0"], "3003")]
    assert model.requests[1].messages[-1].text.endswith('\nSay in "changes": stage.')


@pytest.mark.requirement("agents.profiles")
@pytest.mark.parametrize(("value", "asked"), [("2026-07-31", True), ("2026-07-30", False)])
async def test_a_day_with_the_name_of_a_month_is_looked_at_and_another_day_is_shown(value: str, asked: bool):
    crm, moved = Crm(1), list[str]()

    @tool(side_effects="writes", idempotent=True)
    async def close_deals(ids: list[str], closes: date) -> dict[str, Any]:
        """Say when deals close."""
        moved.append(f"{closes}")
        return {}

    day = {"words": "July 31st 2026", "field": "closes", "value": value}
    yes = {"words": "July 31st 2026", "stated": "yes"}
    answers = [yes] if asked else []

    result, model = await run_small(
        crm,
        outline(ACME, changes=(day,)),
        *answers,
        said_of("All on"),
        DONE,
        task="All Acme deals close on July 31st 2026",
        others=(close_deals,),
        steps=["search_deals", "close_deals"],
    )

    assert moved == (["2026-07-31"] if asked else [])
    assert result.summary.status == ("completed" if asked else "awaiting_answer")
    assert ("value" in [request.output_name for request in model.requests]) is asked
