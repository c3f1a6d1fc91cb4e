"""Plans held against the task's words."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from toolcrib.agents.grounding import Task, doubts, is_idle, leftover, without
from toolcrib.agents.labels import spoken, translated
from toolcrib.agents.leaves import Step
from toolcrib.agents.linking import lists_before, plan_example
from toolcrib.agents.mentions import folded, read_mentions, stem
from toolcrib.agents.signatures import brief, signature
from toolcrib.contracts import JsonObject, JsonSchema
from toolcrib.providers import ReferenceItem, ReferenceList

PROPERTIES = ["name", "company", "stage", "owner_id", "amount", "close_date"]
FILTER: JsonSchema = {
    "type": "object",
    "properties": {
        "property": {"enum": PROPERTIES},
        "operator": {"enum": ["EQ", "GT", "LT", "LTE", "BETWEEN"]},
        "value": {"type": ["string", "number"]},
    },
    "required": ["property", "operator"],
}
SEARCH: JsonSchema = {
    "type": "object",
    "properties": {
        "filters": {"type": "array", "items": {"$ref": "#/$defs/Filter"}},
        "order": {"enum": ["up", "down"]},
        "limit": {"type": "integer", "default": 20},
    },
    "$defs": {"Filter": FILTER},
}
UPDATE: JsonSchema = {
    "type": "object",
    "properties": {
        "inputs": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "properties": {
                        "type": "object",
                        "properties": {
                            "stage": {
                                "enum": ["s1", "s2", "s3"],
                                "x-labels": {"s1": "New lead", "s2": "Won", "s3": "Lost"},
                            },
                            "name": {"type": "string"},
                            "amount": {"type": "number"},
                        },
                    },
                },
                "required": ["id", "properties"],
            },
        }
    },
    "required": ["inputs"],
}


def listed(name: str, **labels: str) -> ReferenceList:
    items = tuple(ReferenceItem(value, label) for value, label in labels.items())
    return ReferenceList(name, items, datetime(2026, 1, 1, tzinfo=UTC), None)


LISTS = {
    "stage": listed("stages", s1="New lead", s2="Won", s3="Lost"),
    "owner_id": listed("owners", o1="Dana Quinn", o2="Hugo Rossi"),
}
GLOBEX = ("company", "EQ", "Globex")
DANA = ("owner_id", "EQ", "o1")
VOCABULARY = frozenset(map(stem, ("deals", "search", "update", *PROPERTIES)))


def task(text: str) -> Task:
    return Task(read_mentions(text), read_mentions(text), LISTS, VOCABULARY)


def search(*filters: tuple[str, str, Any], **more: Any) -> Step:
    written = [{"property": name, "operator": operator, "value": value} for name, operator, value in filters]
    return Step("find", {"filters": written, **more}, SEARCH, writes=False)


def update(**properties: Any) -> Step:
    return Step("move", {"inputs": [{"id": "${item.id}", "properties": properties}]}, UPDATE, writes=True)


def said(text: str, *steps: Step) -> list[str]:
    return [str(doubt) for doubt in doubts(steps, task(text))]


@pytest.mark.requirement("agents.grounding")
@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("Move all Globex deals to Won", (search(GLOBEX), update(stage="s2"))),
        ("Move GLOBEX's deals from new lead to won", (search(GLOBEX, ("stage", "EQ", "s1")), update(stage="s2"))),
        ("Set Dana Quinn's deals over $50k to 60,000", (search(DANA, ("amount", "GT", 50000)), update(amount=60000))),
        ("Which deals close after 30 June 2026?", (search(("close_date", "GT", "2026-06-30")),)),
        ("Rename Globex's deals to 'Plan of 30 June'", (search(GLOBEX), update(name="Plan of 30 June"))),
        ("Which deals close in Q2 2026?", (search(("close_date", "GT", "2026-04-01")),)),
        ("Which deals close next week?", (search(("close_date", "GT", "2026-03-09")),)),
        ("Show 10 deals, largest first", (search(order="down", limit=10),)),
        ("Show all deals", (search(limit=20),)),
        ("Rename deal 'Alpha' to \"Beta two\"", (search(("name", "EQ", "Alpha")), update(name="Beta two"))),
    ],
)
def test_a_plan_that_says_what_the_task_says_raises_no_doubt(text: str, steps: tuple[Step, ...]):
    assert said(text, *steps) == []


@pytest.mark.requirement("agents.grounding")
@pytest.mark.parametrize(
    ("step", "place", "word"),
    [
        (search(GLOBEX, ("stage", "EQ", "s3")), ("filters", 1), "Lost"),
        (search(GLOBEX, ("owner_id", "EQ", "o2")), ("filters", 1), "Hugo Rossi"),
        (search(GLOBEX, ("amount", "GT", 1000)), ("filters", 1), "1000"),
        (search(GLOBEX, ("close_date", "GT", "2026-01-01")), ("filters", 1), "2026-01-01"),
        (search(GLOBEX, ("name", "EQ", "Initech")), ("filters", 1), "Initech"),
        (search(GLOBEX, limit=100), ("limit",), "100"),
    ],
)
def test_a_filter_that_nobody_asked_for_is_found_and_can_be_left_out(step: Step, place: tuple[Any, ...], word: str):
    found = doubts([step, update(stage="s2")], task("Move all Globex deals to Won"))

    assert [(doubt.step, doubt.place) for doubt in found] == [("find", place)]
    assert word in str(found[0])
    left = without(step.input, [place])
    assert (
        doubts(
            [search(), Step("find", left, SEARCH, writes=False), update(stage="s2")],
            task("Move all Globex deals to Won"),
        )
        == []
    )


@pytest.mark.requirement("agents.grounding")
@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("Move the Globex deals of Initech to Won", "Initech"),
        ("Move the Globex deals over 50k to Won", "50000"),
        ("Move the Globex deals in New lead to Won", "New lead"),
        ("Move the Globex deals of Hugo Rossi to Won", "Hugo Rossi"),
        ('Move the Globex deals named "alpha beta" to Won', "alpha beta"),
        ("Move the Globex deals that close by 2026-06-30 to Won", "2026-06-30"),
        ("Move the Globex deals that close on 30 June 2026 to Won", "30 June 2026"),
        ("Move the Globex deals that close on 03/04/2026 to Won", "03/04/2026"),
        ("Move the Globex deals that close in June 2026 to Won", "June 2026"),
    ],
)
def test_what_the_task_mentions_and_no_step_uses_is_found(text: str, missing: str):
    found = said(text, search(GLOBEX), update(stage="s2"))

    assert found == [f"the task mentions {missing!r}, but no step uses it"]


@pytest.mark.requirement("agents.grounding")
@pytest.mark.parametrize(
    ("step", "idle"),
    [
        (update(), True),
        (update(stage="s2"), False),
        (search(), False),
        (Step("remove", {"ids": ["${item.id}"]}, UPDATE, writes=True), False),
    ],
)
def test_a_step_that_leaves_open_what_to_set_changes_nothing(step: Step, *, idle: bool):
    assert is_idle(step, task("Show all deals")) is idle


@pytest.mark.requirement("agents.grounding")
def test_a_change_to_what_the_items_were_selected_by_is_none():
    found = said("Move Globex deals to Won", search(GLOBEX, ("stage", "EQ", "s2")), update(stage="s2"))

    assert len(found) == 1
    assert "that changes nothing" in found[0]


@pytest.mark.requirement("agents.grounding")
def test_a_text_that_selects_is_not_written_into_a_field_that_nobody_spoke_of():
    step = update(stage="s2", name="Globex")
    found = doubts([search(GLOBEX), step], task("Move Globex deals to Won"))

    assert [doubt.place for doubt in found] == [("inputs", 0, "properties", "name")]
    assert without(step.input, [found[0].place]) == update(stage="s2").input


@pytest.mark.requirement("agents.grounding")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Reassign the Globex deals to Harold Blankenship", ["move sets name, of which the task does not speak"]),
        ("Rename the Globex deals to Harold Blankenship", []),
        ("The Globex deals shall be called Harold Blankenship", []),
    ],
)
def test_a_name_that_fits_nowhere_is_not_written_into_any_field(text: str, found: list[str]):
    written = update(name="Harold Blankenship")
    step = Step("move", written.input, UPDATE, writes=True, for_each="${find.results}")

    assert [doubt.partition(";")[0] for doubt in said(text, search(GLOBEX), step)] == found


@pytest.mark.requirement("agents.grounding")
def test_a_code_that_no_list_explains_may_stand_for_anything():
    unknown = Step(
        "find", {"filters": [{"property": "company", "operator": "EQ", "value": "c-17"}]}, SEARCH, writes=False
    )

    assert said("Move Globex deals to Won", unknown, update(stage="s2")) == []


@pytest.mark.requirement("agents.grounding")
def test_words_that_neither_plan_nor_tools_know_are_left_over():
    steps = [search(GLOBEX), update(stage="s2")]

    assert leftover(steps, task("Move all Globex deals to Won")) == []
    assert leftover(steps, task("Move all stale Globex deals to Won")) == ["stale"]


@pytest.mark.requirement("agents.grounding")
def test_leaving_out_the_only_filter_leaves_out_the_list():
    assert without(search(("stage", "EQ", "s1")).input, [("filters", 0)]) == {}


@pytest.mark.requirement("agents.mentions")
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Update all Acme Corp deals", ("Acme Corp",)),
        ("Move Corp of Acme's deals", ("Corp of Acme",)),
        ("Acme Corp deals. Now Priya Novák's", ("Corp", "Priya Novák")),
        ("Please do it on Monday", ()),
        ("i mean it", ()),
    ],
)
def test_names_are_capitalised_words_inside_a_sentence(text: str, names: tuple[str, ...]):
    assert read_mentions(text).names == names


@pytest.mark.requirement("agents.mentions")
@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("over 1,200.50", {"1200.50"}),
        ("over 5.000", {"5", "5000"}),
        ("1.5M or 2 million or 3k", {"1500000", "2000000", "1000000", "3000"}),
        ("on 2026-01-02 at 7%", {"7", "2026"}),
        ("two dozen", {"2", "12"}),
        ("v1.2.3.4 or 12ab", set[str]()),
    ],
)
def test_numbers_are_read_in_all_that_they_may_mean(text: str, numbers: set[str]):
    assert read_mentions(text).numbers == {Decimal(number) for number in numbers}


@pytest.mark.requirement("agents.mentions")
@pytest.mark.parametrize(
    ("text", "day", "meant"),
    [
        ("in April 2026", date(2026, 4, 30), True),
        ("in April 2026", date(2026, 5, 3), False),
        ("on April 5th", date(2030, 4, 5), True),
        ("on 29 February", date(2027, 2, 28), True),
        ("on the 3rd of May 2026", date(2026, 5, 3), True),
        ("on 1/2/2026", date(2026, 2, 1), True),
        ("in 2025", date(2025, 7, 1), True),
        ("in Q4", date(2024, 12, 31), True),
        ("on 2026-02-31", date(2026, 7, 1), False),
        ("on 45 May 2026 or 31.31.2026", date(2024, 7, 1), False),
        ("yesterday", date(1999, 1, 1), True),
        ("whenever", date(1999, 1, 1), False),
    ],
)
def test_days_are_those_of_the_periods_that_a_task_names(text: str, day: date, *, meant: bool):
    assert read_mentions(text).has_day(day) is meant


@pytest.mark.requirement("agents.mentions")
def test_case_accents_and_possessives_make_no_difference():
    assert folded("Priya NOVÁK\u2019s O'Brien") == ("priya", "novak", "obrien")
    assert read_mentions("deals of Priya Novák").has("priya novak")


@pytest.mark.requirement("agents.labels")
def test_labels_become_values_by_property_and_in_pairs():
    written: JsonObject = {
        "filters": [{"property": "stage", "operator": "EQ", "value": "new LEAD"}],
        "stage": ["Won", "s3", "?"],
        "note": "Won",
    }

    assert translated(written, LISTS) == {
        "filters": [{"property": "stage", "operator": "EQ", "value": "s1"}],
        "stage": ["s2", "s3", "?"],
        "note": "Won",
    }


@pytest.mark.requirement("agents.labels")
def test_a_schema_takes_labels_that_are_unique_beside_the_values():
    schema: JsonSchema = {
        "properties": {"stage": {"enum": ["1", "2", "3"], "x-labels": {"1": "A", "2": "B", "3": "B"}}}
    }

    assert spoken(schema)["properties"]["stage"]["enum"] == ["1", "2", "3", "A"]


@pytest.mark.requirement("agents.signatures")
def test_a_signature_says_what_a_schema_says_in_one_line_and_repeats_no_definition():
    pair: JsonSchema = {
        "type": "object",
        "properties": {
            "one": {"$ref": "#/$defs/Filter"},
            "two": {"type": "array", "items": {"$ref": "#/$defs/Filter"}},
        },
        "required": ["one"],
        "$defs": {"Filter": FILTER},
    }

    assert signature(pair) == (
        "{one: Filter, two?: Filter[]}\n"
        "Filter = {property: name | company | stage | owner_id | amount | close_date, operator: EQ | GT | LT | LTE | "
        "BETWEEN, value?: string | number}"
    )
    assert len(signature(SEARCH)) < 0.6 * len(str(SEARCH))


@pytest.mark.requirement("agents.signatures")
@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"enum": ["a b", 1, None]}, '"a b" | 1 | null'),
        ({"const": "x"}, "x"),
        ({"enum": ["s1", "s2", "s3"], "x-labels": {"s1": "Won", "s2": "B", "s3": "B"}}, '"Won" | s2 ("B") | s3 ("B")'),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string | null"),
        ({"type": "array", "items": {"type": ["string", "null"]}}, "(string | null)[]"),
        ({"type": "string", "format": "date"}, "date"),
        ({"type": "object"}, "object"),
        ({"$ref": "#/$defs/gone"}, "any"),
        (True, "any"),
        ({"type": "integer", "default": 3, "description": "So many."}, "integer /* So many. Default 3. */"),
        (
            {"allOf": [{"properties": {"a": {"type": "string"}}}], "required": ["a"]},
            "{a: string}",
        ),
        ({"allOf": [{"type": "string"}, {"enum": ["x"]}]}, "string & x"),
    ],
)
def test_each_kind_of_schema_has_a_type(schema: Any, written: str):
    assert signature({"properties": {"it": schema}}) == f"{{it?: {written}}}"


@pytest.mark.requirement("agents.signatures")
def test_a_brief_text_is_whole_sentences():
    assert brief("One. Two  is\nlonger. Three.", 20) == "One. Two is longer."
    assert brief("A first sentence of any length.", 5) == "A first sentence of any length."


FOUND: JsonSchema = {
    "type": "object",
    "properties": {
        "results": {
            "type": "array",
            "items": {"properties": {"id": {}, "lines": {"type": "array", "items": {"properties": {"sku": {}}}}}},
        }
    },
}


@pytest.mark.requirement("agents.plan_example")
def test_an_example_links_a_step_to_the_list_whose_items_have_its_fields():
    steps = [("find", SEARCH, FOUND), ("move", UPDATE, None)]

    assert plan_example(steps) == (
        '{"reasoning":…,"find":{"input":{"filters":[{"property":…,"operator":…,"value":…},…]}},'
        '"move":{"for_each":"${find.results}","input":{"inputs":[{"id":"${item.id}","properties":{…:…}}]}}}'
    )
    assert lists_before(steps[:1]) == ["${find.results}", "${find.results[*].lines}"]


@pytest.mark.requirement("agents.plan_example")
def test_an_example_links_nothing_where_nothing_fits():
    note: JsonSchema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

    assert plan_example([("find", SEARCH, FOUND), ("note", note, None)]).endswith('"note":{"input":{"text":…}}}')
    assert lists_before([("find", SEARCH, FOUND), ("note", note, None)]) is None
