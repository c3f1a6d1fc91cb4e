"""What a run executes: an async function that touches the world only through its run context.

It may be started again at any time, in any process, from its first line: calls that the journal knows return at once.
So it uses no clock, no randomness and no I/O of its own, and its calls have fixed positions.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from toolcrib.contracts import Json, RunStatus, StopReason, ToolError, ToolRevision

if TYPE_CHECKING:
    from toolcrib.runs.context import RunContext


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program came to its end."""

    output: Json = None
    stop_reason: StopReason = "final_answer"
    status: RunStatus = "completed"
    error: ToolError | None = None
    warnings: tuple[str, ...] = ()


Program: TypeAlias = "Callable[[RunContext, ToolRevision], Awaitable[Ended]]"
"""The code of one kind of run; it gets the pinned revision of the tool that the run executes."""


class Suspended(BaseException):
    """The run cannot go on until one of these signals is there, or until its time.

    Not an `Exception`: no tool and no program may catch it by accident.
    """

    def __init__(self, status: RunStatus, *signals: str, wake_at: datetime | None = None) -> None:
        super().__init__(status, *signals)
        self.status: RunStatus = status
        self.signals = signals
        self.wake_at = wake_at
