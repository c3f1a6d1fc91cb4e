"""Replays of recorded runs: what was recorded is read, and the code of today is run on that alone."""

from collections.abc import Mapping
from datetime import datetime

from toolcrib.contracts import DELEGATES, ChildStarted, Conflict, InvalidSettings, LLMConfig, NotFound, Replay, RunKind
from toolcrib.crib.parts import Parts
from toolcrib.engines.replay import (
    Furniture,
    RecordedRun,
    Recording,
    ReplayEngine,
    ReplayModels,
    ReplaySandbox,
    replay_of,
)
from toolcrib.llm import Cost, Usage
from toolcrib.runs import Past, Program, confirmed
from toolcrib.runtimes import DelegateRuntime, RuntimeDispatcher
from toolcrib.store import Journal


async def replay_run(parts: Parts, run_id: str, *, parked: bool = False) -> Replay:
    """Execute the code of a run again on its recording, with all that is nested in it.

    A nested run is replayed with its callers, on whose budget it drew; what is told is of itself.

    Args:
        parts: Have the definitions, the code and the recording.
        run_id: The run.
        parked: Replay also a run that has not ended, as far as it has come.

    Raises:
        NotFound: There is no such run, or a text of it is gone.
        Conflict: It has not ended.
    """
    journal = parts.outside.store.journal
    run = await journal.run(run_id)
    if not run.ended and not parked:
        msg = f"run {run_id} has not ended; resume it, and replay it when it has, or replay it as far as it has come"
        raise Conflict(msg)
    recording = await read_recording(journal, run.request.root_run_id or run_id)
    return await replay_recording(parts, recording, run_id, past=journal)


async def read_recording(journal: Journal, run_id: str) -> Recording:
    """A run that nobody called with all that are nested in it, as a journal has them.

    Raises:
        NotFound: There is no such run.
    """
    runs: dict[str, RecordedRun] = {}
    waiting = [run_id]
    while waiting:
        next_id = waiting.pop()
        try:
            run = await journal.run(next_id)
        except NotFound:
            if next_id == run_id:
                raise
            continue  # it was announced, and a crash came before it was made; or it was pruned
        events = await journal.events(next_id)
        runs[next_id] = RecordedRun(run, events, await journal.signals(next_id))
        waiting += [entry.event.child_run_id for entry in events if isinstance(entry.event, ChildStarted)]
    return Recording(run_id, runs)


async def replay_recording(parts: Parts, recording: Recording, run_id: str, *, past: Past) -> Replay:
    """Replay a recording with the code and the definitions of a crib.

    Args:
        parts: Of the crib.
        recording: A family of runs.
        run_id: The one of them to tell about.
        past: Reads the other runs that it has read.
    """

    def programs(models: ReplayModels, sandbox: ReplaySandbox) -> Mapping[RunKind, Program]:
        return {kind: confirmed(program) for kind, program in parts.programs(models.model, sandbox).items()}

    def price(llm: LLMConfig, usage: Usage, at: datetime) -> Cost:
        try:
            return parts.models.model(llm).cost(usage, at)
        except InvalidSettings as problem:
            return Cost(None, f"unknown: {problem}")

    engine = ReplayEngine(
        recording,
        Furniture(
            parts.registry,
            programs,
            RuntimeDispatcher(dict.fromkeys(DELEGATES, DelegateRuntime())),
            parts.accounts,
            parts.executor.guardrails,
            parts.outside.store.blobs,
            past,
            price,
        ),
    )
    await engine.replay()
    return replay_of(engine.stage, run_id)
