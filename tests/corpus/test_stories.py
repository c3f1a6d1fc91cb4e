"""Single stories of questions, previews and evidence, through the public API and with the corpus' systems."""

from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.corpus.corpus import Task, find
from tests.corpus.plans import right_plan
from tests.corpus.players import Player, filled, truthful
from tests.corpus.runs import Stand, open_stand
from toolcrib import Result
from toolcrib.contracts import JsonObject, ModelError, ModelFinished
from toolcrib.llm import Request

GIVEN = (("Give the", "request"), ("Globex", "condition"), ("deals", "none"))
GERMAN = (("Gib die", "request"), ("Globex", "condition"), ("-Deals an Rafael", "none"))


class Script:
    """A model that has its plans in order.

    Args:
        plans: What it writes.
        reads: Whether it can be asked to read a task again; it then finds all as it was read.
    """

    def __init__(self, *plans: JsonObject, reads: bool = False) -> None:
        self._plans = iter(plans)
        self._reads = reads

    def __call__(self, request: Request) -> str:
        """The next plan, or any JSON that meets the schema."""
        if request.output_name == "plan":
            return orjson.dumps(next(self._plans)).decode()
        if request.output_name == "check" and not self._reads:
            raise ModelError("not_found", "there is no second reader")
        return orjson.dumps(filled(request.output_schema or {})).decode()


async def run(stand: Stand, task: str, *plans: JsonObject, tool: str = "do_update", reads: bool = False) -> Result:
    """Run a task on records as they were at first."""
    stand.voice.script = Script(*plans, reads=reads)
    return await stand.crib.invoke(tool, {"task": task})


def purposes(result: Result) -> Counter[str]:
    """How often the model was asked for what."""
    return Counter(entry.event.purpose for entry in result.events if isinstance(entry.event, ModelFinished))


def changed(stand: Stand) -> dict[Any, JsonObject]:
    """The records that are no more as they were at first; those that are gone are empty."""
    before = type(stand.system)().records
    return {key: now for key in before if (now := stand.system.records.get(key, {})) != before[key]}


def given_to(owner: str, *said: tuple[str, str]) -> JsonObject:
    """The plan that gives Globex' deals to somebody.

    Args:
        owner: Whom.
        said: Pieces of the task from left to right, each with what it is for.
    """
    values = {"condition": {"value": "Globex"}, "change": {"value": owner}}
    return {
        "reading": [{"words": words, "use": use, **values.get(use, {})} for words, use in said],
        "reasoning": "",
        "question": None,
        "search_deals": {
            "input": {
                "filter_groups": [{"filters": [{"property": "company_name", "operator": "EQ", "value": "Globex"}]}]
            }
        },
        "update_deals": {
            "for_each": "${search_deals.results}",
            "input": {"inputs": [{"id": "${item.id}", "properties": {"owner_id": owner}}]},
        },
    }


def skipping(question: Any = None) -> JsonObject:
    """The plan that does nothing, with or without a question."""
    reading = [{"words": "Globex", "use": "request"}]
    skipped = {"search_deals": {"skip": True}, "update_deals": {"skip": True}}
    return {"reading": reading, "reasoning": "", "question": question, **skipped}


def owners(stand: Stand, company: str) -> set[str]:
    """Who owns the deals of a company."""
    return {str(one["owner"]) for one in stand.system.records.values() if one["company"] == company}


# What nobody has said -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("agents.evidence", "agents.questions")
async def test_a_write_to_a_record_that_nobody_looked_up_ends_in_a_question():
    task = "Give the Globex deals to Rafael Wang"
    plan = given_to("Rafael Wang", *GIVEN, ("to Rafael Wang", "change")) | {
        "update_deals": {"input": {"inputs": [{"id": "104", "properties": {"owner_id": "Rafael Wang"}}]}}
    }
    async with open_stand("crm") as stand:
        result = await run(stand, task, plan, plan)

        assert result.summary.status == "awaiting_answer"
        assert result.question is not None
        assert result.question.reason == "unclear"
        assert [one.name for one in result.envelopes if one.name == "update_deals"] == []
        assert changed(stand) == {}


@pytest.mark.requirement("agents.nothing_done")
async def test_a_plan_that_leaves_out_every_step_is_no_success():
    async with open_stand("crm") as stand:
        result = await run(stand, "Give the Globex deals to Rafael Wang", skipping())

        assert (result.summary.status, result.summary.stop_reason) == ("incomplete", "nothing_done")
        assert result.error is not None
        assert result.error.reason == "nothing_done"
        assert purposes(result) == {"planning": 1}
        assert changed(stand) == {}


# Questions ------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("agents.questions")
async def test_a_question_in_german_is_answered_in_french_in_another_process(tmp_path: Path):
    task, store = "Gib die Globex-Deals an Rafael", f"sqlite:///{tmp_path}/crib.db"
    async with open_stand("crm", store) as stand:
        asked = await run(stand, task, skipping("Welcher Rafael ist gemeint?"))
        assert asked.question is not None
        assert (asked.question.question, asked.question.reason) == ("Welcher Rafael ist gemeint?", "unclear")

    async with open_stand("crm", store) as stand:
        waiting = await stand.crib.questions.of_run(asked.run_id)
        assert waiting == asked.question
        stand.voice.script = Script(given_to("Rafael Wang", *GERMAN, ("Rafael Wang", "change")), reads=True)
        result = await stand.crib.questions.answer(asked.run_id, "C'est Rafael Wang, merci !")

        assert (result.run_id, result.summary.status) == (asked.run_id, "completed")
        assert purposes(result) == {"planning": 1, "error_recovery": 1, "verification": 1, "formatting": 1}
        assert owners(stand, "Globex") == {"Rafael Wang"}
        assert {one["company"] for one in changed(stand).values()} == {"Globex"}


def _meant(name: str) -> JsonObject:
    return given_to(f"Rafael {name}", *GIVEN, ("to Rafael", "change"))


@pytest.mark.requirement("agents.questions", "agents.evidence")
@pytest.mark.parametrize(
    "reads",
    [
        True,
        False,
    ],
    ids=["a_second_reader", "no_second_reader"],
)
async def test_a_first_name_that_several_have_is_asked_about_with_the_people_as_choices(reads: bool):
    async with open_stand("crm") as stand:
        task = "Give the Globex deals to Rafael"
        asked = await run(stand, task, _meant("Wang"), _meant("Petrov"), _meant("Petrov"), reads=reads)

        assert asked.question is not None
        people = {"Rafael Lindqvist", "Rafael Wang", "Rafael Eriksen", "Rafael Petrov"}
        assert {choice.value for choice in asked.question.choices} == people
        assert purposes(asked) == {"planning": 1, "question": 1}
        assert changed(stand) == {}

        result = await stand.crib.questions.answer(asked.run_id, "Rafael Petrov")
        assert result.ok
        assert owners(stand, "Globex") == {"Rafael Petrov"}


# Previews -------------------------------------------------------------------------------------------------------------


def _removal() -> Task:
    return find("crm-en-16")


@pytest.mark.requirement("agents.previews")
async def test_a_preview_says_how_many_and_shows_some_and_no_changes_nothing():
    task = _removal()
    async with open_stand("crm") as stand:
        meant = stand.system.find(task.where)
        asked = await run(stand, task.text, right_plan(task), tool="do_delete")

        assert asked.question is not None
        assert asked.question.reason == "irreversible"
        assert [choice.value for choice in asked.question.choices] == ["yes", "no"]
        preview = asked.question.preview
        assert preview is not None
        assert (preview.items, preview.tool) == (len(meant), "delete_deals@1.0.0")
        assert [item.before for item in preview.sample] == meant[:3]
        assert all(item.after is not None for item in preview.sample)

        result = await stand.crib.questions.answer(asked.run_id, "no")
        assert (result.summary.status, result.summary.stop_reason) == ("incomplete", "declined")
        assert changed(stand) == {}


@pytest.mark.requirement("agents.previews", "agents.questions")
async def test_a_preview_is_agreed_to_by_the_label_of_a_choice():
    task = _removal()
    async with open_stand("crm") as stand:
        meant = {record["id"] for record in stand.system.find(task.where)}
        asked = await run(stand, task.text, right_plan(task), tool="do_delete")
        assert asked.question is not None
        result = await stand.crib.questions.answer(asked.run_id, asked.question.choices[0].label)

        assert result.ok
        assert changed(stand).keys() == meant


# How sure one must be -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("agents.evidence")
async def test_strict_mode_asks_where_a_second_reading_would_do():
    task, plan = find("crm-en-02"), right_plan(find("crm-en-02"))
    async with open_stand("crm") as stand:
        evidence = await stand.play(Player(task, plan, plan, plan, truthful(task)))
    async with open_stand("crm", grounding="strict") as stand:
        strict = await stand.play(Player(task, plan, plan, plan, truthful(task)))

    assert (evidence.outcome, evidence.further) == ("right", ("verification",))
    assert strict.outcome == "asked"
    assert "verification" not in strict.further


@pytest.mark.requirement("agents.evidence")
async def test_without_grounding_a_plan_needs_no_reading():
    task = find("crm-en-02")
    plan = {name: value for name, value in right_plan(task).items() if name != "reading"}
    async with open_stand("crm", grounding="off") as stand:
        ran = await stand.play(Player(task, plan, plan, plan, truthful(task)))

    assert (ran.outcome, ran.further) == ("right", ())
