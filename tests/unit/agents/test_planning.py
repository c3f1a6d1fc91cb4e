"""Plans in doubt: read a second time, corrected once, asked about; and what must be seen before it is done."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.unit.agents.crm import DONE, MODEL, Crm, plan, purposes, run_agent, run_tool, told
from tests.unit.agents.crm import asks as calls
from toolcrib import AgenticContext, Crib, ReferenceSource, Result, ScriptedModel, tool
from toolcrib.contracts import Conflict, ErrorCode, JsonObject, ProgressMade, Reason
from toolcrib.llm import Request

LIVE = AgenticContext(reference_data=(ReferenceSource(name="stages", tool="list_stages", applies_to=("stage",)),))
TASK = "Move all Acme deals to Negotiation"
READING: list[JsonObject] = [
    {"words": "Move all", "use": "request"},
    {"words": "Acme deals", "use": "condition", "value": "Acme"},
    {"words": "to Negotiation", "use": "change", "value": "Negotiation"},
]
CONSENT = {"question": "Soll ich?", "choices": {one: {"label": one, "outcome": ""} for one in ("yes", "no")}}


def move(
    *, stage: str = "3003", company: str = "Acme", reading: Sequence[JsonObject] = READING, **more: Any
) -> JsonObject:
    """The plan with its reading, or with another stage or company."""
    written = plan(search_deals={"input": {"company": company, **more}})
    written["update_deals"]["input"]["stage"] = stage
    return {"reading": list(reading), **written}


async def run(crm: Crm, *answers: JsonObject, task: str = TASK, **options: Any) -> tuple[Result, ScriptedModel]:
    """Run the sequence held to evidence, with live stages; a second reading is content with what it says nothing of."""
    left = list(answers)

    def answer(request: Request) -> str:
        said = left.pop(0)
        if request.output_name == "check":
            points = (request.output_schema or {})["properties"]
            said = {name: said.get(name, READ if name[0] == "w" else CONFIRMED) for name in points}
        return orjson.dumps(said).decode()

    model = ScriptedModel(answer)
    settings: Any = {"steps": ["search_deals", "update_deals"], "context": LIVE, "grounding": "evidence", **options}
    return await run_tool(crm, model, "deterministic", parameters={"task": task}, **settings), model


READ: JsonObject = {"says": "already read"}
CONFIRMED: JsonObject = {"words": "deals", "stated": "yes"}


@pytest.mark.requirement("agents.evidence")
async def test_a_plan_that_follows_from_the_task_costs_nothing_extra_and_says_where_its_values_come_from():
    result, _ = await run(Crm(1), move(), DONE)

    assert purposes(result) == ["planning", "formatting"]
    assert result.summary.warnings == ()
    told = [entry.event for entry in result.events if isinstance(entry.event, ProgressMade)]
    [settled] = [event.data for event in told if event.kind == "plan_settled"]
    assert [(one["field"], one["words"], one["source"]) for one in settled["evidence"]] == [
        ("company", "Acme deals", "task"),
        ("stage", "to Negotiation", "task"),
    ]


@pytest.mark.requirement("agents.second_reading")
async def test_a_synonym_is_read_a_second_time_and_then_carried_out():
    crm = Crm(1)
    reading = [
        *READING[:2],
        {"words": "haggling", "use": "change", "value": "Negotiation"},
        {"words": "is on", "use": "none"},
    ]

    result, model = await run(
        crm,
        move(reading=reading),
        {"v1": {"words": "haggling", "stated": "yes"}},
        DONE,
        task="Move all Acme deals: haggling is on",
    )

    assert purposes(result) == ["planning", "verification", "formatting"]
    assert "Does the task say that stage is to be 'Negotiation'?" in model.requests[1].messages[-1].text
    assert crm.updates == [(["d0"], "3003")]


@pytest.mark.requirement("agents.second_reading")
async def test_a_value_that_is_denied_is_corrected_by_the_planner():
    crm = Crm(1)
    denied = {"words": "", "stated": "no", "instead": "Negotiation"}

    result, model = await run(crm, move(stage="3001"), {"v1": denied}, move(), DONE)

    assert purposes(result) == ["planning", "verification", "error_recovery", "formatting"]
    asked = model.requests[2].messages[-1].text
    assert "- update_deals: change stage 'Qualified' is not what the task says; the task says 'Negotiation'" in asked
    assert crm.updates == [(["d0"], "3003")]


@pytest.mark.requirement("agents.coverage")
async def test_a_condition_that_was_forgotten_is_never_left_out_unasked():
    crm = Crm(3)
    missing = {"says": "missing", "meaning": "the amount is over 150"}

    result, model = await run(
        crm,
        move(),
        {"w1": missing},
        move(),
        {"question": "Wirklich alle?"},
        task="Move all Acme deals over 150 to Negotiation",
    )

    assert '"over 150" (the amount is over 150) is carried by no value' in model.requests[2].messages[-1].text
    assert (result.summary.status, crm.searches, crm.updates) == ("awaiting_answer", [], [])
    assert result.question is not None
    assert result.question.question == "Wirklich alle?"


@pytest.mark.requirement("agents.evidence")
async def test_an_id_that_nobody_looked_up_is_never_written_to():
    crm = Crm(3)
    invented = move()
    invented["update_deals"] = {"input": {"ids": ["104"], "stage": "3003"}}

    result, model = await run(crm, invented, invented, {"question": "Which deal?"})

    assert "it was neither looked up nor named in the task" in model.requests[1].messages[-1].text
    assert (result.summary.status, crm.updates) == ("awaiting_answer", [])


@pytest.mark.requirement("agents.evidence")
async def test_a_plan_that_only_reads_goes_on_with_a_warning():
    crm = Crm(1)

    result, _ = await run(crm, move() | {"update_deals": {"skip": True}}, DONE, task="Find Acme deals over 500")

    assert crm.searches == ["Acme"]
    assert result.summary.status == "completed"
    [doubt, left_out] = result.summary.warnings
    assert doubt.startswith("the plan may not fit the task: ")
    assert left_out == "step 'update_deals' was left out: the task does not need it"


@pytest.mark.requirement("agents.previews")
async def test_what_stays_unsure_is_shown_before_it_is_done():
    crm = Crm(2)
    reading = [*READING[:2], {"words": "to haggling", "use": "change", "value": "Negotiation"}]
    unclear = {"v1": {"words": "", "stated": "unclear"}}

    result, _ = await run(crm, move(reading=reading), unclear, CONSENT, task="Move all Acme deals to haggling")

    question = result.question
    assert question is not None
    assert (question.reason, question.question) == ("unsure", "Soll ich?")
    assert question.assumptions == ("\"to haggling\" was read as stage 'Negotiation'.",)
    assert question.preview is not None
    assert (question.preview.items, question.preview.calls) == (2, 1)
    assert question.preview.sample[0].before == {"id": "d0", "name": "Acme", "amount": 0}
    assert crm.updates == []


@pytest.mark.requirement("agents.evidence")
async def test_strict_takes_nothing_on_the_word_of_a_model():
    crm = Crm(1)
    reading = [*READING[:2], {"words": "to haggling", "use": "change", "value": "Negotiation"}]

    result, _ = await run(
        crm,
        *[move(reading=reading)] * 2,
        {"question": "What?"},
        task="Move all Acme deals to haggling",
        grounding="strict",
    )

    assert "verification" not in purposes(result)
    assert (result.summary.status, crm.updates) == ("awaiting_answer", [])


@pytest.mark.requirement("agents.nothing_done")
async def test_a_plan_that_leaves_out_every_step_is_no_success():
    skipped = {
        **plan(search_deals={"skip": True}, update_deals={"skip": True}),
        "reading": [{"words": TASK, "use": "request"}],
    }

    result, _ = await run(Crm(1), skipped)

    assert (result.ok, result.summary.status, result.summary.stop_reason) == (False, "incomplete", "nothing_done")
    assert result.error is not None
    assert (result.error.code, result.error.reason) == (ErrorCode.VALIDATION_ERROR, Reason.NOTHING_DONE)
    assert result.summary.metadata["outcome"] == {
        step: {"status": "skipped", "calls": 0, "failed": 0} for step in ("search_deals", "update_deals")
    }


@pytest.mark.requirement("agents.nothing_done")
async def test_a_run_that_found_nothing_says_so_by_facts():
    result, _ = await run(Crm(0), move())

    assert purposes(result) == ["planning"]
    assert result.unwrap()["summary"] == "Nothing was changed: there were no items to do update_deals for."
    assert result.summary.metadata["outcome"]["update_deals"] == {"status": "succeeded", "calls": 0, "failed": 0}


@asynccontextmanager
async def serving(folder: Path, crm: Crm, answer: Any, **options: Any) -> AsyncGenerator[Crib]:
    """A process of its own over one store."""
    async with Crib(f"sqlite:///{folder / 'crib.db'}", models={MODEL: ScriptedModel(answer)}) as crib:
        crib.add(*crm.tools)
        settings: dict[str, Any] = {"context": LIVE, "steps": ["search_deals", "update_deals"], **options}
        crib.agentic_tool("deals", mode="deterministic", model=MODEL, **settings)
        yield crib


def says(**by_name: JsonObject) -> Any:
    """A model that answers by what it is asked for."""

    def answer(request: Request) -> str:
        return orjson.dumps(by_name[request.output_name]).decode()

    return answer


@pytest.mark.requirement("agents.questions")
async def test_a_question_is_answered_in_another_process_and_language_and_the_same_run_goes_on(tmp_path: Path):
    crm = Crm(2)
    asking = {**move(), "question": {"text": "Welche Phase?", "choices": [{"label": "Negotiation", "outcome": "…"}]}}
    async with serving(tmp_path, crm, says(plan=asking)) as crib:
        waiting = await crib.invoke("deals", {"task": "Verschiebe alle Acme Deals"})
    assert waiting.question is not None
    assert (waiting.question.question, crm.updates) == ("Welche Phase?", [])

    reading = [
        {"words": "Verschiebe alle", "use": "request"},
        {"words": "Acme Deals", "use": "condition", "value": "Acme"},
        {"words": "la phase Negotiation, merci", "use": "change", "value": "Negotiation"},
    ]
    async with serving(tmp_path, crm, says(plan=move(reading=reading), answer=DONE)) as crib:
        assert (await crib.questions.of_run(waiting.run_id)) == waiting.question
        with pytest.raises(Conflict, match=r"at 'plan.q1': Welche Phase"):
            await crib.questions.answer(waiting.run_id, "x", position="plan.q7")
        result = await crib.questions.answer(waiting.run_id, "la phase Negotiation, merci")
        with pytest.raises(Conflict, match="asks nothing"):
            await crib.questions.answer(waiting.run_id, "again")
        replay = await crib.replay(waiting.run_id)

    assert (result.run_id, result.ok) == (waiting.run_id, True)
    assert purposes(result) == ["planning", "error_recovery", "formatting"]
    assert crm.updates == [(["d0", "d1"], "3003")]
    assert replay.same


@pytest.mark.requirement("agents.previews")
@pytest.mark.parametrize(
    ("answer", "updates"),
    [("yes", 1), ("Ja", 1), ("no", 0), ("mach das bitte", 1), ("um Himmels willen", 0)],
)
async def test_a_wide_change_waits_for_consent_in_any_words(tmp_path: Path, answer: str, updates: int):
    crm = Crm(3)
    wording = {
        "question": "3 Deals ändern?",
        "choices": {"yes": {"label": "Ja", "outcome": "…"}, "no": {"label": "Nein", "outcome": "…"}},
    }
    consent = {"consent": "yes" if "bitte" in answer else "no"}
    model = says(plan=move(), question=wording, consent=consent, answer=DONE)
    async with serving(tmp_path, crm, model, preview_above=2) as crib:
        waiting = await crib.invoke("deals", {"task": TASK})
        assert waiting.question is not None
        assert (waiting.question.reason, crm.updates) == ("wide", [])
        result = await crib.questions.answer(waiting.run_id, answer)
        same = (await crib.replay(waiting.run_id)).same

    assert len(crm.updates) == updates
    assert (result.summary.status, result.summary.stop_reason) == (
        ("completed", "final_answer") if updates else ("incomplete", "declined")
    )
    assert same


@pytest.mark.requirement("agents.questions")
async def test_a_caller_gets_the_question_of_what_it_has_called():
    crm = Crm(1)

    @tool(side_effects="writes")
    async def outer() -> str:
        """Stands for a caller."""
        return ""

    asking = ScriptedModel([orjson.dumps({**move(), "question": "Which stage?"}).decode()])
    async with Crib("memory://", models={MODEL: asking}) as crib:
        crib.add(*crm.tools, outer)
        crib.agentic_tool(
            "deals", mode="deterministic", model=MODEL, context=LIVE, steps=["search_deals", "update_deals"]
        )
        flow = crib.workflow("flow", steps=[{"name": "moved", "tool": "deals", "input": {"task": TASK}}])
        result = await flow()

    assert (result.status, result.stop_reason) == ("incomplete", "question")
    assert result.error is not None
    assert (result.error.code, result.error.reason) == (ErrorCode.VALIDATION_ERROR, Reason.QUESTION)
    assert "Which stage?" in result.error.message


@pytest.mark.requirement("agents.calls_judged")
async def test_a_model_that_chooses_does_not_write_to_what_it_has_made_up():
    crm = Crm(2)

    result, model = await run_agent(
        crm,
        calls(("update_deals", {"ids": ["104"], "stage": "3003"})),
        calls(("search_deals", {"company": "Acme"})),
        calls(("update_deals", {"ids": ["d0"], "stage": "3003"})),
        "Done.",
        grounding="evidence",
        context=LIVE,
    )

    assert result.ok
    assert crm.updates == [(["d0"], "3003")]
    assert "was not called: ids '104' comes from no result" in told(model.requests[1])[0]


def reader(words: str, stated: str, instead: str | None = None) -> str:
    """The second reading of one value."""
    return orjson.dumps({"v1": {"words": words, "stated": stated, "instead": instead}}).decode()


@pytest.mark.requirement("agents.calls_judged")
async def test_a_value_that_a_choosing_model_has_misread_is_refused_after_a_second_reading():
    crm = Crm(1)

    result, model = await run_agent(
        crm,
        calls(("search_deals", {"company": "Acme"})),
        calls(("update_deals", {"ids": ["d0"], "stage": "3002"})),
        reader("to Negotiation", "no", "Negotiation"),
        calls(("update_deals", {"ids": ["d0"], "stage": "3003"})),
        "Done.",
        grounding="evidence",
        context=LIVE,
    )

    assert result.ok
    assert crm.updates == [(["d0"], "3003")]
    assert "stage 'Proposal' is not what the task says, but 'Negotiation'" in told(model.requests[3])[-1]
    assert "verification" in purposes(result)


@pytest.mark.requirement("agents.calls_judged")
async def test_a_value_is_read_a_second_time_once_in_a_run_and_texts_are_not():
    crm = Crm(2)

    result, _ = await run_agent(
        crm,
        calls(("search_deals", {"company": "Acme"})),
        calls(("update_deals", {"ids": ["d0"], "stage": "3003"})),
        reader("talk terms", "yes"),
        calls(("update_deals", {"ids": ["d1"], "stage": "3003"})),
        "Done.",
        grounding="evidence",
        context=LIVE,
        parameters={"task": "Acme is ready to talk terms"},
    )

    assert result.ok
    assert len(crm.updates) == 2
    assert purposes(result).count("verification") == 1


@pytest.mark.requirement("agents.calls_judged")
async def test_a_second_reading_that_fails_leaves_the_call_as_it_is():
    crm = Crm(1)

    result, _ = await run_agent(
        crm,
        calls(("search_deals", {"company": "Acme"})),
        calls(("update_deals", {"ids": ["d0"], "stage": "3003"})),
        "no json",
        "again none",
        "Done.",
        grounding="evidence",
        context=LIVE,
        parameters={"task": "Acme is ready to talk terms"},
    )

    assert len(crm.updates) == 1
    assert any("no second reading" in warning for warning in result.summary.warnings)
