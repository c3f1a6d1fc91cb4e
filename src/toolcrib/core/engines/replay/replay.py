"""The replay of a family of runs: today's driver and programs on recorded inputs, and its result.

Each event is compared with the recorded one, and the first difference ends the replay. Runs are replayed life by life,
and nested runs under their callers' budgets. The end of a life that a crash cut off is not compared. The replay's
journal begins empty and accepts only recorded events.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct

from toolcrib.contracts import (
    CANCEL,
    ENDED,
    ChildStarted,
    Conflict,
    Divergence,
    ModelFailed,
    ModelFinished,
    NotFound,
    Replay,
    Run,
    RunEvent,
    RunFinished,
    RunKind,
    RunRequest,
    RunResult,
    RunStarted,
    RunStatus,
    RunSuspended,
    Signal,
    digest,
)
from toolcrib.core.engines.driver import Driver, RunServices
from toolcrib.core.engines.leases import LeaseGuard
from toolcrib.core.engines.outcomes import DriveResult
from toolcrib.core.engines.replay.event_comparison import ReplayedRun, ReplayState
from toolcrib.core.engines.replay.ordering import never
from toolcrib.core.engines.replay.recorded_models import Hear, Price, ReplayModels, ReplayScreens
from toolcrib.core.engines.replay.recorded_ports import (
    RUN,
    Deadlines,
    RecordedObservations,
    ReplayClock,
    ReplayExecutor,
)
from toolcrib.core.engines.replay.recorded_sandbox import ReplaySandbox
from toolcrib.core.engines.replay.recording import RecordedFamily, RunSegment
from toolcrib.core.executor import Dispatcher
from toolcrib.core.policy import Accounts, Guardrails
from toolcrib.core.registry import Registry
from toolcrib.core.runs import EndedRuns, Program, RunContext, RunEnd, TokenHub, calls_of, result_of
from toolcrib.core.runs.context.ports import Texts
from toolcrib.infrastructure.store import Claim, RunChange
from toolcrib.llm.base.errors import ModelRetryPolicy


def replay_of(stage: ReplayState, run_id: str) -> Replay:
    """What the replay of a run has found, once it is over."""
    run, events = stage.parts[run_id].recorded.run, stage.parts[run_id].recorded.events
    made = stage.events(run_id)
    children = [entry.event.child_run_id for entry in events if isinstance(entry.event, ChildStarted)]
    nested = [replay_of(stage, child_id) for child_id in children if child_id in stage.parts]
    divergence = _of(stage, run_id) or next((one.divergence for one in nested if one.divergence), None)
    made_digest, recorded_digest = stage.digests(family(stage, run_id))
    last = events[-1].event
    end = last if isinstance(last, RunFinished) else None
    return Replay(
        run_id=run_id,
        tool=run.request.tool,
        same=divergence is None and made_digest == recorded_digest,
        divergence=divergence,
        status=last.status if isinstance(last, RunFinished | RunSuspended) else "running",
        stop_reason=None if end is None else end.stop_reason,
        output=None if end is None else end.output,
        partial=None if end is None else end.partial,
        envelopes=tuple(envelope for envelope in calls_of(made) if ".reconcile" not in envelope.position),
        model_calls=len({one.event.position for one in made if isinstance(one.event, ModelFinished | ModelFailed)}),
        events=len(made),
        digest=made_digest,
        recorded_digest=recorded_digest,
        nested=tuple(nested),
    )


def family(stage: ReplayState, run_id: str) -> list[str]:
    """The ids of a run and of all that are nested in it."""
    events = stage.parts[run_id].recorded.events
    children = [entry.event.child_run_id for entry in events if isinstance(entry.event, ChildStarted)]
    return [run_id, *(one for child in children if child in stage.parts for one in family(stage, child))]


def _of(stage: ReplayState, run_id: str) -> Divergence | None:
    found = stage.score.divergence
    return found if found is not None and found.run_id == run_id else None


class ReplayStore:
    """What the driver of a replay is given for a store.

    Args:
        stage: Of the replay.
        past: Reads runs that are not replayed.
        blobs: Texts as they were kept.
    """

    def __init__(self, stage: ReplayState, past: EndedRuns, blobs: Texts) -> None:
        self.journal = ReplayJournal(stage, past)
        self.blobs = ReplayBlobs(blobs)


class ReplayJournal:
    """Takes what the code makes; what is read of it is what was made again by now."""

    def __init__(self, stage: ReplayState, past: EndedRuns) -> None:
        self._stage = stage
        self._past = past

    def append(
        self, run_id: str, epoch: int, events: Sequence[RunEvent], change: RunChange | None = None
    ) -> Awaitable[None]:
        """Hold events against the recorded ones; durable at once if all of them were so then."""
        made = [self._stage.make(run_id, entry.event) for entry in events]
        return next((each for each in made if not each.done()), made[-1])

    async def signal(self, run_id: str, signal: Signal) -> bool:
        """What is told to a run in a replay is in its recording already."""
        return True

    async def signals(self, run_id: str) -> Mapping[str, Signal]:
        """What had been left for a run by now."""
        return self._stage.signals(run_id)

    async def run(self, run_id: str) -> Run:
        """A run as it stands by now."""
        part = self._stage.parts.get(run_id)
        if part is None:
            return await self._past.run(run_id)
        events = self._stage.events(run_id)
        if not events:
            msg = f"run {run_id} has not begun yet"
            raise NotFound(msg)
        last = events[-1].event
        row = part.recorded.run.model_copy(update={"status": _status(events), "events": events[-1].number})
        if not isinstance(last, RunFinished):
            return row
        result = result_of(run_id, last)
        ended = {name: getattr(result, name) for name in set(RunResult.__struct_fields__) & set(Run.__struct_fields__)}
        return row.model_copy(update=ended)

    async def runs(
        self,
        realm: str,
        *,
        tool: str | None = None,
        made_by: str | None = None,
        status: RunStatus | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> Sequence[Run]:
        """Runs that are not replayed."""
        return await self._past.runs(realm, tool=tool, made_by=made_by, status=status, before=before, limit=limit)

    async def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[RunEvent]:
        """What was made again by now."""
        if run_id not in self._stage.parts:
            return await self._past.events(run_id, after=after, limit=limit)
        return [entry for entry in self._stage.events(run_id) if entry.number > after][:limit]


class ReplayBlobs:
    """Large texts as they were kept; what is kept anew is held in memory."""

    def __init__(self, blobs: Texts) -> None:
        self._blobs = blobs
        self._kept: dict[str, bytes] = {}

    async def put(self, data: bytes, *, realm: str, made_by: str, content_type: str = "application/json") -> str:
        """The digest under which a text is kept."""
        name = digest(data)
        self._kept[name] = data
        return name

    async def get(self, realm: str, digest: str) -> bytes:
        """A text.

        Raises:
            NotFound: This realm has nothing of that digest.
        """
        if digest in self._kept:
            return self._kept[digest]
        return await self._blobs.get(realm, digest)


def _status(events: Sequence[RunEvent]) -> RunStatus:
    last = events[-1].event
    return last.status if isinstance(last, RunSuspended | RunFinished) else "running"


class ReplayServices(Struct, frozen=True):
    """What a replay needs of the crib in which it is made: code and definitions, and what is read of a store.

    That store is in memory: a replay takes it for its end when nothing happens, and does not wait for any other.
    """

    registry: Registry
    programs: Callable[[ReplayModels, ReplaySandbox], Mapping[RunKind, Program]]
    """The code of each kind of run, with the models and the sandbox that it gets."""
    delegates: Dispatcher
    """Runs tools that are runs of their own."""
    accounts: Accounts
    guardrails: Guardrails
    blobs: Texts
    past: EndedRuns
    """Reads runs that are not replayed."""
    price: Price
    retry: ModelRetryPolicy = ModelRetryPolicy()
    hear: Hear | None = None
    """Is told of each request to a model."""


class ReplayEngine:
    """Replays one family of runs.

    Args:
        recording: What is replayed.
        furniture: What it is made with.
    """

    def __init__(self, recording: RecordedFamily, furniture: ReplayServices) -> None:
        stage = self.stage = ReplayState(recording)
        clock, store = ReplayClock(stage), ReplayStore(stage, furniture.past, furniture.blobs)
        self._deadlines = Deadlines(stage)
        executor = ReplayExecutor(
            stage,
            tools=furniture.registry,
            delegates=furniture.delegates,
            clock=clock,
            deadlines=self._deadlines,
            blob_sink=store.blobs,
            guardrails=furniture.guardrails,
            accounts=furniture.accounts,
        )
        services = RunServices(
            store,
            furniture.registry,
            executor,
            furniture.programs(ReplayModels(stage, furniture.price, furniture.hear), ReplaySandbox(stage)),
            clock,
            furniture.retry,
            TokenHub(),
            self._deadlines.of_run,
            RecordedObservations(stage).learn,
            lambda: ReplayScreens(stage),
            lambda run_id: [entry.event for entry in stage.life(run_id).events],
            clock.pause,
            clock.sleep_out,
            stage.suspends,
            in_recorded_order=True,
        )
        self._driver = Driver(services, self, _not_fenced)
        self._tasks: dict[tuple[str, int], asyncio.Task[None]] = {}

    async def replay(self) -> None:
        """Replay all lives, each from its turn on; what was found is in the stage then."""
        stage = self.stage
        root = stage.parts[stage.recording.run_id]
        for part in stage.parts.values():
            for life in part.lives:
                if part is root or life.number > 0:
                    task = asyncio.create_task(self._in_turn(part, life))
                    self._tasks[life.run_id, life.number] = task
        try:
            await stage.score.conduct()
        finally:
            self._deadlines.close()
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for run_id in stage.parts:
            self._check_all_played(run_id)

    # What the driver asks for nested runs: NestedRuns -----------------------------------------------------------------

    async def create(self, request: RunRequest, *, run_id: str | None = None) -> str:
        """A nested run begins, as it was asked then.

        Raises:
            Conflict: It has begun before.
        """
        part = self.stage.parts.get(run_id or "")
        if part is None or run_id is None:
            await never()
            raise LookupError(run_id)
        first = part.recorded.events[0]
        if self.stage.score.is_made(first):
            msg = f"run {run_id} has begun before"
            raise Conflict(msg)
        part.life = part.lives[0]
        part.open.setdefault(("run_started",), []).append(first)
        self.stage.make(run_id, RunStarted(request=request))
        part.life = None
        return run_id

    async def resume(self, run_id: str, parent: RunContext | None = None) -> DriveResult:
        """Replay what the caller of a nested run drove of it, and tell how it stands then."""
        part = self.stage.parts[run_id]
        while True:
            await part.over.wait()
            life = part.next
            if life is None or parent is None or not self._is_under(life, parent.run_id):
                return await self._standing(part, parent)
            if life.number > 0:
                await self.stage.score.turn(life.events[0])
            if part.next is life and part.over.is_set():
                driven = await self._play(part, life, parent)
                if driven.result.status in ENDED or part.next is None:
                    return driven

    async def end(self, run_id: str) -> None:
        """A nested run that was cancelled ends in a life of its own, when it is its turn."""

    # Inside -----------------------------------------------------------------------------------------------------------

    async def _in_turn(self, part: ReplayedRun, life: RunSegment) -> None:
        """Replay a life that nobody's caller drove, once it is its turn; what a dead process left is cut off before."""
        await self.stage.score.turn(life.events[0])
        if self._caller_drove(life):
            return
        if life.number > 0:
            await self._cut_off(part)
        if part.played == life.number:
            with contextlib.suppress(LookupError):
                await self._play(part, life, None)

    async def _cut_off(self, part: ReplayedRun) -> None:
        """End what is left of the life before, and of the lives of its callers that it was driven in."""
        run_id = part.recorded.run.run_id
        while not part.over.is_set():
            task = self._tasks.get((run_id, part.played - 1))
            if task is not None and not task.done() and task is not asyncio.current_task():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            await part.over.wait()

    async def _play(self, part: ReplayedRun, life: RunSegment, parent: RunContext | None) -> DriveResult:
        part.begin(life)
        token = RUN.set(life.run_id)
        hold = LeaseGuard(life.run_id)
        stopping = asyncio.create_task(self._stop_in_turn(life, hold))
        try:
            if life.number == 0 and self.stage.score.is_made(life.events[0]):
                part.open.pop(("run_started",), None)
            elif life.number == 0:
                self.stage.make(life.run_id, RunStarted(request=part.recorded.run.request))
            driven = await self._drive(life, hold, parent)
            self.stage.check_complete(life.run_id)
            return driven
        finally:
            stopping.cancel()
            RUN.reset(token)
            part.end()

    async def _drive(self, life: RunSegment, hold: LeaseGuard, parent: RunContext | None) -> DriveResult:
        end = life.end
        if end is not None and life.refused:
            refused = RunEnd(status=end.status, stop_reason=end.stop_reason, error=end.error)
            return await self._driver.refuse(self._claim(life), refused)
        return await self._driver.execute(self._claim(life), hold, parent)

    async def _stop_in_turn(self, life: RunSegment, hold: LeaseGuard) -> None:
        """Stop the work on a run where it was stopped because somebody had cancelled it."""
        entry = life.find("signal_received", CANCEL, "")
        if entry is None and life.end is not None and CANCEL in life.taken_before:
            entry = life.events[-1]
        if entry is not None and not life.cancelled_at_once:
            await self.stage.score.turn(entry)
            hold.stop()

    def _claim(self, life: RunSegment) -> Claim:
        recorded = self.stage.parts[life.run_id].recorded
        before = life.before or life.events[:1]
        row = recorded.run.model_copy(
            update={"status": "running", "epoch": life.epoch, "events": before[-1].number, "output": None}
        )
        there = {
            name: signal
            for name, signal in life.signals.items()
            if name in life.taken_before or (life.number > 0 and signal.at < life.began_at)
        }
        there.pop(CANCEL, None)
        if life.cancelled_at_once:
            there[CANCEL] = life.signals[CANCEL]
        return Claim(row, list(before), there)

    def _is_under(self, life: RunSegment, caller_id: str) -> bool:
        """Whether a life of a nested run belongs to the life of its caller that is being replayed."""
        caller, score = self.stage.parts[caller_id], self.stage.score
        current, first = caller.life, _first_own(life)
        if current is None:
            return False
        following = caller.lives[current.number + 1 :][:1]
        begun_after = score.is_before(current.events[0], first) or life.number == 0
        if current.halts:
            return begun_after and score.is_before(first, current.events[-1])
        return begun_after and (not following or score.is_before(first, following[0].events[0]))

    def _caller_drove(self, life: RunSegment) -> bool:
        caller_id = self.stage.parts[life.run_id].recorded.run.request.parent_run_id
        caller = self.stage.parts.get(caller_id or "")
        return caller is not None and caller.life is not None and self._is_under(life, caller_id or "")

    async def _standing(self, part: ReplayedRun, parent: RunContext | None) -> DriveResult:
        """How a nested run stands that is not driven now; what it used counts for its caller if it has ended."""
        run_id, events = part.recorded.run.run_id, self.stage.events(part.recorded.run.run_id)
        log = list(events)
        last = events[-1].event
        if isinstance(last, RunFinished):
            result = result_of(run_id, last)
            if parent is not None:
                parent.budget.release(run_id)
                parent.budget.take_nested(
                    tool_calls=result.tool_calls,
                    tokens=result.all_tokens,
                    cost_usd=result.counted_usd,
                    cut_off_usd=result.cut_off_usd,
                )
            return DriveResult(result, log)
        if not isinstance(last, RunSuspended) or last.status == "queued":
            await never()
        status = last.status if isinstance(last, RunSuspended) else "running"
        return DriveResult(RunResult(run_id=run_id, status=status), log)

    def _check_all_played(self, run_id: str) -> None:
        """Tell of the first life that never came."""
        part = self.stage.parts[run_id]
        self.stage.check_complete(run_id)
        if part.next is not None and part.next.events:
            part.begin(part.next)
            self.stage.check_complete(run_id)


def _first_own(life: RunSegment) -> RunEvent:
    """The first event that the process of a life made."""
    return life.events[min(1, len(life.events) - 1)] if life.number == 0 else life.events[0]


async def _not_fenced(hold: LeaseGuard) -> None:
    """No other process takes a run in a replay."""
