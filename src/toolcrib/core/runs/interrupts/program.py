"""How a run's program comes to a halt: it ends, or it is suspended until something happens outside."""

from datetime import datetime

from msgspec import Struct

from toolcrib.contracts import Attachment, Json, JsonObject, RunStatus, StopReason, ToolError


class Ended(Struct, frozen=True):
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
