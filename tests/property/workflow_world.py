"""A world in which workflows run: tools with effects that are counted outside, people who answer, processes that die.

What a tool does is a function of the place and try of its call, so an undisturbed run tells what must come of a run
whose processes die, at whatever event of whichever journal, before or after the event is kept.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from zlib import crc32

import orjson

from tests.twins import AT, DictSecrets, FunctionDispatcher, make_definition
from tests.unit.runs.house import LEASE_S, StandingClock, settled
from toolcrib.contracts import (
    OWNER,
    WAITING,
    ErrorCode,
    Json,
    Reason,
    Run,
    RunEvent,
    RunRequest,
    Signal,
    SignalAwaited,
    ToolDefinition,
    approval_signal,
)
from toolcrib.contracts.workflows import WorkflowDefinition
from toolcrib.core.engines import DriveResult, EngineSettings, LocalEngine
from toolcrib.core.executor import CallFailed, Dispatch, Executor, Outcome, SlidingWindow, error
from toolcrib.core.registry import Registry, pins_of
from toolcrib.core.runs import decision_on, waiting_approvals
from toolcrib.infrastructure.store import Journal, MemoryStore, RunChange, Store
from toolcrib.kinds.dispatch import DelegateRuntime
from toolcrib.workflows import Workflow

TOOLS: Final[Mapping[str, ToolDefinition]] = {
    "computes": make_definition("computes", side_effects="none"),
    "keyed": make_definition("keyed", side_effects="writes", idempotency_key="header:Idempotency-Key"),
    "pays": make_definition("pays", side_effects="writes").model_copy(update={"reconcile": "finds"}),
}
"""Each can be gone on with after a crash: repeated, repeated under its key, or asked whether it took effect."""
LONGEST_S: Final = 7.0
"""Seconds of the longest wait."""
_RUN_ID: Final = "run_1"
_MOST_LIVES: Final = 200


@dataclass(frozen=True)
class Crash:
    """The end of a process, at the event of this number among those that it writes."""

    events: int
    keeps: bool
    """The event is in the journal."""


class _Journal:
    """A process's journal: when the process has died, nothing that it does matters any more."""

    def __init__(self, journal: Journal, crash: Crash | None) -> None:
        self._journal = journal
        self._crash = crash
        self._written = 0
        self.dead = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    def append(
        self, run_id: str, epoch: int, events: Sequence[RunEvent], change: RunChange | None = None
    ) -> Awaitable[None]:
        if self.dead.is_set():
            return _never()
        self._written += len(events)
        if self._crash is None or self._written < self._crash.events:
            return self._journal.append(run_id, epoch, events, change)
        if self._crash.keeps:
            self._journal.append(run_id, epoch, events, change)
        self.dead.set()
        return _never()


class _Store:
    """A store with another journal."""

    def __init__(self, store: Store, journal: _Journal) -> None:
        self.journal = journal
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def _never() -> Awaitable[None]:
    return asyncio.get_running_loop().create_future()


@dataclass
class World:
    """What happens outside of all processes.

    Args:
        definitions: The workflow that is run last, and before it those that are nested in it.
        failing: How many tries of the calls of a step fail, by its name.
        store: Where runs are kept.
        lively: People answer while the run goes on, and not only when it waits for them.
    """

    definitions: Sequence[WorkflowDefinition]
    failing: Mapping[str, int]
    store: Store = field(default_factory=MemoryStore)
    lively: bool = False
    clock: StandingClock = field(default_factory=StandingClock)
    effects: Counter[str] = field(default_factory=Counter[str])
    """By idempotency key: how often money went out; of other tools, that they took effect."""
    done: set[str] = field(default_factory=set[str])
    """What has taken effect: position and arguments."""
    lives: int = 0
    _paid: dict[str, Json] = field(default_factory=dict[str, Json])

    async def live(self, given: Json, crashes: Sequence[Crash] = ()) -> Run:
        """Run the workflow, in one process after the other, until it has ended."""
        registry = Registry(self.store.definitions)
        definitions = (*TOOLS.values(), make_definition("finds"), *(each.tool() for each in self.definitions))
        for definition in definitions:
            await registry.save(definition, realm=OWNER.realm, made_by=OWNER.id, at=AT)
        tool = registry.require(OWNER.realm, self.definitions[-1].name)
        request = RunRequest(
            kind="workflow",
            tool=tool.ref,
            content_hash=tool.content_hash,
            pins=pins_of(tool, registry),
            input=given,
            principal=OWNER,
        )
        remaining = list(crashes)
        run_id = await self._engine(registry, _Journal(self.store.journal, None)).create(request)
        while True:
            self.lives += 1
            assert self.lives < _MOST_LIVES
            driven = await self._drive(registry, run_id, remaining.pop(0) if remaining else None)
            run = await self.store.journal.run(run_id)
            if run.ended:
                await self._end_what_is_left(registry)
                return run
            if driven is not None:
                await self._answer()
            await self.clock.pass_time(LONGEST_S)

    # One process ------------------------------------------------------------------------------------------------------

    async def _drive(self, registry: Registry, run_id: str, crash: Crash | None) -> DriveResult | None:
        """One process's attempt; null if it died."""
        journal = _Journal(self.store.journal, crash)
        engine = self._engine(registry, journal)
        driving = asyncio.create_task(engine.resume(run_id))
        while not driving.done() and not journal.dead.is_set():
            await settled()
            if not isinstance(self.store, MemoryStore):
                await asyncio.wait({driving}, timeout=0.002)  # for its threads
            if not driving.done() and not journal.dead.is_set():
                if self.lively:
                    await self._answer()
                await self.clock.pass_time(1)
        if driving.done() and not journal.dead.is_set():
            driven = await driving
            await engine.close()
            return driven
        driving.cancel()
        await asyncio.wait([driving])
        await engine.close()
        await self.clock.pass_time(LEASE_S + 1)
        return None

    async def _end_what_is_left(self, registry: Registry) -> None:
        """What a process does that finds nested runs whose caller has ended while the one that drove it died."""
        engine = self._engine(registry, _Journal(self.store.journal, None))
        await self.clock.pass_time(LEASE_S + 1)
        await engine.recover()
        await engine.close()

    def _engine(self, registry: Registry, journal: _Journal) -> LocalEngine:
        async def behave(dispatch: Dispatch) -> Outcome:
            if dispatch.tool.definition.implementation.kind == "workflow":
                return await DelegateRuntime().run(dispatch)
            return await self._behave(dispatch, journal)

        async def able(run: Run) -> None:
            """This process has what it needs."""

        store: Any = _Store(self.store, journal)
        executor = Executor(
            tools=registry,
            dispatcher=FunctionDispatcher(behave),
            secrets=DictSecrets(),
            results=store.cache,
            blob_sink=store.blobs,
            rates=SlidingWindow(),
            clock=self.clock,
        )
        return LocalEngine(
            store=store,
            registry=registry,
            executor=executor,
            programs={"workflow": Workflow(registry)},
            clock=self.clock,
            new_run_id=lambda: _RUN_ID,
            settings=EngineSettings(owner=f"process {self.lives}", lease_s=LEASE_S),
            check_able=able,
        )

    async def _behave(self, dispatch: Dispatch, journal: _Journal) -> Outcome:
        place = f"{dispatch.position}:{orjson.dumps(dispatch.input).decode()}"
        output: Json = {"v": crc32(place.partition(".try")[0].encode()) % 1000}
        if dispatch.tool.name == "finds":
            key = dispatch.input["idempotency_key"]
            return Outcome({"found": self.effects[key] > 0, "output": {"v": self._paid.get(key)}})
        for _ in range(crc32(place.encode()) % 4):
            await asyncio.sleep(0)
        if journal.dead.is_set():
            await _never()
        name, attempt = _step_of(dispatch.position)
        if attempt <= self.failing.get(name, 0):
            raise CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED, f"{name} fails"))
        if dispatch.tool.name == "pays" or dispatch.idempotency_key not in self.effects:
            self.effects[dispatch.idempotency_key] += 1
        self.done.add(place)
        self._paid[dispatch.idempotency_key] = output["v"]
        await asyncio.sleep(0)
        if journal.dead.is_set():
            await _never()
        return Outcome(output)

    # People -----------------------------------------------------------------------------------------------------------

    async def _answer(self) -> None:
        """Say something to all that waits for somebody; what is said is a function of what was asked."""
        journal = self.store.journal
        for run in await journal.runs(OWNER.realm):
            if run.ended or (not self.lively and run.status not in WAITING):
                continue
            events, there = await journal.events(run.run_id), await journal.signals(run.run_id)
            for request in waiting_approvals(events, there):
                approve = crc32(request.position.encode()) % 4 > 0
                decision = decision_on(request, approve=approve, edited_input=None, reason=None)
                name = approval_signal(request.position, request.number)
                await self._tell(run.run_id, name, decision.model_dump(mode="json"))
            for event in [entry.event for entry in events if isinstance(entry.event, SignalAwaited)]:
                if event.wake_at is None and event.name not in there:
                    await self._tell(run.run_id, event.name, {"told": event.name})

    async def _tell(self, run_id: str, name: str, payload: dict[str, Any]) -> None:
        sent = Signal(name=name, payload=payload, made_by="ann", at=self.clock.now())
        await self.store.journal.signal(run_id, sent)


def _step_of(position: str) -> tuple[str, int]:
    """The step of a call, and the number of the try."""
    place, _, attempt = position.partition(".try")
    return place.partition("[")[0], int(attempt or 1)
