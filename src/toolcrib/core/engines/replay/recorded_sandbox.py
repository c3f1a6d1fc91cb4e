"""Sandboxes of a replay: they run no code, repeat its recorded calls, and end as recorded."""

import re
from collections.abc import Iterable, Mapping
from typing import Final, cast

from toolcrib.contracts import (
    ApprovalRequested,
    CallFinished,
    CallStarted,
    Isolation,
    Json,
    JsonObject,
    Reason,
    RunEvent,
    RunFinished,
    Unavailable,
)
from toolcrib.core.engines.replay.event_comparison import ReplayState
from toolcrib.core.engines.replay.ordering import never
from toolcrib.core.engines.replay.recorded_ports import RUN
from toolcrib.infrastructure.sandbox import CodeJob, Exceeded, Failed, Returned, ToolReply, ToolRequest, Used
from toolcrib.infrastructure.sandbox.jobs import Turn

_NO_TOOL: Final = ""
"""A function that no code can have: for what was asked and has no place in the journal."""
_CALL: Final = re.compile(r"c[0-9]+")
_NOT_RUN: Final = " was not run: "


class ReplaySandbox:
    """Opens executions of code that ask what they asked.

    Args:
        stage: Of the replay.
    """

    def __init__(self, stage: ReplayState) -> None:
        self._stage = stage

    async def open(self, job: CodeJob, isolation: Isolation) -> "ReplaySession":
        """An execution of the code of the run that this task replays.

        Raises:
            Unavailable: There was no sandbox then.
        """
        events = self._stage.parts[RUN.get()].recorded.events
        last = events[-1]
        failure = last.event.error if isinstance(last.event, RunFinished) else None
        if failure is not None and failure.reason is Reason.SANDBOX_UNAVAILABLE:
            raise Unavailable(failure.message.partition(_NOT_RUN)[2])
        return ReplaySession(self._stage, events)


class ReplaySession:
    """One execution, turn by turn as it was.

    Args:
        stage: Of the replay.
        events: Of the code's run.
    """

    def __init__(self, stage: ReplayState, events: Iterable[RunEvent]) -> None:
        self.used = Used()
        """Nothing: what it used then stands in the metadata, which are given."""
        self._stage = stage
        self._events = list(events)
        self._calls = _calls(self._events)
        self._turns = 0

    async def start(self) -> Turn:
        """The first thing that the code asked for, or its end."""
        return await self._next()

    async def answer(self, answer: ToolReply) -> Turn:
        """The next one."""
        return await self._next()

    async def close(self) -> None:
        """Nothing runs."""

    async def _next(self) -> Turn:
        self._turns += 1
        turn = self._calls.get(self._turns)
        if turn is not None:
            return turn
        if max(self._calls, default=0) > self._turns:
            return ToolRequest(_NO_TOOL, {})
        last = self._events[-1]
        if not isinstance(last.event, RunFinished):
            await never()
        await self._stage.score.turn(last)
        return await _end(last)


def _calls(events: Iterable[RunEvent]) -> Mapping[int, ToolRequest]:
    """What the code asked for, by number; the arguments as they were before a person edited them."""
    found: dict[int, ToolRequest] = {}

    def note(position: str, name: str, arguments: Json) -> None:
        if _CALL.fullmatch(position) and isinstance(arguments, dict):
            found.setdefault(int(position[1:]), ToolRequest(_function(name), cast("JsonObject", arguments)))

    for entry in events:
        match entry.event:
            case ApprovalRequested() | CallStarted() as event:
                note(event.position, event.name, event.input)
            case CallFinished(position=position, envelope=envelope):
                note(position, envelope.name, envelope.input)
            case _:
                pass
    return found


async def _end(last: RunEvent) -> Turn:
    """How the code ended, as far as it ended by itself."""
    if not isinstance(last.event, RunFinished) or last.event.status not in {"completed", "failed"}:
        await never()
    end = last.event
    if not isinstance(end, RunFinished) or end.error is None:
        return Returned(end.output if isinstance(end, RunFinished) else None)
    details: JsonObject = end.error.details or {}
    if "quota" in details:
        return Exceeded(details["quota"])
    kind = str(details.get("type"))
    _, _, message = end.error.message.partition(f": {kind}: ")
    return Failed(kind, message, details.get("line"))


def _function(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name)
