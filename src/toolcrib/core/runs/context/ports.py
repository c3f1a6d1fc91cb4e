"""Data and ports that a run context gets from the engine; no behaviour."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from msgspec import Struct

from toolcrib.contracts import Event, FailedCall, Json, JsonObject, Signal, ToolEnvelope, ToolRevision
from toolcrib.core.executor import CallContext, CallRequest, Clock
from toolcrib.core.runs.context.pending import Pause, Sleep
from toolcrib.core.runs.interrupts.recovery import InterruptedCalls
from toolcrib.core.runs.interrupts.suspension import EndedRuns

if TYPE_CHECKING:
    from toolcrib.core.runs.models.live import TokenHub


class Nested(Struct, frozen=True):
    """A run that a call starts."""

    position: str
    tool: ToolRevision
    arguments: JsonObject
    attempt: int = 1
    instead_of: FailedCall | None = None
    timeout_s: float | None = None
    """Seconds that its caller gives it."""


Learn: TypeAlias = Callable[[str, str, Callable[[], Awaitable[Json]]], Awaitable[Json]]
"""Finds something out for a run: its id, the key of what it wants to know, and how it would find out."""


async def observe_now(run_id: str, key: str, make: Callable[[], Awaitable[Json]]) -> Json:
    """What is found out at this moment."""
    del run_id, key
    return await make()


Foretell: TypeAlias = Callable[[str], Sequence[Event] | None]
"""What was recorded of a run after what its journal has: null unless it is replayed."""


def nothing_foretold(run_id: str) -> Sequence[Event] | None:
    """Nobody knows what comes next."""
    del run_id
    return None


class Executes(Protocol):
    """What runs calls: the executor, or in a replay nobody."""

    async def execute(self, call: CallRequest, context: CallContext) -> ToolEnvelope:
        """Run one call to its end."""
        ...

    def passes(self, call: CallRequest, context: CallContext) -> bool:
        """Whether a call would run, without anybody being asked."""
        ...


class Texts(Protocol):
    """Large texts by their digests: a store's blobs, or what a replay has of them."""

    async def put(self, data: bytes, *, realm: str, made_by: str, content_type: str = "application/json") -> str:
        """Keep a text; returns its digest."""
        ...

    async def get(self, realm: str, digest: str) -> bytes:
        """The text.

        Raises:
            NotFound: This realm has nothing of that digest.
        """
        ...


class EnginePorts(Struct, frozen=True):
    """What the contexts of all runs of an engine need, handed in by the engine."""

    executor: Executes
    in_doubt: InterruptedCalls
    blobs: Texts
    clock: Clock
    past: EndedRuns
    """Reads other runs."""
    live: "TokenHub"
    """Shows what models say and tools yield to those who follow a run."""
    learn: Learn = observe_now
    """Finds out what may be different the next time."""
    foretell: Foretell = nothing_foretold
    """Says what comes next in a replay."""
    pause: Pause | None = None
    """Lets time pass between two looks for signals; the clock does if null."""
    in_recorded_order: bool = False
    """Calls wait for their place in a recording, so for no lane: one that was cut off would keep its lane for ever."""


class RunPorts(Protocol):
    """What the context of one run needs of the engine."""

    @property
    def engine(self) -> EnginePorts:
        """What all runs need."""
        ...

    @property
    def sleep(self) -> Sleep | None:
        """Sleeps through what is left of a wait; the clock does if null."""
        ...

    async def signal(self, name: str) -> Signal | None:
        """The signal of a name, if it was left."""
        ...

    async def arrived(self) -> Collection[str]:
        """Names of those that were left."""
        ...

    async def leave(self, signal: Signal) -> bool:
        """Leave a signal for the run itself."""
        ...

    async def abandon(self, child_id: str) -> None:
        """End a nested run that nobody waits for any more; one that has ended stays as it is."""
        ...

    async def fence(self) -> None:
        """Raise `Fenced` if another process may have the run; asked when an intent is durable, before its effect."""
        ...

    def suspends(self) -> bool:
        """Whether the run is suspended when nothing of it works any more; in a replay, whether it was."""
        ...
