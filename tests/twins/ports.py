"""The executor's ports, answered by dictionaries and functions that remember what they were asked."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TypeAlias

from toolcrib.contracts import (
    ApprovalDecision,
    ApprovalRequested,
    CallStarted,
    ClientResult,
    FailedCall,
    Fenced,
    JsonObject,
    Principal,
    RunResult,
    ToolEnvelope,
    ToolRevision,
)
from toolcrib.core.executor import CallerQuestion, Dispatch, LiveCall, Outcome
from toolcrib.core.runs import TokenHub

Behaviour: TypeAlias = Callable[[Dispatch], Outcome | Awaitable[Outcome]]
"""Runs a tool; raises as a runtime would."""


def echo(dispatch: Dispatch) -> Outcome:
    """The behaviour of a tool whose output is its input."""
    return Outcome(dispatch.input)


class FunctionDispatcher:
    """Runs every tool by one function, and keeps what it was asked for.

    Args:
        behaviour: Gets the dispatch, returns an `Outcome` or a coroutine of one; by default the input is the output.
    """

    def __init__(self, behaviour: Behaviour = echo) -> None:
        self.behaviour = behaviour
        self.dispatched: list[Dispatch] = []

    async def dispatch(self, dispatch: Dispatch) -> Outcome:
        """Execute once."""
        self.dispatched.append(dispatch)
        result = self.behaviour(dispatch)
        return await result if inspect.isawaitable(result) else result


class RecordingJournal:
    """A run's side of a call: answers at once, and keeps all that it was told.

    Every answer first gives others a turn, so that a caller who forgets to await is found out.
    """

    def __init__(self) -> None:
        self.intents: list[CallStarted] = []
        self.requests: list[ApprovalRequested] = []
        self.handed: list[ToolEnvelope] = []
        self.spawned: list[tuple[str, str, JsonObject]] = []
        self.fenced = False
        """Another process has the run."""
        self.refusal: BaseException | None = None
        """Raised instead of recording an intent."""
        self.decide: Callable[[ApprovalRequested], ApprovalDecision | None] = approve
        self.perform: Callable[[ToolEnvelope], ClientResult] = lambda prepared: ClientResult(output=prepared.output)
        self.prepared: dict[str, ToolEnvelope] = {}
        """What was handed to clients in an earlier life of the run, by position."""
        self.failed: list[FailedCall] = []
        """Calls for which a fallback was started, in order."""
        self.failures: dict[str, FailedCall] = {}
        """Calls for which one was started in an earlier life of the run, by position."""
        self.tracebacks: dict[str, str] = {}
        """Of exceptions that tools raised, by position."""
        self.child: RunResult = RunResult(run_id="child", status="completed")

    async def fence(self) -> None:
        """Nobody else has the run, unless `fenced` says so."""
        await asyncio.sleep(0)
        if self.fenced:
            raise Fenced("another process has the run")

    async def intend(self, intent: CallStarted) -> None:
        """Record the intent."""
        await asyncio.sleep(0)
        if self.refusal is not None:
            raise self.refusal
        self.intents.append(intent)

    async def confirm(self, request: ApprovalRequested) -> ApprovalDecision | None:
        """Ask `decide`."""
        await asyncio.sleep(0)
        self.requests.append(request)
        return self.decide(request)

    async def ask_caller(self, position: str, question: CallerQuestion) -> str | None:
        """Nobody answers."""
        del position, question
        return None

    async def hand_off(self, prepared: ToolEnvelope) -> ClientResult:
        """Let `perform` act."""
        await asyncio.sleep(0)
        self.handed.append(prepared)
        return self.perform(prepared)

    def find_client_call(self, position: str) -> ToolEnvelope | None:
        """Ask `prepared`."""
        return self.prepared.get(position)

    def live_call(self, position: str, attempt: int) -> AbstractContextManager[LiveCall]:
        """Show it to nobody."""
        return TokenHub().call("run", 1, attempt)

    def keep_traceback(self, position: str, text: str) -> None:
        """Keep it in `tracebacks`."""
        self.tracebacks[position] = text

    def find_failed_call(self, position: str) -> FailedCall | None:
        """Ask `failures`."""
        return self.failures.get(position)

    async def spawn(
        self,
        position: str,
        tool: ToolRevision,
        arguments: JsonObject,
        *,
        attempt: int = 1,
        instead_of: FailedCall | None = None,
        timeout_s: float | None = None,
    ) -> RunResult:
        """Return `child`."""
        await asyncio.sleep(0)
        if instead_of is not None:
            self.failed.append(instead_of)
        self.spawned.append((position, tool.name, arguments))
        return self.child


def approve(request: ApprovalRequested) -> ApprovalDecision:
    """The answer of a person who agrees to what was shown."""
    return ApprovalDecision(
        approved=True,
        arguments_hash=request.arguments_hash,
        content_hash=request.content_hash,
        policy_hash=request.policy_hash,
    )


class DictSecrets:
    """Secrets by reference."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self.values = dict(values or {})
        self.asked: list[tuple[str, str]] = []
        """References and principals, in order."""

    async def resolve(self, reference: str, principal: Principal, hosts: Sequence[str] = ()) -> str | None:
        """The value of a reference."""
        del hosts
        self.asked.append((reference, principal.id))
        return self.values.get(reference)


class DictTools:
    """Tools by realm and name; a version must match exactly."""

    def __init__(self, *tools: ToolRevision) -> None:
        self._tools = {(tool.realm, tool.name): tool for tool in tools}

    def find(self, realm: str, name: str, version: str | None) -> ToolRevision | None:
        """The tool of that name, if its version is the one that is asked for."""
        tool = self._tools.get((realm, name))
        return tool if tool is not None and version in (None, tool.version) else None
