"""More or less, before or after: what a task says of a value, and what a condition does with it."""

import pytest

from tests.unit.agents.test_grounding import GLOBEX, search, task, update
from toolcrib.agents.bounds import Bound, written_bound
from toolcrib.agents.grounding import doubts
from toolcrib.agents.leaves import Step
from toolcrib.agents.mentions import read_mentions
from toolcrib.contracts import JsonObject, JsonSchema

pytestmark = pytest.mark.requirement("agents.bounds")

ABOVE, AT_LEAST = Bound("above", inclusive=False), Bound("above", inclusive=True)
BELOW, AT_MOST = Bound("below", inclusive=False), Bound("below", inclusive=True)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("deals over 50k", ABOVE),
        ("deals worth more than $50,000", ABOVE),
        ("deals with at least 20,000", AT_LEAST),
        ("deals of no less than 20,000", AT_LEAST),
        ("deals of 20,000 or more", AT_LEAST),
        ("deals of 20,000 dollars and above", AT_LEAST),
        ("deals under 5k", BELOW),
        ("deals with an amount below 5000", BELOW),
        ("deals of not more than 5000", AT_MOST),
        ("deals of 5000 or less", AT_MOST),
        ("deals that close before 2026-03-01", BELOW),
        ("deals that close after the 30 June 2026", ABOVE),
    ],
)
def test_a_task_says_on_which_side_of_a_value_it_means(text: str, bound: Bound):
    assert [limit.bound for limit in read_mentions(text).limits] == [bound]


@pytest.mark.parametrize("text", ["deals of exactly 50000", "set the amount to 50000", "over all 3 pipelines"])
def test_a_value_without_a_comparing_word_is_no_bound(text: str):
    assert read_mentions(text).limits == ()


@pytest.mark.parametrize(
    ("around", "name", "bound"),
    [
        ({"operator": "GT", "value": 5}, "value", ABOVE),
        ({"operator": "GREATER_THAN_OR_EQUAL_TO", "value": 5}, "value", AT_LEAST),
        ({"operator": "lessThan", "value": 5}, "value", BELOW),
        ({"op": "<=", "value": 5}, "value", AT_MOST),
        ({"operator": "EQ", "value": 5}, "value", Bound("equal", inclusive=True)),
        ({"operator": "IS_AFTER", "value": 5}, "value", ABOVE),
        ({"operator": "BETWEEN", "value": 5}, "value", None),
        ({"operator": "than or", "value": 5}, "value", None),
        ({"min_amount": 5}, "min_amount", AT_LEAST),
        ({"createdBefore": "2026-01-01"}, "createdBefore", BELOW),
        ({"amount": 5}, "amount", None),
        ({"min_or_max": 5}, "min_or_max", None),
    ],
)
def test_a_condition_compares_as_its_operator_or_its_name_says(around: JsonObject, name: str, bound: Bound | None):
    assert written_bound(around, around[name], name) == bound


@pytest.mark.parametrize(
    ("text", "operator", "value", "said"),
    [
        ("Move the Globex deals over 50k to Won", "LT", 50000, "amount above 50000, not below it"),
        ("Move the Globex deals over 50k to Won", "EQ", 50000, "amount above 50000, not equal it"),
        ("Move the Globex deals of at least 50k to Won", "GT", 50000, "amount at or above 50000, not above it"),
    ],
)
def test_a_comparison_to_the_wrong_side_is_in_doubt(text: str, operator: str, value: int, said: str):
    found = doubts([search(GLOBEX, ("amount", operator, value)), update(stage="s2")], task(text))

    assert [str(doubt) for doubt in found] == [f"find: the task means {said}"]


def test_setting_a_field_to_what_the_task_compares_with_is_in_doubt():
    found = doubts([search(GLOBEX), update(amount=50000)], task("Move the Globex deals over 50k to Won"))

    assert "move sets amount to 50000, but the task means what is above 50000" in map(str, found)


@pytest.mark.parametrize(
    ("operator", "value"),
    [("LT", "2026-03-01"), ("LTE", "2026-02-28"), ("LTE", "2026-03-01"), ("BETWEEN", "2026-03-01")],
)
def test_a_day_may_be_compared_with_the_one_beside_it(operator: str, value: str):
    steps = [search(GLOBEX, ("close_date", operator, value)), update(stage="s2")]

    assert doubts(steps, task("Move the Globex deals that close before 2026-03-01 to Won")) == []


WRITE: JsonSchema = {"type": "object", "properties": {"id": {"type": "string"}, "stage": {"enum": ["s2"]}}}


@pytest.mark.parametrize(
    ("text", "target", "count"),
    [
        ("Move all deals to Won", "${find.results[0].id}", 1),
        ("Move every deal to Won", "${find.results[*].id}", 0),
        ("Move the first deal to Won", "${find.results[0].id}", 0),
    ],
)
def test_one_item_where_the_task_says_all_is_in_doubt(text: str, target: str, count: int):
    step = Step("move", {"id": target, "stage": "s2"}, WRITE, writes=True)

    found = doubts([search(), step], task(text))

    assert [doubt.step for doubt in found] == ["move"] * count


def test_a_loop_over_one_item_is_in_doubt_too():
    step = Step("move", {"id": "${item.id}", "stage": "s2"}, WRITE, writes=True, for_each="${find.groups[0].items}")

    assert "set for_each to the list" in str(doubts([search(), step], task("Move all deals to Won"))[0])
