"""The planner made of rules."""

import json
from typing import Any

import pytest

from examples.crm.planner import StageChange, answer, planner, read_task
from toolcrib.llm import Request, user

pytestmark = pytest.mark.requirement("demo.planner")

STAGE: dict[str, Any] = {
    "type": "string",
    "enum": ["s1", "s2", "r2"],
    "description": "A stage's id. One of: s1 = New lead; s2 = Negotiation; r2 = Won",
}


def ask(task: str, stage: Any = None) -> Any:
    """The plan for a task, asked for with a schema that has the stages somewhere inside."""
    schema = {"properties": {"a": {"anyOf": [{"properties": {"stage": stage or STAGE}}, {"type": "null"}]}}}
    question = user(f"Task: {task}\n\nFill in the input of every step.")
    return json.loads(answer(Request(messages=(question,), output_name="plan", output_schema=schema)))


def report(task: str, facts: str) -> Any:
    question = user(f"Task: {task}\n\nFacts of the steps that ran: {facts}\nSteps not needed: none")
    return json.loads(answer(Request(messages=(question,), output_name="answer")))


@pytest.mark.parametrize(
    "task",
    [
        "Update all Acme Corp deals to Negotiation",
        "Update all Acme Corp deals to Negotiation stage",
        "Move every Acme Corp deal to Negotiation.",
        "  please move  all of Acme Corp's deals into the Negotiation stage ",
        "Set Acme Corp deals to stage 'Negotiation'",
        "Set the stage of all Acme Corp deals to Negotiation!",
        "Change all deals of Acme Corp to Negotiation",
        'Put the deals with "Acme Corp" in Negotiation',
        "Move each Acme Corp\u2019s deal to \u201cNegotiation\u201d",
    ],
)
def test_it_reads_several_wordings(task: str) -> None:
    assert read_task(task) == StageChange("Acme Corp", "Negotiation")


@pytest.mark.parametrize("task", ["Delete Acme Corp", "Update all deals to Negotiation", "Move Acme Corp to Won", ""])
def test_other_wordings_are_a_question_with_the_valid_stages(task: str) -> None:
    assert read_task(task) is None
    plan = ask(task)
    assert plan["question"].endswith("The stages are: New lead (s1), Negotiation (s2), Won (r2).")
    assert plan["search_deals"] == plan["batch_update_deals"] == {"skip": True}


def test_a_plan_takes_company_and_stage_from_what_it_was_given() -> None:
    plan = ask("Move every Globex deal to negotiation")

    company = {"property": "company_name", "operator": "EQ", "value": "Globex"}
    assert plan["search_deals"]["input"]["filter_groups"] == [{"filters": [company]}]
    assert plan["batch_update_deals"] == {
        "for_each": "${search_deals.results}",
        "input": {"inputs": [{"id": "${item.id}", "properties": {"stage": "s2"}}]},
    }
    assert ask("Move every Globex deal to r2")["batch_update_deals"]["input"]["inputs"][0]["properties"] == {
        "stage": "r2"
    }


@pytest.mark.parametrize(
    ("stage", "problem"),
    [("Nirvana", "'Nirvana' is not a stage."), ("Won", "'Won' is the name of 2 stages; say which by its id.")],
)
def test_a_stage_that_does_not_exist_or_exists_twice_is_a_question(stage: str, problem: str) -> None:
    twice = {"enum": ["w1", "w2"], "description": "One of: w1 = Won; w2 = Won"}
    assert ask(f"Move all Acme deals to {stage}", twice)["question"] == (
        f"{problem} The stages are: Won (w1), Won (w2)."
    )


@pytest.mark.parametrize(
    ("task", "asked", "said"),
    [
        (
            "Update all Acme Corp deals to Negotiation",
            "Does the task say that only items with company_name EQ 'Acme Corp' are meant? Quoted for it: \"Acme\".",
            {"words": "Acme Corp", "stated": "yes"},
        ),
        (
            "Update all Acme Corp deals to negotiation",
            "Does the task say that stage is to be 'Negotiation'? Possible values: New lead, Negotiation.",
            {"words": "negotiation", "stated": "yes"},
        ),
        (
            "Update all Acme Corp deals to Negotiation",
            "Does the task say that only items with limit '100' are meant?",
            {"words": "", "stated": "no"},
        ),
        ("Sell more", "Does the task say that stage is to be 'Won'?", {"words": "", "stated": "no"}),
    ],
)
def test_a_second_reading_finds_its_company_and_its_stage_in_the_task_and_nothing_else(
    task: str, asked: str, said: dict[str, str]
) -> None:
    text = f"Task: {task}\nToday is Monday, 2026-03-02.\n\nThis was read from it:\n- nothing\n\nv1: {asked}\nw2: So?"

    found = json.loads(answer(Request(messages=(user(text),), output_name="check")))

    assert found == {"v1": said, "w2": {"says": "nothing"}}


def test_a_schema_without_labels_offers_no_stages() -> None:
    assert "'Negotiation' is not a stage" in ask("Move all Acme deals to Negotiation", {"enum": ["s2"]})["question"]


def test_a_report_has_the_numbers_of_the_facts() -> None:
    facts: dict[str, Any] = {
        "search_deals": {"calls": 1, "output": {"total": 237}},
        "batch_update_deals": {
            "calls": 2,
            "output": [{"updated": 90, "unchanged": 10}, {"updated": 5, "unchanged": 0}],
        },
    }
    task = "Update all Acme Corp deals to Negotiation"
    assert report(task, json.dumps(facts)) == {
        "summary": "Moved 95 of the 237 deals of Acme Corp to Negotiation; 10 were there already.",
        "deals_affected": 95,
    }
    facts["batch_update_deals"]["output"] = [{"updated": 5, "unchanged": 0}, "… 2 more of 3"]
    assert report(task, json.dumps(facts))["summary"].startswith("Moved at least 5 of the 237 deals")
    facts["batch_update_deals"] = {"calls": 2, "failed": 2, "first_error": "no", "output": [None, None]}
    assert report(task, json.dumps(facts))["summary"].endswith("to Negotiation; 2 of 2 updates failed: no.")


def test_a_report_without_usable_facts_names_no_number() -> None:
    for facts in ("{}", '{"search_deals": {"output": … (7000 characters)'):
        assert report("Update all Acme deals to Won", facts) == {
            "summary": "The facts do not tell what became of the deals of Acme.",
            "deals_affected": None,
        }
    assert "of the company" in report("?", "{}")["summary"]


def test_it_is_named_as_scripted() -> None:
    assert planner().name == "scripted:crm-planner"
