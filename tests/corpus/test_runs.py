"""Every task of the corpus is really run: what its system's records are afterwards, and who was asked before.

`figures.json` says how many plans came to what; the tests hold the runs against it, and it against what is promised.
`make test` plays right plans of all tasks and wrong plans of half of them, `make soak` everything.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.corpus.corpus import LANGUAGES, SYSTEM_NAMES, SystemName, Task, load
from tests.corpus.figures import (
    HALVES,
    READERS,
    Line,
    Reader,
    differences,
    figures_of,
    half_of,
    play_right,
    play_wrong,
    recorded,
    total,
)
from tests.corpus.mistakes import MISTAKES
from tests.corpus.more_mistakes import MORE_MISTAKES
from tests.corpus.runs import OUTCOMES, open_stand

CLEAR: Final = sum(not task.unclear for name in SYSTEM_NAMES for task in load(name))
LOOKED_AT: Final = {
    "crm-ja-03",
    "orders-de-01",
    "orders-en-08",
    "orders-es-01",
    "orders-fr-01",
    "orders-tr-01",
}
"""Tasks with every value as the system has it, which give a reason, too: somebody must look whether it restricts."""
MARGIN: Final = 3
"""Runs by which a figure may differ from the recorded one where the second reader errs or is absent."""

OTHERS = [pytest.param(reader, id=reader.replace(" ", "_")) for reader in READERS[1:]]
EACH_HALF = [HALVES[0], pytest.param(HALVES[1], marks=pytest.mark.soak)]


def _is_written(label: str) -> bool:
    """Whether a kind of plan is one of the writers', for a task that writes and can be done."""
    return label in MISTAKES


def _shares(counts: Counter[str], *outcomes: str) -> float:
    return sum(counts[outcome] for outcome in outcomes) / counts.total()


def _figures_hold(lines: list[Line], *, margin: int = 0) -> None:
    assert list(differences(figures_of(lines), margin=margin)) == [], "python -m benchmarks.corpus --write"


# A planner that is right ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("agents.evidence", "agents.questions", "agents.previews")
@pytest.mark.parametrize("name", SYSTEM_NAMES)
async def test_a_right_plan_is_carried_out_exactly_and_its_model_asked_little(name: SystemName):
    async with open_stand(name) as stand:
        lines = [line async for line in play_right(stand, load(name))]

    _figures_hold(lines)
    assert [line.task.id for line in lines if line.task.unclear and line.outcome != "asked"] == []
    assert [line.task.id for line in lines if line.further.count("verification") > 1] == []
    assert [line.task.id for line in lines if "error_recovery" in line.further] == []
    verbatim = [line for line in lines if line.task.verbatim]
    assert {line.task.id for line in verbatim if "verification" in line.further} == _of(name, LOOKED_AT)
    assert {line.task.id for line in verbatim if "question" in line.further} == {
        line.task.id for line in verbatim if line.task.action in {"delete", "cancel"}
    }


def _of(name: SystemName, ids: set[str]) -> set[str]:
    return {one for one in ids if one.startswith(f"{name}-")}


@pytest.mark.requirement("agents.evidence", "agents.previews")
def test_nearly_all_right_plans_are_carried_out_exactly():
    counts = total("perfect", "truthful", lambda kind: "unclear" not in kind)
    assert counts.total() == CLEAR
    assert _shares(counts, "right", "right, warned") >= 0.98
    assert total("perfect", "truthful", lambda kind: "unclear" in kind).keys() == {"asked"}


@pytest.mark.slow
@pytest.mark.requirement("agents.evidence")
@pytest.mark.parametrize("reader", OTHERS)
@pytest.mark.parametrize("name", SYSTEM_NAMES)
async def test_a_right_plan_beside_a_reader_who_errs_comes_to_what_was_recorded(name: SystemName, reader: Reader):
    async with open_stand(name) as stand:
        lines = [line async for line in play_right(stand, load(name), reader)]

    _figures_hold(lines, margin=MARGIN)
    assert [line.task.id for line in lines if line.outcome in {"wrong", "misled"}] == []


# A planner that errs --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.requirement("agents.evidence", "agents.coverage", "agents.questions")
@pytest.mark.parametrize("half", EACH_HALF)
@pytest.mark.parametrize("name", SYSTEM_NAMES)
async def test_a_wrong_plan_comes_to_what_was_recorded(name: SystemName, half: int):
    async with open_stand(name) as stand:
        lines = [line async for line in play_wrong(stand, half_of(name, half))]

    _figures_hold(lines)
    unasked = [line for line in lines if line.outcome in {"wrong", "misled"} and line.task.action != "read"]
    assert [line.task.id for line in unasked if line.kind in {"lost", "invented_id"} or line.task.unclear] == []


@pytest.mark.requirement("agents.evidence", "agents.questions", "agents.previews")
def test_nearly_all_wrong_plans_are_corrected_asked_about_or_shown():
    counts = total("repeats", "truthful", _is_written)
    assert _shares(counts, "right", "asked", "previewed") >= 0.95
    assert _shares(counts, "wrong", "misled") <= 0.01


@pytest.mark.requirement("agents.evidence", "agents.coverage")
def test_a_planner_that_is_told_what_is_wrong_needs_no_person():
    counts = total("corrects", "truthful", _is_written)
    assert _shares(counts, "right") >= 0.90
    assert _shares(counts, "wrong", "misled") <= 0.01


@pytest.mark.requirement("agents.coverage")
@pytest.mark.parametrize(
    "kinds", [("lost",), ("invented_id",), ("other_value (unclear)",)], ids=["lost", "invented_id", "unclear"]
)
def test_no_plan_is_carried_out_unasked_that(kinds: tuple[str, ...]):
    for reader in ("truthful", "none"):
        for planner in ("repeats", "corrects"):
            counts = total(planner, reader, kinds.__contains__)
            assert counts.total()
            assert (planner, reader, counts["wrong"] + counts["misled"]) == (planner, reader, 0)


@pytest.mark.soak
@pytest.mark.requirement("agents.evidence")
@pytest.mark.parametrize("reader", OTHERS)
@pytest.mark.parametrize("name", SYSTEM_NAMES)
async def test_a_wrong_plan_beside_a_reader_who_errs_comes_to_what_was_recorded(name: SystemName, reader: Reader):
    async with open_stand(name) as stand:
        lines = [line async for line in play_wrong(stand, load(name), reader)]

    _figures_hold(lines, margin=MARGIN)


@pytest.mark.requirement("agents.evidence")
def test_the_figures_have_every_planner_and_kind():
    kinds = {kind.partition(" (")[0] for by_kind in recorded().values() for kind in by_kind}
    assert kinds == {"right", *MISTAKES, *MORE_MISTAKES}
    assert len(recorded()) == len(SYSTEM_NAMES) * len(HALVES) * 3 * len(READERS)
    outcomes = {outcome for by_kind in recorded().values() for counts in by_kind.values() for outcome in counts}
    assert outcomes <= set(OUTCOMES)


# On disk --------------------------------------------------------------------------------------------------------------


def _sample(name: SystemName) -> list[Task]:
    """One task for each language, one for each action, and some more."""
    tasks = load(name)
    firsts: list[Callable[[Task], object]] = [lambda task: task.language, lambda task: task.action]
    chosen = {next(task.id for task in tasks if key(task) == value) for key in firsts for value in map(key, tasks)}
    return [task for task in tasks if task.id in chosen]


@pytest.mark.slow
@pytest.mark.requirement("agents.evidence", "agents.previews")
@pytest.mark.parametrize("name", SYSTEM_NAMES)
async def test_runs_on_disk_end_as_those_in_memory(name: SystemName, tmp_path: Path):
    tasks = _sample(name)
    assert len(tasks) >= 10
    assert {task.language for task in tasks} == set(LANGUAGES)

    async with open_stand(name, f"sqlite:///{tmp_path}/crib.db") as stand:
        on_disk = [line async for line in play_right(stand, tasks)]
    async with open_stand(name) as stand:
        in_memory = [line async for line in play_right(stand, tasks)]

    assert on_disk == in_memory
    assert {line.outcome for line in on_disk} <= {"right", "right, warned", "asked"}
