"""How a program halts, and what it can read of other, ended runs and of conversations.

Journals of ended runs do not change. A program records what it read of a run that may not have ended
(`RunContext.once`). The run ids of turns follow from the conversation and the turn's number, so creating the run
claims the turn, and no other list of turns is needed.
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from toolcrib.contracts import Attachment, Json, JsonObject, Run, RunEvent, RunStatus, Signal, StopReason, ToolError


class RunEnd(Struct, frozen=True):
    """How a program came to its end."""

    output: Json = None
    attachments: tuple[Attachment, ...] = ()
    stop_reason: StopReason = "final_answer"
    status: RunStatus = "completed"
    error: ToolError | None = None
    warnings: tuple[str, ...] = ()
    metadata: JsonObject = {}
    """What else there is to say of it, by name; it stands in the metadata of the call that the run is."""


class Suspended(BaseException):
    """The run cannot go on until one of these signals is there, or until its time.

    Not an `Exception`: no tool and no program may catch it by accident.

    Args:
        status: How the run stands meanwhile.
        signals: Their names.
        wake_at: The moment; null if it does not matter how long it takes.
        nested: It is a nested run that waits, which goes on only when its callers wait too.
    """

    def __init__(self, status: RunStatus, *signals: str, wake_at: datetime | None = None, nested: bool = False) -> None:
        super().__init__(status, *signals)
        self.status: RunStatus = status
        self.signals = signals
        self.wake_at = wake_at
        self.nested = nested


class EndedRuns(Protocol):
    """The reading side of a journal."""

    async def run(self, run_id: str) -> Run:
        """The run's row.

        Raises:
            NotFound: No such run.
        """
        ...

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
        """A page of runs, newest first; see `Journal.runs`."""
        ...

    async def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[RunEvent]:
        """The events with numbers above `after`, in order; none of a run that is not there."""
        ...

    async def signals(self, run_id: str) -> Mapping[str, Signal]:
        """What was left for the run, by name: for one that has ended, also after its end."""
        ...


def turn_run_id(conversation_id: str, turn: int) -> str:
    """The id of the run that is a turn of a conversation.

    Args:
        conversation_id: The conversation.
        turn: Its place, from 1.
    """
    return "run_" + hashlib.sha256(f"{conversation_id}/turns/{turn}".encode()).hexdigest()[:32]
