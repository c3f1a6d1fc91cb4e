"""Values held against the words that are quoted for them, in many scripts, and words that no value carries."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from toolcrib.agents.evidence import (
    EvidenceSources,
    Finding,
    Judgement,
    Known,
    Passage,
    Step,
    TaskPart,
    advice,
    calculate_day,
    doubts_of_call,
    judge,
    learn,
    points_of,
    value_texts,
    words_of,
)
from toolcrib.agents.evidence.quantities import numbers_in
from toolcrib.contracts import JsonObject, JsonSchema
from toolcrib.core.providers import ReferenceItem, ReferenceList

TODAY = date(2026, 3, 11)
STAGES = ("New lead", "Proposal sent", "Offer sent", "Closed won", "Closed lost")
PEOPLE = ("Rafael Wang", "Rafael Petrov", "Tove Silva")
FILTER: JsonSchema = {
    "type": "object",
    "properties": {
        "property": {"enum": ["company", "stage", "owner", "amount", "close_date"]},
        "operator": {"enum": ["EQ", "NEQ", "GT", "LT"]},
        "value": {"type": ["string", "number"]},
    },
}
SEARCH: JsonSchema = {"type": "object", "properties": {"filters": {"type": "array", "items": FILTER}}}
UPDATE: JsonSchema = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "stage": {"type": "string"},
        "owner": {"type": "string"},
        "urgent": {"type": "boolean", "default": False},
        "note": {"type": ["string", "null"]},
    },
}


def listed(*names: str, fields: str) -> dict[str, ReferenceList]:
    items = tuple(ReferenceItem(f"{fields}-{number}", name, {}) for number, name in enumerate(names))
    return {fields: ReferenceList(fields, items, datetime(2026, 1, 1, tzinfo=UTC), None, (fields,))}


LISTS = {**listed(*STAGES, fields="stage"), **listed(*PEOPLE, fields="owner")}


def id_of(name: str) -> str:
    return next(item.value for values in LISTS.values() for item in values.items if item.label == name)


def said(task: str, **changes: Any) -> EvidenceSources:
    settings: dict[str, Any] = {"lists": LISTS, "known": frozenset({"deals", "update"}), **changes}
    return EvidenceSources(Passage(task), settings.pop("documentation", Passage("")), TODAY, **settings)


def search(**where: Any) -> Step:
    filters = [{"property": name, "operator": "EQ", "value": value} for name, value in where.items()]
    return Step("search", {"filters": filters}, SEARCH, writes=False)


def update(**changes: Any) -> Step:
    return Step("update", {"id": "${item.id}", **changes}, UPDATE, writes=True, for_each="${search.results}")


def one(judged: Judgement, field: str) -> Finding:
    return next(found for found in judged.findings if found.field == field)


def states(task: str, *steps: Step, claims: tuple[TaskPart, ...] = (), **changes: Any) -> dict[str, str]:
    return {found.field: found.state for found in judge(steps, claims, said(task, **changes)).findings}


@pytest.mark.requirement("agents.evidence")
@pytest.mark.parametrize(
    ("words", "company"),
    [
        ("Globex's", "Globex"),
        ("GLOBEX", "Globex"),
        ("von Acme Corp", "Acme Corp"),
        ("Globexu", "Globex"),
        ("Globex'in", "Globex"),
        ("Globexの", "Globex"),
        ("把Globex", "Globex"),
        ("Café Lumière", "Cafe Lumiere"),
        ("\uff27\uff4c\uff4f\uff42\uff45\uff58", "Globex"),
    ],
)
def test_a_name_stands_in_its_words_in_any_language(words: str, company: str):
    claim = TaskPart(words, "condition", company)

    assert states(f"x {words} y", search(company=company), claims=(claim,)) == {"company": "evident"}


@pytest.mark.requirement("agents.evidence")
@pytest.mark.parametrize(
    ("words", "company"), [("Acme Corp", "Acme"), ("Acme Corp", "Acme Motors"), ("TechCo", "Globex")]
)
def test_another_name_does_not_stand_in_them(words: str, company: str):
    claim = TaskPart(words, "condition", company)

    assert states(f"Move {words} deals", search(company=company), claims=(claim,)) == {"company": "unsure"}


@pytest.mark.requirement("agents.evidence")
@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        ("over 50,000", {50000, 50}),
        ("50.000 €", {50000, 50}),
        ("1.234,50", {Decimal("1234.50")}),
        ("50k", {50000}),
        ("2M", {2_000_000}),
        ("五万", {50000}),
        ("5万円", {50000}),
        ("二十三", {23}),
        ("\u0665\u0660", {50}),
        ("50 000", {50000}),
        ("fifty", set[int]()),
    ],
)
def test_numbers_are_read_by_characters(words: str, numbers: set[Any]):
    assert numbers_in(words) == frozenset(map(Decimal, numbers))


@pytest.mark.requirement("agents.evidence")
@pytest.mark.parametrize(
    ("words", "stage", "state"),
    [
        ("as won", "Closed won", "evident"),
        ("proposals", "Proposal sent", "evident"),
        ("offers that were sent", "Offer sent", "evident"),
        ("offers that were sent", "Proposal sent", "unsure"),
        ("closed", "Closed won", "ambiguous"),
        ("gewonnen", "Closed won", "unsure"),
        ("NEW LEAD", "New lead", "evident"),
    ],
)
def test_a_label_is_meant_by_the_letters_that_no_other_label_shares(words: str, stage: str, state: str):
    claim = TaskPart(words, "change", stage)

    assert states(f"Mark them {words}", update(stage=id_of(stage)), claims=(claim,)) == {"stage": state}


@pytest.mark.requirement("agents.questions")
def test_a_first_name_of_two_people_is_ambiguous_and_of_one_is_not():
    to = TaskPart("to Rafael", "change", "Rafael Wang")
    found = one(judge((update(owner=id_of("Rafael Wang")),), (to,), said("Give it to Rafael")), "owner")

    assert (found.state, set(found.others)) == ("ambiguous", {"Rafael Wang", "Rafael Petrov"})
    tove = TaskPart("to Tove", "change", "Tove Silva")
    assert states("Give it to Tove", update(owner=id_of("Tove Silva")), claims=(tove,)) == {"owner": "evident"}


@pytest.mark.requirement("agents.evidence")
@pytest.mark.parametrize(
    ("task", "state"),
    [("Close deal 104", "evident"), ("Close all Acme deals", "invented"), ("Close deal 1042", "invented")],
)
def test_an_id_stands_in_the_task_or_is_invented(task: str, state: str):
    step = Step("update", {"id": "104"}, UPDATE, writes=True)

    assert states(task, step) == {"id": state}
    assert states("Close it", step, documentation=Passage("The test deal is 104.")) == {"id": "evident"}


@pytest.mark.requirement("agents.evidence")
@pytest.mark.parametrize(
    ("calculation", "day"),
    [
        ("today", "2026-03-11"),
        ("today + 1 week, friday", "2026-03-20"),
        ("today, end of month", "2026-03-31"),
        ("today + 1 quarter, start of quarter", "2026-04-01"),
        ("today - 1 year, end of year", "2025-12-31"),
        ("Today +  2 weeks", "2026-03-25"),
        ("tomorrow", None),
        ("today + 9999 years", None),
        ("__import__('os')", None),
    ],
)
def test_a_day_follows_from_todays_by_a_calculation(calculation: str, day: str | None):
    assert calculate_day(calculation, TODAY) == (None if day is None else date.fromisoformat(day))


@pytest.mark.requirement("agents.evidence")
@pytest.mark.parametrize(
    ("words", "how", "state", "why"),
    [
        ("on 2026-03-20", "", "evident", ""),
        ("am 20.3.2026", "", "evident", ""),
        ("2026年3月20日", "", "evident", ""),
        ("next Friday", "today + 1 week, friday", "unsure", "calculated as"),
        ("next Friday", "today, friday", "unsure", "gives 2026-03-13"),
    ],
)
def test_a_day_is_written_or_calculated(words: str, how: str, state: str, why: str):
    claim = TaskPart(words, "condition", "2026-03-20", how)
    found = one(judge((search(close_date="2026-03-20"),), (claim,), said(f"Deals {words}")), "close_date")

    assert found.state == state
    assert why in found.why


@pytest.mark.requirement("agents.coverage")
def test_words_that_nothing_carries_are_left_and_those_that_are_said_to_mean_nothing_are_looked_at():
    claims = (TaskPart("Move", "request"), TaskPart("Acme", "condition", "Acme"), TaskPart("please", "none"))
    judged = judge((search(company="Acme"),), claims, said("Move Acme deals that are still open, please"))

    assert judged.left == ("that are still open",)
    assert judged.idle == ("Move", "please")


@pytest.mark.requirement("agents.coverage")
@pytest.mark.parametrize(
    "lost", ["over 50k", "of Tove Silva", "in New lead", 'called "Spring"', "worth at least fifty thousand"]
)
def test_a_part_that_holds_what_decides_is_asked_about_though_it_is_said_to_mean_nothing(lost: str):
    claims = (TaskPart("Acme", "condition", "Acme"), TaskPart(lost, "none"))
    judged = judge((search(company="Acme"),), claims, said(f"Acme deals {lost}"))

    assert judged.left


@pytest.mark.requirement("agents.evidence")
def test_words_that_are_said_once_are_no_condition_and_change_at_once():
    claims = (TaskPart("Give Acme", "condition", "Acme"), TaskPart("to Tove", "change", "Tove Silva"))
    steps = (search(company="Acme", owner=id_of("Tove Silva")), update(owner=id_of("Tove Silva")))
    judged = judge(steps, claims, said("Give Acme to Tove"))

    assert [found.role for found in judged.open] == ["condition", "change"]


@pytest.mark.requirement("agents.evidence")
def test_literals_of_a_filter_expression_are_values_of_their_own():
    schema: JsonSchema = {"type": "object", "properties": {"filter": {"type": "string"}}}
    step = Step("search", {"filter": "company eq 'O''Brien Ltd' and amount gt 500"}, schema, writes=False)
    judged = judge((step,), (), said("O'Brien Ltd, everything over 500"))

    assert {(found.field, found.shown, found.leaf.comparison, found.state) for found in judged.findings} == {
        ("company", "O'Brien Ltd", "eq", "evident"),
        ("amount", "500", "gt", "evident"),
    }


@pytest.mark.requirement("agents.evidence")
def test_defaults_references_and_words_of_comparison_need_no_evidence_and_other_truths_do():
    assert states("Go", update(urgent=False)) == {}
    assert states("Go", update(urgent=True)) == {"urgent": "unsaid"}
    assert states("Go", update(note=None)) == {"note": "unsaid"}


@pytest.mark.requirement("agents.second_reading")
def test_a_second_reading_confirms_by_words_of_the_task_and_denies_with_what_is_meant():
    task = said("Move the offers to gewonnen")
    claims = (TaskPart("the offers", "condition", "Proposal sent"), TaskPart("to gewonnen", "change", "Closed won"))
    judged = judge((search(stage=id_of("Proposal sent")), update(stage=id_of("Closed won"))), claims, task)
    known = Known()
    points = points_of(judged, known)
    answer: JsonObject = {
        "v1": {"words": "the offers", "stated": "no", "instead": "Offer sent"},
        "v2": {"words": "gewonnen", "stated": "yes"},
    }
    answer |= {point.key: {"says": "already read"} for point in points if isinstance(point.subject, str)}
    learn(known, points, answer, task)
    left = known.apply_to(judged)

    assert [found.shown for found in left.open] == ["Proposal sent"]
    assert advice(left, known) == [
        "search: condition stage 'Proposal sent' is not what the task says; the task says 'Offer sent'"
    ]
    assert points_of(left, known) == []


@pytest.mark.requirement("agents.second_reading")
def test_no_reader_confirms_what_names_a_record():
    task = said("Close the deal")
    judged = judge(
        (Step("update", {"id": "104"}, UPDATE, writes=True),), (TaskPart("the deal", "condition", "104"),), task
    )

    assert [found.state for found in judged.open] == ["invented"]
    assert not any(not isinstance(point.subject, str) for point in points_of(judged, Known()))


@pytest.mark.requirement("agents.calls_judged")
def test_a_call_may_use_what_results_have_brought():
    step = Step("t1.c1", {"id": "d7", "note": "Hello"}, UPDATE, writes=True)

    assert [found.field for found in doubts_of_call(step, said("Say Hello"), frozenset())] == ["id"]
    assert doubts_of_call(step, said("Say Hello"), value_texts([{"results": [{"id": "d7"}]}])) == ()


@pytest.mark.requirement("agents.evidence")
@pytest.mark.parametrize(
    "text", ["", "   ", "\n\n", "…", "\u0661\u0662", "a" * 5_000, "Globex " * 4_000, "\ud83d\ude00", "e\u0301te\u0301"]
)
def test_any_text_can_be_a_task_and_any_words_a_quotation(text: str):
    judged = judge(
        (search(company="Globex"),), (TaskPart(text, "condition", "Globex"), TaskPart("x" * 300, "none")), said(text)
    )

    assert len(judged.findings) == 1
    assert words_of(text) == Passage(text).words
