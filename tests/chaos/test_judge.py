"""The judge of the chaos tests finds each violation that is planted, and none in a world that nothing happened to."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import pytest_asyncio

from tests.chaos.world.book import Line
from tests.chaos.world.crew import SPREAD, SPREAD_INPUT, crib_at
from tests.chaos.world.evidence import gather
from tests.chaos.world.jobs import listen
from tests.chaos.world.judge import Evidence, Rule, Told, violations
from tests.chaos.world.place import on_sqlite
from tests.chaos.world.public import Public
from toolcrib.contracts import ApprovalDecided, CallFinished, CallStarted, RunEvent, RunFinished, ToolEnvelope

pytestmark = [pytest.mark.chaos, pytest.mark.requirement("chaos_engines.judge")]

PLANS = (1, 12, 15)
"""Tasks that together make calls of every kind."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def calm(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """A world that nothing happened to."""
    folder: Path = tmp_path_factory.mktemp("calm")
    place = on_sqlite(folder, lease_s=30)
    async with crib_at(place) as crib:
        public = Public(crib, Random(1))
        await crib.workflows.publish(SPREAD)
        begun = [await crib.submit("clerk", {"task": str(number)}) for number in PLANS]
        begun.append((await crib.instances.start("spread", SPREAD_INPUT, wait=False)).run_id)
        async with asyncio.timeout(60):
            while waiting := await public.open_runs():
                await crib.recover()
                for run in waiting:
                    await public.speak(run, eager=True)
        await listen(place, begun)
        return await gather(crib, place, submitted=begun, told=public.told, followed=begun)


async def test_nothing_is_wrong_with_a_world_that_nothing_happened_to(calm: Evidence):
    assert violations(calm) == []
    assert {line.tool for line in calm.lines} == {"look", "put", "charge", "post", "pay", "sign"}
    assert {told.accepted for told in calm.told} == {True, False}


Plant = Callable[[Evidence], Evidence]


def _events(found: Evidence, run_id: str, events: Sequence[RunEvent]) -> Evidence:
    return replace(found, logs={**found.logs, run_id: events})


def _first(found: Evidence) -> tuple[str, Sequence[RunEvent]]:
    """The log of a clerk that is the whole of its family."""
    run_id = next(iter(found.submitted))
    return run_id, found.logs[run_id]


def _edit(found: Evidence, tool: str, change: Callable[[ToolEnvelope], ToolEnvelope]) -> Evidence:
    """The same with another envelope of the first call of a tool."""
    run_id, events = _first(found)
    place = next(
        n for n, one in enumerate(events) if isinstance(one.event, CallFinished) and one.event.envelope.name == tool
    )
    finished = events[place].event
    assert isinstance(finished, CallFinished)
    other = events[place].model_copy(
        update={"event": finished.model_copy(update={"envelope": change(finished.envelope)})}
    )
    return _events(found, run_id, [*events[:place], other, *events[place + 1 :]])


def _line(found: Evidence, tool: str, mark: str) -> Line:
    return next(line for line in found.lines if (line.tool, line.mark) == (tool, mark))


def _later(found: Evidence, tool: str, *, pid: int = 1, freeze: tuple[float, float] | None = None) -> Evidence:
    """The same with one more effect of a call, a second after all else; of a process that was frozen, it may be."""
    end = max(line.at for line in found.lines)
    more = [_line(found, tool, "effect")._replace(at=end + 10**9, pid=pid)]
    if freeze is not None:
        begun, ended = (end + int(seconds * 1e9) for seconds in freeze)
        more[:0] = [Line(begun, pid, "frozen"), Line(ended, pid, "thawed")]
    return replace(found, lines=[*found.lines, *more])


def _without_row(found: Evidence) -> Evidence:
    run_id, _ = _first(found)
    return replace(found, rows={key: row for key, row in found.rows.items() if key != run_id})


def _unfinished(found: Evidence) -> Evidence:
    run_id, events = _first(found)
    return _events(found, run_id, events[:-1])


def _with_gap(found: Evidence) -> Evidence:
    run_id, events = _first(found)
    return _events(found, run_id, [*events[:3], *events[4:]])


def _with_second_answer(found: Evidence) -> Evidence:
    run_id, events = _first(found)
    again = next(entry for entry in events if isinstance(entry.event, CallFinished))
    return _events(found, run_id, [*events[:-1], again, events[-1]])


def _with_old_epoch(found: Evidence) -> Evidence:
    run_id = next(run_id for run_id, events in found.logs.items() if any(e.event.type == "run_resumed" for e in events))
    events = found.logs[run_id]
    resumed = next(entry for entry in events if entry.event.type == "run_resumed")
    return _events(found, run_id, [*events[:-1], resumed, events[-1]])


def _without_intent(found: Evidence) -> Evidence:
    run_id, events = _first(found)
    intent = next(entry for entry in events if isinstance(entry.event, CallStarted) and entry.event.name == "pay")
    return _events(found, run_id, [entry for entry in events if entry is not intent])


def _under_another_key(found: Evidence) -> Evidence:
    run_id, events = _first(found)

    def other(entry: RunEvent) -> RunEvent:
        if not isinstance(entry.event, CallStarted):
            return entry
        return entry.model_copy(update={"event": entry.event.model_copy(update={"idempotency_key": "other"})})

    return _events(found, run_id, list(map(other, events)))


def _never_done(found: Evidence) -> Evidence:
    key = _line(found, "put", "effect").key
    return replace(found, lines=[line for line in found.lines if line.key != key])


def _of_nobody(found: Evidence) -> Evidence:
    return replace(found, lines=[*found.lines, Line(0, 1, "effect", "look", "nobody/t1.c1")])


def _with_other_answer(found: Evidence) -> Evidence:
    run_id, events = _first(found)
    end = events[-1].event
    assert isinstance(end, RunFinished)
    other = events[-1].model_copy(update={"event": end.model_copy(update={"output": {"summary": "done, but for 7"}})})
    return _events(found, run_id, [*events[:-1], other])


def _with_other_stream(found: Evidence, change: Callable[[list[str]], list[str]]) -> Evidence:
    run_id, _ = _first(found)
    return replace(found, streams={run_id: change(list(found.streams[run_id]))})


def _with_two_accepted(found: Evidence) -> Evidence:
    told = next(told for told in found.told if told.accepted)
    return replace(found, told=[*found.told, told])


def _with_other_decision(found: Evidence) -> Evidence:
    place = next(
        (run_id, entry.event.position)
        for run_id, events in found.logs.items()
        for entry in events
        if isinstance(entry.event, ApprovalDecided)
    )
    told = [one for one in found.told if (one.run_id, one.position) != place]
    return replace(found, told=[*told, Told(*place, said="something else", accepted=True)])


PLANTS: Sequence[tuple[Rule, str, Plant]] = (
    ("run lost", "no row", _without_row),
    ("run lost", "no end", _unfinished),
    ("run lost", "never there", lambda found: replace(found, submitted=[*found.submitted, "run_gone"])),
    ("log broken", "gap", _with_gap),
    ("log broken", "twice", _with_second_answer),
    ("two owners", "old epoch", _with_old_epoch),
    ("effect after its outcome", "put", lambda found: _later(found, "put")),
    ("effect after its outcome", "post", lambda found: _later(found, "post")),
    ("effect after its outcome", "woke long ago", lambda found: _later(found, "put", freeze=(-99, -60))),
    ("effect after its outcome", "froze later", lambda found: _later(found, "put", freeze=(0.5, 0.9))),
    ("unsafe effect twice", "post", lambda found: _later(found, "post")),
    ("unsafe effect twice", "pay", lambda found: _later(found, "pay")),
    ("unsafe effect twice", "frozen", lambda found: _later(found, "post", freeze=(-99, 0.9))),
    ("effect without an intent", "none", _without_intent),
    ("effect without an intent", "other key", _under_another_key),
    ("outcome that is not true", "never done", _never_done),
    ("outcome that is not true", "of nobody", _of_nobody),
    (
        "outcome that is not true",
        "denied",
        lambda f: _edit(f, "pay", lambda e: e.model_copy(update={"status": "denied"})),
    ),
    ("not as undisturbed", "other answer", _with_other_answer),
    ("not as undisturbed", "other call", lambda f: _edit(f, "put", lambda e: e.model_copy(update={"name": "look"}))),
    ("stream broken", "gap", lambda found: _with_other_stream(found, lambda got: got[:2] + got[3:])),
    ("stream broken", "twice", lambda found: _with_other_stream(found, lambda got: [*got[:2], *got[1:]])),
    ("stream broken", "end", lambda found: _with_other_stream(found, lambda got: got[:-1])),
    ("decision not as told", "two accepted", _with_two_accepted),
    ("decision not as told", "other", _with_other_decision),
    ("decision not as told", "nobody", lambda found: replace(found, told=())),
    ("engine disagrees", "open", lambda found: replace(found, open_in_engine=["run_1"])),
)


@pytest.mark.parametrize(
    ("rule", "plant"), [pytest.param(rule, plant, id=f"{rule}: {name}") for rule, name, plant in PLANTS]
)
async def test_what_is_wrong_is_found(calm: Evidence, rule: Rule, plant: Plant):
    assert rule in {found.rule for found in violations(plant(calm))}


async def test_a_process_that_was_thought_dead_may_finish_what_it_was_about_to_do(calm: Evidence):
    assert violations(_later(calm, "put", freeze=(-99, 0.9))) == []


def test_every_rule_is_planted_against():
    assert {rule for rule, _, _ in PLANTS} == set(Rule.__args__)
