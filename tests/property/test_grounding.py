"""Properties of grounding: a plan made of the task's own words is never doubted, and a value of nobody's always is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.agents.test_fields import held
from tests.unit.agents.test_grounding import search, update
from toolcrib.agents.grounding import doubts
from toolcrib.agents.leaves import Step

COMPARED = {"over": "GT", "under": "LT", "at most": "LTE"}

names = st.lists(
    st.text(alphabet="bdfgklmnprst", min_size=4, max_size=9).map(str.capitalize), min_size=1, max_size=3, unique=True
).map(" ".join)
stages = st.sampled_from([("Won", "s2"), ("Lost", "s3")])
amounts = st.integers(min_value=1000, max_value=10**9)
bounds = st.tuples(st.sampled_from(sorted(COMPARED)), amounts)
days = st.dates().map(lambda day: day.replace(year=2000 + day.year % 100)).map(str)


def told(name: str, bound: tuple[str, int], day: str, stage: tuple[str, str]) -> tuple[str, list[Step]]:
    """A task, and the plan that says the same."""
    words, amount = bound
    text = f"Move the deals of {name} {words} {amount:,} that close before {day} to {stage[0]}"
    conditions = [("company", "EQ", name), ("amount", COMPARED[words], amount), ("close_date", "LT", day)]
    return text, [search(*conditions), update(stage=stage[1])]


@pytest.mark.requirement("agents.grounding")
@given(names, bounds, days, stages)
def test_a_plan_of_the_tasks_own_words_is_never_in_doubt(
    name: str, bound: tuple[str, int], day: str, stage: tuple[str, str]
):
    text, steps = told(name, bound, day, stage)

    assert doubts(steps, held(text)) == []


@pytest.mark.requirement("agents.grounding")
@given(names, bounds, days, stages, st.integers(min_value=0, max_value=2))
def test_a_condition_that_is_missing_is_always_found(
    name: str, bound: tuple[str, int], day: str, stage: tuple[str, str], place: int
):
    text, (find, move) = told(name, bound, day, stage)
    kept = [item for number, item in enumerate(find.input["filters"]) if number != place]

    assert doubts([Step("find", {"filters": kept}, find.schema, writes=False), move], held(text))


@pytest.mark.requirement("agents.grounding")
@given(names, bounds, days, amounts, st.sampled_from(["Initech", "zqx", "Vandelay"]))
def test_a_value_that_stands_nowhere_is_always_found(
    name: str, bound: tuple[str, int], day: str, amount: int, company: str
):
    text, (find, move) = told(name, bound, day, ("Won", "s2"))
    strange = [("company", "EQ", company), *([("amount", "GT", amount)] if amount != bound[1] else [])]
    filters = [*find.input["filters"], *search(*strange).input["filters"]]

    found = doubts([Step("find", {"filters": filters}, find.schema, writes=False), move], held(text))

    assert [doubt.place for doubt in found] == [("filters", 3 + number) for number in range(len(strange))]


@pytest.mark.requirement("agents.bounds")
@given(names, bounds, days, stages, st.sampled_from(["GT", "LT", "LTE", "EQ"]))
def test_a_comparison_that_the_task_does_not_make_is_always_found(
    name: str, bound: tuple[str, int], day: str, stage: tuple[str, str], operator: str
):
    text, (find, move) = told(name, bound, day, stage)
    find.input["filters"][1]["operator"] = operator

    assert bool(doubts([find, move], held(text))) == (operator != COMPARED[bound[0]])
