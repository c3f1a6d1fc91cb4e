"""A corpus of runs on SQLite and PostgreSQL, on a busy machine: their replays make the same events.

A replay that differs only because a store was slow is a false alarm. Caches, retries, costs, limits and secrets of the
vault make parallel branches depend on each other; people decide; processes are killed; two others compete for cores.
"""

import asyncio
import multiprocessing
import os
import random
import signal
from collections.abc import Generator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.chaos.processes import Child
from toolcrib import Crib, ScriptedModel, SharingOptions, ToolContext, tool
from toolcrib.contracts import (
    ApprovalDecided,
    CallFinished,
    Event,
    Json,
    JsonObject,
    Limits,
    ModelStarted,
    RunEvent,
    SecretReference,
)
from toolcrib.crib import WorkflowHandle
from toolcrib.infrastructure.secrets import new_master_key
from toolcrib.llm import Message, Request, ScriptedAnswer, ToolCall

LIMITS = (200, 36, 24, 12)
"""Of tool calls: for all that the workflow calls, and for fewer."""
KEYS = os.environ.setdefault("CORPUS_MASTER_KEYS", new_master_key("corpus"))
"""Of this process and those that it starts."""


@tool(side_effects="writes", idempotent=True, cost_usd_per_call=Decimal("0.01"))
async def record(n: int) -> int:
    """Record a number; some cannot be recorded."""
    await asyncio.sleep(random.random() * 0.01)
    if n % 5 == 3:
        raise ConnectionError("the recorder is away")
    return n


@tool(side_effects="none", cache="ttl", cache_ttl_s=60)
async def look(n: int) -> int:
    """Look a number up."""
    await asyncio.sleep(random.random() * 0.01)
    return n // 2


@tool(side_effects="reads", secrets=(SecretReference(name="key", reference="${secret:KEY}"),))
async def sealed(n: int, context: ToolContext) -> int:
    """Look a number up with a secret of the vault."""
    await asyncio.sleep(random.random() * 0.005)
    return n + len(context.auth["key"])


@tool(side_effects="writes", requires_confirmation=True)
async def sign(n: int) -> int:
    """Sign, once a person agrees."""
    return n


def asks(request: Request) -> ScriptedAnswer:
    """All tools at once, then those that are quick, then the answer."""
    turn = sum(message.role == "assistant" for message in request.messages)
    turns = [("record", "look", "sealed", "sign", "look"), ("look", "sealed", "record")]
    if turn == len(turns):
        return "All done."
    calls = (ToolCall(f"{turn}.{place}", name, f'{{"n": {place}}}') for place, name in enumerate(turns[turn]))
    return Message("assistant", tuple(calls))


def crib_at(url: str) -> Crib:
    """A crib with all that the corpus needs."""
    crib = Crib(
        url,
        models={"scripted:clerk": ScriptedModel(asks, name="clerk")},
        environment={"TOOLCRIB_MASTER_KEYS": KEYS},
        sharing=SharingOptions(lease_s=1.0),
    )
    crib.add(record, look, sealed, sign)
    crib.agentic_tool(
        "clerk", mode="agentic", model="scripted:clerk", tools=["record", "look", "sealed", "sign"], grounding="off"
    )
    for calls in LIMITS:
        branches(crib, calls)
    return crib


def spin() -> None:
    while True:
        pass


@pytest.fixture
def load() -> Generator[None]:
    """Two processes that do nothing but compete."""
    context = multiprocessing.get_context("spawn")
    busy = [context.Process(target=spin, daemon=True) for _ in range(2)]
    for process in busy:
        process.start()
    yield
    for process in busy:
        process.kill()
        process.join()


def fan(name: str, called: str, number: str, **more: Json) -> JsonObject:
    """A step that calls a tool for each item, four at a time."""
    each: JsonObject = {"items": "${input.items}", "max_concurrency": 4, "on_item_error": "continue"}
    return {"name": name, "tool": called, "input": {"n": number}, "on_error": "continue", "for_each": each, **more}


def branches(crib: Crib, calls: int) -> WorkflowHandle:
    """Five branches side by side."""
    return crib.workflow(
        f"branches_{calls}",
        steps=[
            fan("records", "record", "${item}"),
            fan("cached", "look", "${item % 3}"),
            fan("looks", "look", "${item}"),
            fan("secret", "sealed", "${item % 2}"),
            fan("retried", "record", "${item}", retry={"count": 2, "base_s": 0.01}),
        ],
        input_schema={"type": "object", "properties": {"items": {"type": "array"}}},
        limits=Limits(max_tool_calls=calls, max_cost_usd=Decimal(10)),
    )


async def perish(url: str, run_id: str) -> Json:
    """Drive a run until the process is killed, or as far as it goes."""
    async with crib_at(url) as crib:
        await crib.resume(run_id)
    return None


GIVEN: Mapping[str, JsonObject] = {
    "clerk": {"task": "work"},
    **{f"branches_{calls}": {"items": list(range(8))} for calls in LIMITS},
}


class Corpus:
    """Runs in one store.

    Args:
        crib: Reads and makes them.
        url: Of the store.
        folder: For what processes leave.
    """

    def __init__(self, crib: Crib, url: str, folder: Path) -> None:
        self.crib = crib
        self._url = url
        self._folder = folder
        self._dice = random.Random(17)

    async def make(self, branching: int, asking: int, killed: int) -> None:
        """Make runs: so many of each limit, so many that wait for people, so many whose process is killed."""
        await self.crib.secrets.set("KEY", "swordfish-1")
        for kind in [f"branches_{calls}" for calls in LIMITS] * branching:
            await self.crib.invoke(kind, GIVEN[kind])
        for _ in range(asking):
            await self.crib.invoke("clerk", GIVEN["clerk"])
        for number in range(killed):
            kind, most = (("clerk", 14), (f"branches_{LIMITS[0]}", 60))[number % 2]
            run_id = await self.crib.submit(kind, GIVEN[kind])
            child = Child(self._folder / f"{number}", perish, self._url, run_id)
            last = self._dice.randrange(2, most)
            while child.is_alive and (await self.crib.store.journal.run(run_id)).events < last:
                await self.crib.clock.sleep(0.01)
            child.signal(signal.SIGKILL)
            await child.ended()
        await self._resume()

    async def end(self) -> None:
        """Answer whatever is asked, until all runs have ended."""
        while waiting := (await self.crib.approvals.page()).items:
            for one in waiting:
                await self.crib.decide(one.run_id, one.position, approve=self._dice.random() < 0.7)
            await self._resume()

    async def roots(self) -> Sequence[str]:
        """Ids of the runs that nobody has called."""
        runs = await self.crib.store.journal.runs("default", limit=10_000)
        return [run.run_id for run in runs if run.request.parent_run_id is None]

    async def differing(self) -> Sequence[str]:
        """Where replays differ."""
        replays = [await self.crib.replay(run_id) for run_id in await self.roots()]
        return [str(replay.divergence) for replay in replays if not replay.same]

    async def opened(self) -> bool:
        """Whether every call that needs a secret of the vault, in whichever process, has got it."""
        found = [entry.event for run_id in await self.roots() for entry in await self.crib.store.journal.events(run_id)]
        calls = [
            event.envelope for event in found if isinstance(event, CallFinished) and event.envelope.name == "sealed"
        ]
        return bool(calls) and all(call.ok or call.status == "denied" for call in calls)

    async def unsafe(self) -> Sequence[str]:
        """What rehearsals say of runs that wait."""
        report = await self.crib.rehearse()
        return [str(run.reasons) for run in report.runs if run.verdict != "safe"]

    async def _resume(self) -> None:
        for run in await self.crib.store.journal.runs("default", limit=10_000):
            if not run.ended:
                await self.crib.resume(run.run_id)


async def check(url: str, folder: Path, branching: int, asking: int, killed: int) -> int:
    """Make a corpus, and hold its replays and rehearsals against it; returns how many runs it has."""
    async with crib_at(url) as crib:
        corpus = Corpus(crib, url, folder)
        await corpus.make(branching, asking, killed)
        assert len((await crib.approvals.page(limit=200)).items) >= asking
        assert await corpus.unsafe() == []
        await corpus.end()
        assert await corpus.differing() == []
        assert await corpus.opened()
        await check_planted(crib, await corpus.roots())
        return len(await corpus.roots())


def other_output(event: Event) -> Event:
    """Another output of a tool."""
    if isinstance(event, CallFinished) and event.envelope.ok and event.envelope.name in {"record", "sign"}:
        return event.model_copy(update={"envelope": event.envelope.model_copy(update={"output": 4711})})
    return event


def other_prompt(event: Event) -> Event:
    """Another prompt."""
    return (
        event.model_copy(update={"system": "Be brief."}) if isinstance(event, ModelStarted) and event.system else event
    )


def other_decision(event: Event) -> Event:
    """The contrary of what a person has decided."""
    if isinstance(event, ApprovalDecided) and event.decision is not None:
        contrary = event.decision.model_copy(update={"approved": not event.decision.approved})
        return event.model_copy(update={"decision": contrary})
    return event


async def check_planted(crib: Crib, run_ids: Sequence[str]) -> None:
    """What was changed in a recording is found, in a run of each kind."""
    journal: Any = crib.store.journal
    runs = {(await journal.run(run_id)).request.tool_name: run_id for run_id in run_ids}
    for kind, run_id in runs.items():
        whole = await journal.events(run_id)
        for change in (other_output, other_prompt, other_decision):
            changed = [replace_event(entry, change(entry.event)) for entry in whole]
            if changed == list(whole):
                assert kind.startswith("branches")
                continue

            async def altered(asked: str, *, after: int = 0, limit: int | None = None) -> Sequence[RunEvent]:
                assert asked == run_id  # noqa: B023 - it is called in this turn of the loop
                return [entry for entry in changed if entry.number > after][:limit]  # noqa: B023

            with patch.object(journal, "events", altered):
                replay = await crib.replay(run_id)
            assert not replay.same, f"{change.__name__} of {kind}"


def replace_event(entry: RunEvent, event: Event) -> RunEvent:
    """An event of a journal with another content."""
    return entry.model_copy(update={"event": event})


STORES = ["sqlite", "postgres"]


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of an empty store."""
    is_server = request.param == "postgres"
    return request.getfixturevalue("postgres_store") if is_server else f"sqlite:///{tmp_path}/crib.db"


@pytest.mark.slow
@pytest.mark.requirement("runs.replay_under_load")
@pytest.mark.usefixtures("load")
async def test_a_corpus_of_runs_replays_the_same_on_a_busy_machine(url: str, tmp_path: Path):
    assert await check(url, tmp_path, 2, 3, 3) == 14


@pytest.mark.soak
@pytest.mark.requirement("runs.replay_under_load")
@pytest.mark.usefixtures("load")
async def test_a_corpus_of_hundreds_of_runs_does(url: str, tmp_path: Path):
    assert await check(url, tmp_path, 40, 48, 42) == 250
