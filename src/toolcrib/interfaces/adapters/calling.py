"""Calls that other frameworks make of a crib's tools: which are offered, and what a model hears of the result."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec
import orjson

from toolcrib.contracts import Conflict, Json, JsonObject, NotFound, Principal, ToolRevision, Unavailable
from toolcrib.contracts.base.principals import LOOKS
from toolcrib.core.export import drop_nulls, export_names, select_available
from toolcrib.core.policy import permits
from toolcrib.core.runs import Result
from toolcrib.crib import ActingCrib

T = TypeVar("T")
_WAITS: Final = {
    "queued": "waits for a worker",
    "running": "still runs",
    "awaiting_approval": "waits for a person to approve it",
    "awaiting_client": "waits for a client to act",
    "awaiting_answer": "waits for the answer to a question",
}


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool of a crib as another framework has it."""

    name: str
    """As `crib.export` names it."""
    ref: str
    """As it was asked for: `name` or `name@range`."""
    tool: ToolRevision
    """What the reference named when the tool was offered."""


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """What came of a call."""

    run_id: str
    output: Json
    """Null if it failed."""
    code: str | None
    """Of the error, or the status of a run that waits; null if it succeeded."""
    message: str
    """The output as text, or why there is none."""
    envelope: JsonObject
    """The envelope as JSON; only the `run_id` if the call waits."""

    @property
    def ok(self) -> bool:
        """Whether there is an output."""
        return self.code is None

    @property
    def explanation(self) -> str:
        """Why there is no output, for a model."""
        return f"{self.code}: {self.message}"


async def find_offered(crib: ActingCrib, names: Sequence[str]) -> list[OfferedTool]:
    """The tools that the principal of a crib may execute, sorted by name.

    Args:
        crib: Acts as the principal.
        names: `name` or `name@range`; if none is given, every tool that is available to agents.

    Raises:
        NotFound: There is no such tool, or the principal may not execute it.
    """
    who = await crib.authorize(newest=True)
    exported = export_names(sorted(crib.registry.names(who.realm)))
    if names:
        found = [(name, crib.registry.require(who.realm, name)) for name in names]
        for name, tool in found:
            _check_offered(name, tool, who)
    else:
        available = select_available(crib.registry.current(who.realm), "universal")
        found = [(tool.name, tool) for tool in available if _is_offered(tool, who)]
    return sorted((OfferedTool(exported[tool.name], ref, tool) for ref, tool in found), key=lambda one: one.name)


async def call_offered(crib: ActingCrib, offered: OfferedTool, arguments: JsonObject) -> CallAnswer:
    """Call a tool once, as a run of the crib's principal.

    Args:
        crib: Acts as the principal.
        offered: The tool; the call gets the version that its reference names now.
        arguments: As a model wrote them. Nulls for optional properties count as absent.
    """
    given = drop_nulls(arguments, offered.tool.definition.input_schema)
    result = await crib.invoke(offered.ref, given, as_call=True)
    envelope: JsonObject = {"run_id": result.run_id}
    if result.envelopes:
        envelope = {**msgspec.to_builtins(result.envelopes[-1]), "run_id": result.run_id}
    if result.ok:
        return CallAnswer(result.run_id, result.output, None, as_text(result.output), envelope)
    code, message = _failure(offered.tool.name, result)
    return CallAnswer(result.run_id, None, code, message, envelope)


def as_text(output: Json) -> str:
    """An output as text for a model: a text as it is, everything else as JSON."""
    return output if isinstance(output, str) else orjson.dumps(output).decode()


class HomeLoop:
    """The event loop of a crib, for calls that come from other threads and loops.

    It is the loop that runs when this is created.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Await work in the crib's loop, from whichever loop runs."""
        if asyncio.get_running_loop() is self._loop:
            return await work()
        return await asyncio.wrap_future(self._submit(work))

    def run_blocking(self, work: Callable[[], Awaitable[T]]) -> T:
        """Wait for work in the crib's loop.

        Raises:
            Conflict: This is the thread of that loop, which could not go on meanwhile.
            Unavailable: That loop has ended.
        """
        if _running() is self._loop:
            raise Conflict("a synchronous call would block the event loop of the crib; call the tool asynchronously")
        if not self._loop.is_running() and not self._loop.is_closed() and _running() is None:
            return self._loop.run_until_complete(self._in_loop(work))
        return self._submit(work).result()

    def _submit(self, work: Callable[[], Awaitable[T]]) -> Future[T]:
        if not self._loop.is_running():
            raise Unavailable("the event loop of the crib does not run any more; load the tools in one that does")
        return asyncio.run_coroutine_threadsafe(self._in_loop(work), self._loop)

    async def _in_loop(self, work: Callable[[], Awaitable[T]]) -> T:
        return await work()


def _running() -> Any:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _is_offered(tool: ToolRevision, who: Principal) -> bool:
    definition = tool.definition
    return (
        tool.status != "blocked"
        and definition.enabled
        and "tool" in definition.available_as
        and permits(who.grants, definition.security())
    )


def _check_offered(name: str, tool: ToolRevision, who: Principal) -> None:
    """Refuse a tool that a principal may not execute; one that it may not see is as if there were none."""
    if _is_offered(tool, who):
        return
    definition = tool.definition
    if not any(permits(who.grants, definition.security(verb)) for verb in LOOKS):
        raise NotFound(f"there is no tool {name!r}")
    msg = f"tool {name!r} cannot be called by {who.id!r}; enable it, or grant {definition.security()!r}"
    raise NotFound(msg)


def _failure(name: str, result: Result) -> tuple[str, str]:
    if result.error is not None:
        partial = "" if result.partial is None else f"\nDone until then: {as_text(result.partial)}"
        return str(result.error.code), f"{result.error.message}{partial}"
    waits = _WAITS.get(result.status)
    if waits is None:
        return result.status, f"run {result.run_id} of {name!r} ended without an answer ({result.stop_reason})"
    return result.status, f"{name!r} {waits} (run {result.run_id}). Do not call it again; tell the user."
