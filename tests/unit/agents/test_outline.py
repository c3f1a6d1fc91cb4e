"""Outlines: what a small model writes, and the plan that follows from it in systems of several shapes."""

import asyncio
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, cast

import pytest

from tests.corpus.corpus import SystemName, load
from tests.corpus.plans import right_plan
from tests.corpus.systems import system_of
from toolcrib.agents.evidence import Leaf, Lists, Step, leaves_of
from toolcrib.agents.planner.outline import NONE_OF_THESE, InputPath, Outline, outline_of
from toolcrib.agents.planner.outline_prompts import examples_of
from toolcrib.contracts import JsonObject, JsonSchema
from toolcrib.core.providers import ReferenceList
from toolcrib.core.providers.reference_lists import ReferenceItem
from toolcrib.core.registry import compile_schema

pytestmark = pytest.mark.requirement("agents.profiles")

FOUND: JsonSchema = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "client_name": {"type": "string"},
                    "total": {"type": "number"},
                    "due": {"type": "string", "format": "date"},
                },
            },
        }
    },
}
SEARCH: JsonSchema = {
    "type": "object",
    "properties": {
        "client_id": {"type": "string"},
        "client_name": {"type": "string"},
        "open": {"type": "boolean"},
        "state": {"type": "string", "enum": ["new", "paid"]},
        "total": {"type": "number"},
        "limit": {"type": "integer", "default": 10},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
COMPARED: JsonSchema = {"type": "object", "properties": {"equals": {"type": "string"}, "not": {"type": "string"}}}
WITH_COMPARISONS: JsonSchema = {
    "type": "object",
    "properties": {"where": {"type": "object", "properties": {"state": COMPARED}}},
}
UPDATE: JsonSchema = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "state": {"type": "string", "enum": ["new", "paid"]},
        "due": {"type": "string", "format": "date"},
    },
    "required": ["id"],
}


def outlined(*steps: tuple[str, JsonSchema, JsonSchema | None], lists: Lists | None = None) -> Outline:
    found = outline_of(steps, [False, *([True] * (len(steps) - 1))], lists or {})
    assert found is not None
    return found


@cache
def lists_of(name: SystemName) -> Mapping[str, Any]:
    return {field: values for values in asyncio.run(system_of(name).lists()) for field in values.applies_to}


def shape_of(name: SystemName, step: str) -> tuple[str, JsonSchema, JsonSchema | None]:
    definition = {tool.definition.name: tool.definition for tool in system_of(name).tools}[step]
    return step, definition.input_schema, definition.output_schema


def written(leaf: Leaf, places: Iterator[InputPath], use: str) -> JsonObject:
    place = next(one for one in places if one.name == leaf.name)
    value = next((label for label, own in place.values.items() if own == leaf.value), leaf.value)
    comparison = next((word for word, own in place.comparisons.items() if own == leaf.comparison), None)
    compared = {"comparison": comparison} if comparison and use == "condition" else {}
    return {"words": str(value)[:80], "field": leaf.name, **compared, "value": value}


@pytest.mark.parametrize("system", ["crm", "calendar", "tickets"])
def test_the_right_plan_of_a_task_follows_from_its_outline(system: SystemName) -> None:
    """Conditions in a list, in objects of their own name, or as parameters: the outline is the same."""
    count = 0
    for task in load(system):
        search, write = system_of(system).steps(task.action)
        plan = right_plan(task)
        steps = [shape_of(system, search), shape_of(system, write)]
        outline = outline_of(steps, [False, True], lists_of(system))
        if outline is None or task.unclear or task.action != "update":
            continue
        said: dict[str, list[JsonObject]] = {"condition": [], "change": []}
        for number, (step, schema, _) in enumerate(steps):
            meant = Step(step, plan[step]["input"], schema, writes=number > 0)
            places = outline.changes if number else outline.conditions
            use = "change" if number else "condition"
            said[use] += [
                written(leaf, iter(places), use)
                for leaf in leaves_of(meant, lists_of(system))
                if leaf.name in {place.name for place in places}
                and not str(leaf.value).startswith("${")
                and not (leaf.in_pair and leaf.value in leaf.choices and leaf.listed is None)
            ]
        answer: JsonObject = {"wants": "change", "conditions": said["condition"], "changes": said["change"]}
        assert not compile_schema(outline.schema).problems(answer), task.id
        made = outline.plan(answer)
        for step, schema, _ in steps:
            if step == search:
                assert not compile_schema(schema).problems(made[step]["input"]), task.id
        assert _own_values(made, search, steps, system) == _own_values(plan, search, steps, system), task.id
        assert _own_values(made, write, steps, system) == _own_values(plan, write, steps, system), task.id
        count += 1
    assert count > 20


def _own_values(
    plan: JsonObject, name: str, steps: list[tuple[str, JsonSchema, JsonSchema | None]], system: SystemName
) -> set[tuple[str, str, str]]:
    """The values of a step with their fields and comparisons, labels left out."""
    lists = lists_of(system)
    schema = next(item for step, item, _ in steps if step == name)
    meant = Step(name, plan[name]["input"], schema, writes=name != steps[0][0])

    def own(leaf: Leaf) -> str:
        listed = lists.get(leaf.name)
        return next(
            (str(item.value) for item in (listed.items if listed else ()) if item.label == leaf.value), str(leaf.value)
        )

    return {
        (leaf.name, leaf.comparison, own(leaf))
        for leaf in leaves_of(meant, lists)
        if leaf.listed is not None or leaf.value not in leaf.choices or not leaf.in_pair
    }


def test_orders_are_found_by_an_expression_so_there_is_no_outline() -> None:
    search, write = system_of("orders").steps("update")
    steps = [shape_of("orders", search), shape_of("orders", write)]
    assert outline_of(steps, [False, True], lists_of("orders")) is None


def test_fields_that_can_be_said() -> None:
    outline = outlined(("find", SEARCH, FOUND), ("update", UPDATE, None))
    assert [place.name for place in outline.conditions] == ["client_name", "open", "state", "total"]
    assert [place.name for place in outline.changes] == ["state", "due"]
    assert outline.fields() == (
        "Fields of conditions: client_name (text); open (boolean); state (one of: new, paid); total (number).\n"
        "Fields of changes: state (one of: new, paid); due (day, YYYY-MM-DD)."
    )


def test_the_plan_of_an_outline() -> None:
    outline = outlined(("find", SEARCH, FOUND), ("update", UPDATE, None))
    plan = outline.plan(
        {
            "wants": "change",
            "conditions": [
                {"words": "Ann's", "field": "client_name", "value": "Ann"},
                {"words": "over 2000", "field": "total", "value": 2000.0},
                {"words": "paid", "field": "state", "value": "paid"},
            ],
            "changes": [{"words": "paid", "field": "state", "value": "paid"}],
        }
    )
    assert plan == {
        "reading": [
            {"words": "Ann's", "use": "condition", "value": "Ann"},
            {"words": "over 2000", "use": "condition", "value": 2000},
            {"words": "paid", "use": "change", "value": "paid"},
        ],
        "reasoning": "",
        "question": None,
        "find": {"input": {"client_name": "Ann", "total": 2000}},
        "update": {"for_each": "${find.items}", "input": {"id": "${item.id}", "state": "paid"}},
    }


def test_a_task_that_only_asks_skips_what_writes() -> None:
    outline = outlined(("find", SEARCH, FOUND), ("update", UPDATE, None))
    plan = outline.plan({"wants": "answer", "conditions": []})
    assert plan["find"] == {"input": {}}
    assert plan["update"] == {"skip": True}


def test_a_value_that_is_none_of_the_valid_ones_is_asked_about() -> None:
    outline = outlined(("find", SEARCH, FOUND), ("update", UPDATE, None))
    entry = {"words": "frozen", "field": "state", "value": NONE_OF_THESE}
    plan = outline.plan({"wants": "change", "conditions": [], "changes": [entry]})
    assert plan["question"]["text"] == 'Which state does "frozen" mean?'
    assert [choice["label"] for choice in plan["question"]["choices"]] == ["new", "paid"]
    assert plan["find"] == {"skip": True}


def test_what_cannot_be_said_so_is_a_question() -> None:
    outline = outlined(("find", SEARCH, FOUND), ("update", UPDATE, None))
    plan = outline.plan({"wants": "other", "question": "What is to be printed?"})
    assert plan["question"] == "What is to be printed?"
    assert plan["find"] == plan["update"] == {"skip": True}


NOTHING: JsonSchema = {"type": "object", "properties": {}}
ONLY_ID: JsonSchema = {"type": "object", "properties": {"id": {"type": "string"}}}
WITHOUT: list[tuple[JsonSchema, JsonSchema]] = [
    (NOTHING, UPDATE),
    (SEARCH, ONLY_ID),
    (SEARCH, {**UPDATE, "required": ["id", "lines"]}),
]


@pytest.mark.parametrize(
    ("search", "write"),
    WITHOUT,
    ids=["nothing to select by", "nothing to set", "something required that no entry can say"],
)
def test_steps_that_have_no_outline(search: JsonSchema, write: JsonSchema) -> None:
    assert outline_of([("find", search, FOUND), ("write", write, None)], [False, True], {}) is None


def test_two_steps_that_read_have_no_outline() -> None:
    assert outline_of([("one", SEARCH, FOUND), ("two", SEARCH, FOUND)], [False, False], {}) is None


def test_a_step_that_only_reads_has_an_outline() -> None:
    outline = outlined(("find", SEARCH, FOUND))
    assert not outline.changes
    assert outline.plan({"wants": "answer", "conditions": []})["find"] == {"input": {}}


def test_examples_are_outlines_of_their_tasks() -> None:
    outline = outlined(("find", SEARCH, FOUND), ("update", UPDATE, None))
    tasks = dict(examples_of(outline))
    assert next(iter(tasks)) == "Everything of Alder Works with state paid: set state to new"
    for answer in tasks.values():
        assert not compile_schema(outline.schema).problems(answer)
        outline.plan(answer)


def test_examples_of_a_tool_that_makes_something() -> None:
    create: JsonSchema = {
        "type": "object",
        "properties": {"client_id": {"type": "string"}, "title": {"type": "string"}, "total": {"type": "number"}},
        "required": ["client_id", "title"],
    }
    outline = outlined(("find", SEARCH, FOUND), ("create", create, None))
    (task, answer), (other, _) = examples_of(outline)
    assert other == "New, with title Spring offer, total 2000 for Alder Works"
    assert task == "Please add one for Alder Works: title Spring offer, total 2000"
    assert outline.plan(answer)["create"]["input"] == {
        "client_id": "${item.id}",
        "title": "Spring offer",
        "total": 2000,
    }


def test_comparisons_that_nobody_knows_are_shown_as_they_are() -> None:
    condition: JsonSchema = {
        "type": "object",
        "properties": {
            "field": {"enum": ["total", "client_name"]},
            "how": {"enum": ["near", "far"]},
            "value": {"type": ["string", "number"]},
        },
    }
    search: JsonSchema = {"type": "object", "properties": {"where": {"type": "array", "items": condition}}}
    outline = outlined(("find", search, FOUND), ("update", UPDATE, None))
    assert [list(place.comparisons) for place in outline.conditions] == [["near", "far"], ["near", "far"]]
    entry = {"words": "near 5", "field": "total", "comparison": "near", "value": 5}
    plan = outline.plan({"wants": "answer", "conditions": [entry]})
    assert plan["find"]["input"] == {"where": [{"field": "total", "how": "near", "value": 5}]}


def test_a_long_list_of_values_is_not_shown() -> None:
    names = [f"name {number}" for number in range(101)]
    schema = cast(
        "JsonObject", {"type": "object", "properties": {"client_name": {"enum": names}, "total": {"type": "number"}}}
    )
    outline = outlined(("find", schema, FOUND), ("update", UPDATE, None))
    assert outline.conditions[0].value == {"type": "string", "maxLength": 80}
    assert "name 7" not in outline.fields()


def test_a_condition_of_words_that_say_nothing_and_have_no_value_is_left_out() -> None:
    outline = outlined(("find", SEARCH, FOUND), ("update", UPDATE, None))
    entries = [
        {"words": "orders", "field": "state", "value": NONE_OF_THESE},
        {"words": "orders", "field": "client_name", "value": NONE_OF_THESE},
        {"words": "the New ones", "field": "state", "value": NONE_OF_THESE},
    ]
    plan = outline.plan({"wants": "answer", "conditions": entries}, {"order"})
    assert plan["question"] is None
    assert plan["find"] == {"input": {"state": "new"}}


def test_of_a_field_that_is_set_twice_the_first_counts() -> None:
    outline = outlined(("find", SEARCH, FOUND), ("update", UPDATE, None))
    changes = [{"words": one, "field": "state", "value": one} for one in ("paid", "new")]
    plan = outline.plan({"wants": "change", "conditions": [], "changes": changes})
    assert plan["update"]["input"] == {"id": "${item.id}", "state": "paid"}


def test_a_value_that_its_words_do_not_name_gives_way_to_the_one_that_they_name() -> None:
    """Also one of another field, if no other value is named."""
    search = {**SEARCH, "properties": {**SEARCH["properties"], "kind": {"type": "string", "enum": ["rent", "sale"]}}}
    outline = outlined(("find", search, FOUND), ("update", UPDATE, None))
    entries = [{"words": "the paid ones", "field": "kind", "value": "rent"}]
    changes = [{"words": "new", "field": "state", "value": NONE_OF_THESE}]
    plan = outline.plan({"wants": "change", "conditions": entries, "changes": changes})
    assert plan["find"]["input"] == {"state": "paid"}
    assert plan["update"]["input"]["state"] == "new"


def test_two_values_of_a_field_and_a_label_that_values_share_are_one_condition() -> None:
    condition: JsonSchema = {
        "type": "object",
        "properties": {
            "field": {"enum": ["stage"]},
            "how": {"enum": ["EQ", "IN"]},
            "value": {"type": "string"},
            "values": {"type": "array", "items": {"type": "string"}},
        },
    }
    search: JsonSchema = {"type": "object", "properties": {"where": {"type": "array", "items": condition}}}
    pairs = (("s1", "Won"), ("r1", "Won"), ("s2", "Open"))
    items = tuple(ReferenceItem(value=value, label=label) for value, label in pairs)
    stages = ReferenceList("stages", items, datetime(2026, 3, 1, tzinfo=UTC), None, ("stage",))
    outline = outlined(("find", search, FOUND), ("update", UPDATE, None), lists={"stage": stages})

    def found(*labels: str) -> Any:
        entries = [{"words": one, "field": "stage", "comparison": "is", "value": one} for one in labels]
        return outline.plan({"wants": "answer", "conditions": entries})["find"]["input"]["where"]

    assert found("Open") == [{"field": "stage", "how": "EQ", "value": "s2"}]
    assert found("Won") == [{"field": "stage", "how": "IN", "values": ["s1", "r1"]}]
    assert found("Open", "Won") == [{"field": "stage", "how": "IN", "values": ["s2", "s1", "r1"]}]


def test_a_change_that_says_nothing_is_no_question_that_was_answered() -> None:
    outline = outlined(("find", SEARCH, FOUND), ("update", UPDATE, None))
    junk = {"words": NONE_OF_THESE, "field": "state", "value": NONE_OF_THESE}
    plan = outline.plan({"wants": "change", "conditions": [], "changes": [junk]})
    assert plan["question"] == "What are the items to get?"
    assert plan["find"] == plan["update"] == {"skip": True}


def test_what_is_excluded_is_not_what_is_set() -> None:
    outline = outlined(("find", WITH_COMPARISONS, FOUND), ("update", UPDATE, None))
    conditions = [{"words": "all but paid", "field": "state", "comparison": "is not", "value": "paid"}]
    changes = [
        {"words": "paid", "field": "state", "value": NONE_OF_THESE},
        {"words": "new", "field": "state", "value": "new"},
    ]
    plan = outline.plan({"wants": "change", "conditions": conditions, "changes": changes})
    assert plan["find"]["input"] == {"where": {"state": {"not": "paid"}}}
    assert plan["update"]["input"]["state"] == "new"
    same = [{"words": "paid", "field": "state", "value": "paid"}]
    kept = outline.plan({"wants": "change", "conditions": conditions, "changes": same})
    assert kept["find"]["input"] == {"where": {"state": {"not": "paid"}}}
