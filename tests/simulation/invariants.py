"""What must be true of every simulation in the end, whatever the schedule was."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

import orjson

from tests.chaos.journals import happens_once
from tests.simulation.office import LIMITS, ONCE, WRITES, Ledger
from toolcrib import Crib
from toolcrib.contracts import (
    CallFinished,
    CallStarted,
    Reason,
    RunEvent,
    RunFinished,
    RunResumed,
    RunStarted,
    RunSuspended,
)

_OWN: Final = frozenset({"call_refused", "fails"})
"""What may become of a run with no change at all: its limits refuse a call, or a person does."""


class Violation(AssertionError):
    """Something is not as it must be. The text names the invariant first, then where."""


async def check(crib: Crib, ledger: Ledger, begun: Sequence[str]) -> bytes:
    """Check everything, and return the journals as bytes.

    Raises:
        Violation: Something is wrong.
    """
    rows = {run.run_id: run for run in await crib.store.journal.runs("default", limit=10_000)}
    logs = {run_id: await crib.store.journal.events(run_id) for run_id in sorted(rows)}
    for run_id in begun:
        _must(run_id in rows, "run lost", run_id)
    for run_id, events in logs.items():
        _must(rows[run_id].ended and isinstance(events[-1].event, RunFinished), "run not ended", run_id)
        _check_log(run_id, events)
    _check_effects(logs, ledger)
    await _check_replays(crib, logs)
    return b"\n".join(
        orjson.dumps(
            [entry.model_dump(mode="json") if hasattr(entry, "model_dump") else _entry(entry) for entry in log]
        )
        for log in logs.values()
    )


def _entry(entry: RunEvent) -> Mapping[str, object]:
    return {
        "run": entry.run_id,
        "number": entry.number,
        "at": entry.at.isoformat(),
        "event": entry.event.model_dump(mode="json"),
    }


async def check_rehearsal(crib: Crib) -> None:
    """Every run that stands still could go on after no change at all."""
    before = await _numbers(crib)
    report = await crib.rehearse()
    moved = await _numbers(crib) != before
    if moved:
        return
    logs = {run_id: await crib.store.journal.events(run_id) for run_id in before}
    excused = {_root(events) for events in logs.values() if _outlives_its_caller(events, logs)}
    for run in (run for run in report.runs if run.run_id not in excused):
        found = [reason for reason in run.reasons if reason.code not in _OWN]
        _must(not found, "rehearsal not safe", f"{run.tool} {run.run_id}: {found}")


async def _numbers(crib: Crib) -> Mapping[str, int]:
    return {run.run_id: run.events for run in await crib.store.journal.runs("default", limit=10_000)}


def _check_log(run_id: str, events: Sequence[RunEvent]) -> None:
    numbers = [entry.number for entry in events]
    _must(numbers == list(range(1, len(events) + 1)), "numbers with gaps", f"{run_id}: {numbers}")
    for thing, count in Counter(happens_once(entry.event) for entry in events).items():
        _must(thing is None or count == 1, "event twice", f"{run_id}: {thing}")
    first, last = events[0].event, events[-1].event
    if isinstance(first, RunStarted) and isinstance(last, RunFinished):
        most = {**{f"fan_{most}": most for most in LIMITS}, "desk": 50, "nest": 14, "helper": 4, "boss": 50, "pair": 7}
        limit = most.get(first.request.tool_name)
        _must(limit is None or last.tool_calls <= limit, "budget exceeded", f"{run_id}: {last.tool_calls} calls")
        for entry in events:
            if isinstance(entry.event, CallFinished) and entry.event.envelope.status == "error":
                error = entry.event.envelope.error
                _must(error is not None, "error without a reason", run_id)
                is_unknown = error is not None and error.reason is Reason.OUTCOME_UNKNOWN
                labelled = is_unknown and error is not None and (error.details or {}).get("effect") == "unknown"
                _must(labelled or not is_unknown, "unknown outcome without a label", run_id)


def _check_effects(logs: Mapping[str, Sequence[RunEvent]], ledger: Ledger) -> None:
    done = Counter((line.tool, line.key) for line in ledger.lines)
    for (name, key), count in done.items():
        _must(name not in ONCE or count == 1, "unsafe effect twice", f"{name} {key}")
        _must(key.partition("/")[0] in logs, "effect of an unknown run", key)
    for run_id, events in logs.items():
        keys = {e.event.position: e.event.idempotency_key for e in events if isinstance(e.event, CallStarted)}
        for entry in events:
            if not isinstance(entry.event, CallFinished):
                continue
            envelope = entry.event.envelope
            times = done[envelope.name, keys.get(envelope.position, "")]
            if envelope.name in WRITES and envelope.ok:
                _must(times > 0, "success without an effect", f"{run_id} {envelope.position}")
            if envelope.status == "denied":
                _must(times == 0, "denied and done", f"{run_id} {envelope.position}")


async def _check_replays(crib: Crib, logs: Mapping[str, Sequence[RunEvent]]) -> None:
    excused = {_root(events) for events in logs.values() if _outlives_its_caller(events, logs)}
    for run_id, events in logs.items():
        if _root(events) == run_id and run_id not in excused:
            replay = await crib.replay(run_id)
            _must(replay.same, "replay diverges", f"{_name(events)} {run_id}: {replay.divergence}")


def _root(events: Sequence[RunEvent]) -> str:
    first = events[0].event
    return first.request.root_run_id or events[0].run_id if isinstance(first, RunStarted) else events[0].run_id


def _name(events: Sequence[RunEvent]) -> str:
    first = events[0].event
    return first.request.tool_name if isinstance(first, RunStarted) else ""


def _outlives_its_caller(child: Sequence[RunEvent], logs: Mapping[str, Sequence[RunEvent]]) -> bool:
    """Whether an old process went on with a nested run while a new one had its caller already.

    For some seconds the old one does not know. A replay plays the lives of a run one after the other, and cannot.
    """
    first = child[0].event
    caller_id = first.request.parent_run_id if isinstance(first, RunStarted) else None
    if caller_id is None:
        return False
    taken = [entry.at for entry in logs[caller_id] if isinstance(entry.event, RunResumed)]
    return any(
        before.at < at <= entry.at
        for at in taken
        for before, entry in pairwise(child)
        if not isinstance(before.event, RunSuspended) and not isinstance(entry.event, RunResumed)
    )


def _must(holds: bool, invariant: str, where: str) -> None:
    if not holds:
        msg = f"{invariant}: {where}"
        raise Violation(msg)
