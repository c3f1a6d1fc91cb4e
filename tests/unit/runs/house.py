"""A house with an engine, in memory: programs of the tests' own, tools that are functions, and a clock that stands."""

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Any, TypeAlias, TypeVar

from tests.twins import AT, Behaviour, DictSecrets, FunctionDispatcher, ManualClock, echo, make_definition
from toolcrib.contracts import (
    OWNER,
    CallFinished,
    Event,
    Json,
    Run,
    Signal,
    ToolDefinition,
    ToolEnvelope,
    ToolRevision,
    Unavailable,
)
from toolcrib.contracts import RunRequest as Request
from toolcrib.core.engines import DriveResult, EngineSettings, LocalEngine
from toolcrib.core.executor import CallRequest, Dispatch, Executor, Outcome, SlidingWindow
from toolcrib.core.registry import Registry
from toolcrib.core.runs import RunContext, RunEnd
from toolcrib.core.runs.context.pending import Pending
from toolcrib.infrastructure.store import MemoryStore, Store

T = TypeVar("T")
Script: TypeAlias = Callable[[RunContext], Awaitable[Json]]
"""What a test's program does; its return value is the run's output."""

LEASE_S = 30.0
_RUN_IDS = count(1)


class StandingClock(ManualClock):
    """Who sleeps is woken by `advance`, in the order of time."""

    def __init__(self) -> None:
        super().__init__()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()

    async def sleep(self, seconds: float) -> None:
        """Wait until so much time has passed."""
        self.naps.append(seconds)
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.elapsed + seconds, next(self._order), woken))
        await woken

    async def pass_time(self, seconds: float) -> None:
        """Let time pass, and let everybody who wakes do what they do."""
        self.advance(seconds)
        while self._sleepers and self._sleepers[0][0] <= self.elapsed:
            _, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)
        await settled()


async def settled() -> None:
    """Let every task go as far as it can without time or the outside world."""
    for _ in range(50):
        await asyncio.sleep(0)


class House:
    """One process's view: several on one store are several processes.

    Args:
        script: What runs do.
        behaviour: What tools do; the input is the output by default.
        other: A house whose store, clock and tools this one shares.
        owner: Name of the process.
        store: Instead of one in memory.
        clock: Instead of one that stands until it is told to go on.
    """

    def __init__(
        self,
        script: Script,
        behaviour: Behaviour = echo,
        *,
        other: "House | None" = None,
        owner: str = "first",
        store: Store | None = None,
        clock: StandingClock | None = None,
        max_runs: int = 500,
    ) -> None:
        self.script = script
        self.able = True
        """Whether this process has what its runs need."""
        self.foreign: set[str] = set()
        """Runs for which it lacks something all the same."""
        self.store: Store = store or (other.store if other else MemoryStore())
        self.clock = clock or (other.clock if other else StandingClock())
        self.registry = other.registry if other else Registry(self.store.definitions)
        self.dispatcher = FunctionDispatcher(behaviour)
        executor = Executor(
            tools=self.registry,
            dispatcher=self.dispatcher,
            secrets=DictSecrets(),
            results=self.store.cache,
            blob_sink=self.store.blobs,
            rates=SlidingWindow(),
            clock=self.clock,
        )
        self.engine = LocalEngine(
            store=self.store,
            registry=self.registry,
            executor=executor,
            programs={"tool": self._program, "agentic": self._program},
            clock=self.clock,
            new_run_id=lambda: f"run_{next(_RUN_IDS)}",
            settings=EngineSettings(owner=owner, lease_s=LEASE_S, max_runs=max_runs),
            check_able=self._check_able,
        )

    async def _program(self, context: RunContext, tool: ToolRevision) -> RunEnd:
        output = await self.script(context)
        return output if isinstance(output, RunEnd) else RunEnd(output=output)

    async def _check_able(self, run: Run) -> None:
        if not self.able or run.run_id in self.foreign:
            raise Unavailable(f"this process cannot drive {run.run_id}")

    async def save(self, definition: ToolDefinition | None = None) -> ToolRevision:
        """Make a tool known; `look_up` if none is given."""
        return await self.registry.save(definition or make_definition(), realm=OWNER.realm, made_by=OWNER.id, at=AT)

    async def request(self, **fields: Any) -> Request:
        """A run of the program; the tool that it is called by does not matter."""
        tool = await self.save(make_definition("the_run", timeout_s=299))
        values: dict[str, Any] = {
            "kind": "tool",
            "tool": tool.ref,
            "content_hash": tool.content_hash,
            "principal": OWNER,
        }
        return Request(**(values | fields))

    async def start(self, **fields: Any) -> DriveResult:
        """Start a run and drive it until it ends or waits."""
        return await self.engine.start(await self.request(**fields))

    async def crash(self, driving: "asyncio.Task[DriveResult]") -> str:
        """What is left of a run whose process died while it drove: the run's id. Its lease runs out."""
        await settled()
        (run,) = [run for run in await self.store.journal.runs(OWNER.realm) if run.status == "running"]
        driving.cancel()
        await asyncio.wait([driving])
        assert driving.cancelled()
        await self.clock.pass_time(LEASE_S + 1)
        return run.run_id

    async def signal(self, run_id: str, name: str, payload: dict[str, Any] | None = None) -> bool:
        """Send a signal."""
        sent = Signal(name=name, payload=payload or {}, made_by="ann", at=self.clock.now())
        return await self.engine.signal(run_id, sent)

    async def events(self, run_id: str) -> Sequence[Event]:
        """What stands in the journal."""
        return [entry.event for entry in await self.store.journal.events(run_id)]

    async def envelopes(self, run_id: str) -> dict[str, ToolEnvelope]:
        """Envelopes by position, of calls that have ended."""
        found = [event for event in await self.events(run_id) if isinstance(event, CallFinished)]
        assert len({event.position for event in found}) == len(found)
        return {event.position: event.envelope for event in found}

    @property
    def dispatched(self) -> list[str]:
        """Positions of the calls that this process has executed, in order."""
        return [dispatch.position for dispatch in self.dispatcher.dispatched]


async def any_done(context: RunContext, pending: Sequence[Pending[T]]) -> set[Pending[T]]:
    """Wait until at least one part of a program is done; all that are."""
    underway = context.underway()
    for part in pending:
        underway.add(part, part)
    return {part for part, _ in await underway.next()}


def ask(position: str, name: str = "look_up", **arguments: Json) -> CallRequest:
    """A call."""
    return CallRequest(position, name, arguments)


async def hang(dispatch: Dispatch) -> Outcome:
    """The behaviour of a tool that never ends."""
    await asyncio.get_running_loop().create_future()
    raise AssertionError(dispatch)
