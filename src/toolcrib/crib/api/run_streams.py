"""A run that is started and followed in one block: its events, the text of its answer, and its result."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, Self

from typing_extensions import TypeVar

from toolcrib import contracts
from toolcrib.contracts import Conflict, InvalidInput
from toolcrib.core import runs

if TYPE_CHECKING:
    from types import TracebackType

    from toolcrib.contracts import Json, JsonObject, StreamEvent
    from toolcrib.core.runs import Result
    from toolcrib.crib.agents import Executions

OutputT_co = TypeVar("OutputT_co", covariant=True, default=Any)

_SPOKEN: Final = re.compile(r"t\d+\.llm|(format|answer)(\.fix\d+)?")
"""Positions of requests whose text is for the caller: turns, and the final answer."""


class HandleCrib(Protocol):
    """What handles and their streams need of a crib."""

    @property
    def executions(self) -> Executions:
        """Starts, follows and reads runs."""
        ...

    async def invoke(self, ref: str, arguments: JsonObject, /) -> Result[Json]:
        """Run a tool."""
        ...

    async def submit(self, ref: str, arguments: JsonObject, /) -> str:
        """Leave a run to a serving engine."""
        ...

    async def resume(self, run_id: str, /) -> Result[Json]:
        """Drive a run on."""
        ...

    async def cancel(self, run_id: str, /) -> bool:
        """End a run."""
        ...


class RunStream(Generic[OutputT_co]):
    """A run while it is active: iterate over its events, over the text of its answer, or wait for its result.

    The block owns the run: leaving it early, by `break`, `return` or an exception, cancels the run. A run that has
    ended, or that waits for a person or a client, stays as it is. To follow a run without owning it, `submit` it and
    use `crib.stream(run_id)`. Nothing is received twice: a second loop continues where the first one stopped.

    Example:
        async with desk.stream("Which deals has Acme?") as stream:
            async for piece in stream.text():
                print(piece, end="", flush=True)
            result = await stream.result()
        print(result.cost_usd)
    """

    def __init__(
        self,
        crib: HandleCrib,
        begin: Callable[[], Awaitable[str]],
        typed: Callable[[Result[Json]], Result[OutputT_co]],
    ) -> None:
        self._crib = crib
        self._begin = begin
        self._typed = typed
        self._run_id = ""
        self._place = runs.BEGINNING
        self._is_kept = False
        """Whether leaving the block leaves the run as it is: it has ended, or a person or a client acts next."""
        self._is_over = False
        self._loops: list[AsyncGenerator[StreamEvent]] = []

    @property
    def run_id(self) -> str:
        """The id of the run, inside of the block.

        Raises:
            InvalidInput: The block was not entered.
        """
        if not self._run_id:
            msg = "the stream has no run yet; enter it first: async with agent.stream(...) as stream"
            raise InvalidInput(msg)
        return self._run_id

    async def __aenter__(self) -> Self:
        """Create the run; it is driven as soon as it is followed."""
        if self._run_id:
            msg = f"this stream was entered before, for run {self._run_id}; call .stream(...) again for another run"
            raise Conflict(msg)
        self._run_id = await self._begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Cancel the run if it is still active."""
        for loop in self._loops:
            with suppress(RuntimeError):  # another task is in it, and finds its end itself
                await loop.aclose()
        if not self._is_kept:
            await asyncio.shield(asyncio.ensure_future(self._cancel()))

    def __aiter__(self) -> AsyncGenerator[StreamEvent]:
        """The events that were not received yet, until the run has ended or waits."""
        loop = self._events()
        self._loops.append(loop)
        return loop

    async def _events(self) -> AsyncGenerator[StreamEvent]:
        if self._is_over:
            return
        follow = self._crib.executions.follow
        async with aclosing(follow(self.run_id, after=self._place, drive=True)) as messages:
            async for place, event in messages:
                self._place = place
                self._is_over = isinstance(event, contracts.StreamDone | contracts.StreamFailed)
                self._is_kept = (
                    self._is_kept
                    or self._is_over
                    or isinstance(event, contracts.ApprovalPending | contracts.HandoffPending)
                )
                yield event

    async def text(self, *, whole: bool = False) -> AsyncGenerator[str]:
        """The text of the answer in pieces, as the model writes it.

        Thinking, plans and nested runs are left out. What the model says before its calls is told too, because only the
        whole answer shows that calls follow: a paragraph for each turn. If an attempt breaks off and the next one says
        the same, it is not told twice.

        Args:
            whole: Yield the whole text of the last turn so far, each time, instead of pieces: text of attempts that
                broke off and of turns that made calls is replaced.

        Example:
            async with desk.stream("Which deals has Acme?") as stream:
                async for piece in stream.text():
                    print(piece, end="", flush=True)
        """
        told = ToldText()
        async for event in self:
            if isinstance(event, contracts.TextDelta) and _SPOKEN.fullmatch(event.position):
                piece = told.add(event)
                if whole:
                    yield told.attempt
                elif piece:
                    yield piece

    async def result(self) -> Result[OutputT_co]:
        """The result, when the run has ended or waits; events that were not received are passed over.

        Example:
            async with desk.stream("Which deals has Acme?") as stream:
                result = await stream.result()
            print(result.output)
        """
        async for _ in self:
            pass
        return self._typed(await self._crib.executions.result(self.run_id))

    async def _cancel(self) -> None:
        state = await self._crib.executions.result(self.run_id)
        if state.status in contracts.ENDED | contracts.WAITING:
            return
        with suppress(Conflict):  # it has ended since
            await self._crib.cancel(self.run_id)


class ToldText:
    """What was told of the text of turns, so that a new attempt does not tell it again."""

    def __init__(self) -> None:
        self.attempt = ""
        """The text of the current attempt."""
        self._told = ""
        """The text of the current turn that was told."""
        self._position: str = ""
        self._number: int = 0

    def add(self, delta: contracts.TextDelta) -> str:
        """What is new to the reader; empty if it was told before."""
        gap = ""
        if delta.position != self._position:
            gap = "\n\n" if self._told else ""
            self._position, self._number = delta.position, delta.number
            self.attempt = self._told = ""
        elif delta.number != self._number:
            self._number, self.attempt = delta.number, ""
        self.attempt += delta.text
        if self._told.startswith(self.attempt):
            return ""
        if self.attempt.startswith(self._told):
            piece, self._told = self.attempt[len(self._told) :], self.attempt
            return gap + piece
        self._told = self.attempt
        return f"\n\n{self.attempt}"
