"""The corpus is what it claims to be: its right plans do what is meant, and each mistake would do something else."""

import pytest

from tests.corpus.corpus import LANGUAGES, SYSTEM_NAMES, TODAY, SystemName, Task, find, load
from tests.corpus.effects import effect_of, right_effect
from tests.corpus.mistakes import MISTAKES
from tests.corpus.plans import right_plan, shortest_calculation, wrong_plans
from tests.corpus.records import matching, shortcomings
from tests.corpus.second_reader import SecondReader, second_reading
from tests.corpus.systems import SYSTEMS, System
from tests.corpus.systems.orders import read_filter
from toolcrib.agents.evidence import calculate_day
from toolcrib.agents.evidence.quantities import as_day
from toolcrib.contracts import JsonObject, ModelError
from toolcrib.llm import Request, user

pytestmark = pytest.mark.requirement("agents.evidence")

TASKS = [task for name in SYSTEM_NAMES for task in load(name)]
CLEAR = [task for task in TASKS if not task.unclear]


def _name(task: Task) -> str:
    return task.id


def test_there_are_sixty_tasks_for_each_system_in_nine_languages():
    assert [len(load(name)) for name in SYSTEM_NAMES] == [60] * 4
    assert {task.language for task in TASKS} == set(LANGUAGES)
    assert len({task.id for task in TASKS}) == len(TASKS)


@pytest.mark.parametrize("name", SYSTEM_NAMES)
def test_each_task_means_some_records_and_each_mistake_means_others(name: SystemName):
    system = SYSTEMS[name]()
    assert shortcomings(load(name), list(system.records.values()), most=system.most) == []


@pytest.mark.parametrize("task", CLEAR, ids=_name)
async def test_the_right_plan_does_what_the_task_means_and_no_wrong_one_does(task: Task):
    right = await right_effect(task)
    system = SYSTEMS[task.system]()
    meant = matching(task.where, list(system.records.values()))
    match task.action:
        case "update":
            system.change([record["id"] for record in meant], _own(system, task))
        case "delete" | "cancel":
            system.remove([record["id"] for record in meant])
        case "create":
            system.create(_own(system, task))
        case _:
            pass
    if task.action == "read":
        assert str(right).count("'id':") == len(meant)
    else:
        assert right == sorted(system.records.values(), key=lambda record: str(record["id"]))
    for kind, plan in wrong_plans(task).items():
        assert await effect_of(task, plan) != right, kind


def _own(system: System, task: Task) -> JsonObject:
    return {system.called(change.field): system.own(change.field, change.value) for change in task.changes}


def test_every_word_of_a_right_plans_reading_stands_in_the_task_from_left_to_right():
    for task in CLEAR:
        words = [entry["words"] for entry in right_plan(task)["reading"]]
        places = [task.text.index(piece) for piece in words if task.text.count(piece) == 1]
        assert places == sorted(places)


def test_each_kind_of_mistake_occurs_in_each_system():
    for name in SYSTEM_NAMES:
        assert {kind for task in load(name) for kind in wrong_plans(task)} == set(MISTAKES)


def test_the_shortest_calculation_of_a_day_gives_that_day():
    days = {part.value for task in TASKS for part in (*task.where, *task.changes) if as_day(part.value)}
    for day in filter(None, map(as_day, days)):
        text = shortest_calculation(day)
        assert not text or calculate_day(text, TODAY) == day


def test_a_filter_in_words_says_its_conditions():
    found = list(
        read_filter("status ne 'Own ''van''' and total ge 20 and ship_by lt 2026-03-01 and contains(note,'a')")
    )
    assert [(one.field, one.op, one.value) for one in found] == [
        ("status", "is_not", "Own 'van'"),
        ("total", "at_least", 20),
        ("ship_by", "less_than", "2026-03-01"),
        ("note", "contains", "a"),
    ]


_ASKED = """Task: …
This was read from it:
- condition: stage EQ Proposal sent ("sitting at proposal")

Answer each point.
v1: Does the task say that only items with stage 'Proposal sent' are meant?
v2: Does the task say that only items with pipeline 'Sales' are meant?
v3: Does the task say that owner_id is to be 'Beatriz Ito'?
w4: Nothing of it carries "everything". What do these words say?
w5: Nothing of it carries "with a close date in Q2". What do these words say?
w6: Nothing of it carries "at proposal". What do these words say?"""


def test_the_second_reader_answers_what_the_task_means():
    answer = SecondReader(find("crm-en-13")).answer(_ASKED)
    assert answer == {
        "v1": {"words": "sitting at proposal", "stated": "yes"},
        "v2": {"words": "", "stated": "no", "instead": None},
        "v3": {"words": "", "stated": "no", "instead": "Diego Ito"},
        "w4": {"says": "nothing", "meaning": None},
        "w5": {
            "says": "missing",
            "meaning": "close date on or after 2026-04-01; close date on or before 2026-06-30",
        },
        "w6": {"says": "already read", "meaning": None},
    }


def test_a_second_reader_is_wrong_as_often_as_it_is_told_to_be():
    readers = [(SecondReader(task), SecondReader(task, wrong_share=0.1)) for task in load("crm")]
    answers = [(right.answer(_ASKED), wrong.answer(_ASKED)) for right, wrong in readers]
    differing = sum(right[key] != wrong[key] for right, wrong in answers for key in right)
    assert 18 <= differing <= 54, "of 360"


def test_a_second_reader_may_be_absent():
    with pytest.raises(ModelError):
        second_reading(find("crm-en-13"), absent=True)(Request(model="second", messages=(user(_ASKED),)))
