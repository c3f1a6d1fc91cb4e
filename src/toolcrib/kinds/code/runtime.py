"""The program of a code tool: runs the code in a sandbox, and makes the calls that the code requests.

Each call of the code is a call of the run, at the position of its number (`c1`, `c2`…). It is guarded, journaled and
billed like any other call, and may wait for a person; no sandbox exists while it waits. When the run resumes, the code
is executed again from the start, with the recorded envelopes and the same random numbers. If it then requests a
different call, the run ends.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never, cast

from toolcrib.contracts import (
    ErrorCode,
    InvalidDefinition,
    InvalidInput,
    JournalDivergence,
    JsonObject,
    Reason,
    ToolEnvelope,
    ToolError,
    ToolRevision,
    Unavailable,
)
from toolcrib.core.executor import CallRequest, error
from toolcrib.core.executor.envelope import plain
from toolcrib.core.policy import least, screen
from toolcrib.core.registry import Registry
from toolcrib.core.runs import RunContext, RunEnd, holds
from toolcrib.infrastructure.sandbox import (
    CodeJob,
    Exceeded,
    Failed,
    Quota,
    Returned,
    Sandboxes,
    SandboxSession,
    ToolReply,
    ToolRequest,
)
from toolcrib.kinds.code.shape import CodeImplementation


class Code:
    """Runs code tools.

    Args:
        sandbox: Where.
        registry: Finds the tools that the code may call.
    """

    def __init__(self, sandbox: Sandboxes, registry: Registry) -> None:
        self._sandbox = sandbox
        self._registry = registry

    async def __call__(self, context: RunContext, tool: ToolRevision) -> RunEnd:
        """Run the code to its end, or until one of its calls suspends the run."""
        implementation = tool.definition.implementation
        if not isinstance(implementation, CodeImplementation):
            msg = f"tool {tool.ref!r} is of kind {implementation.kind!r}, not code"
            raise InvalidDefinition(msg)
        realm, pins = context.run.realm, context.request.pins
        callees = {
            function: await self._registry.resolve(realm, reference, pins)
            for function, reference in implementation.functions.items()
        }
        context.policy = replace(
            context.policy,
            allowed=frozenset(callee.name for callee in callees.values()),
            side_effects=least(context.policy.side_effects, tool.definition.side_effects),
        )
        try:
            session = await self._sandbox.open(_job(context, implementation), implementation.isolation)
        except Unavailable as problem:
            message = f"{tool.name!r} was not run: {problem}"
            return _end_with_error(error(ErrorCode.SANDBOX_ERROR, Reason.SANDBOX_UNAVAILABLE, message))
        try:
            return await _Execution(context, tool.name, implementation, callees, session).run()
        finally:
            await asyncio.shield(session.close())  # who gives up twice would leave a jail


class _Execution:
    """One execution: turns of the code, and calls between them."""

    def __init__(
        self,
        context: RunContext,
        name: str,
        implementation: CodeImplementation,
        callees: Mapping[str, ToolRevision],
        session: SandboxSession,
    ) -> None:
        self._context = context
        self._name = name
        self._implementation = implementation
        self._callees = callees
        self._session = session

    async def run(self) -> RunEnd:
        turn = await self._session.start()
        calls = 0
        while isinstance(turn, ToolRequest):
            calls += 1
            if calls > self._implementation.limits.tool_calls:
                turn = Exceeded("tool_calls")
            else:
                turn = await self._session.answer(await self._call(calls, turn))
        return self._end(turn)

    async def _call(self, number: int, request: ToolRequest) -> ToolReply:
        callee = self._callees.get(request.function)
        if callee is None:
            return ToolReply(
                failure=f"{ErrorCode.POLICY_DENIED}: {request.function[:100]!r} is none of the code's tools"
            )
        position = f"c{number}"
        try:
            arguments = cast("JsonObject", plain(request.arguments))
        except InvalidInput as problem:
            return ToolReply(failure=f"{ErrorCode.VALIDATION_ERROR}: the arguments of {callee.name!r} are {problem}")
        envelope = await self._context.make(CallRequest(position, callee.name, arguments, callee.content_hash))
        self._check_same(position, request, envelope)
        if envelope.error is not None:
            return ToolReply(failure=f"{envelope.error.code}: {envelope.error.message}")
        return ToolReply(envelope.output)

    def _check_same(self, position: str, request: ToolRequest, envelope: ToolEnvelope) -> None:
        """Refuse code that asks for something else than when the journal was written.

        Raises:
            JournalDivergence: It does.
        """
        expected = screen(self._context.policy.guardrails, "tool_input", request.arguments).value
        if envelope.approved_input is None and not holds(envelope.input, expected):
            msg = (
                f"at {position!r} the code of {self._name!r} has called {envelope.name!r} with other arguments before; "
                "let what it asks for depend on its arguments and its tools only, not on the time or on chance"
            )
            raise JournalDivergence(msg)

    def _end(self, turn: Returned | Failed | Exceeded) -> RunEnd:
        used = self._session.used
        metadata: JsonObject = {
            "stdout": used.printed,
            "sandbox": {
                "wall_s": round(used.wall_s, 3),
                "cpu_s": used.cpu_s,
                "memory_peak_mb": used.memory_peak_mb,
            },
        }
        match turn:
            case Returned():
                return self._end_with_output(turn, metadata)
            case Failed():
                return _end_with_error(self._failure(turn), metadata)
            case Exceeded():
                return _end_with_error(self._excess(turn.quota), metadata)
            case _:
                assert_never(turn)

    def _end_with_output(self, turn: Returned, metadata: JsonObject) -> RunEnd:
        try:
            return RunEnd(output=plain(turn.output), metadata=metadata)
        except InvalidInput as problem:
            refused = Failed("TypeError", f"main returned a value that is not JSON: {problem}")
            return _end_with_error(self._failure(refused), metadata)

    def _failure(self, turn: Failed) -> ToolError:
        where = "" if turn.line is None else f" in line {turn.line}"
        message = f"the code of {self._name!r} failed{where}: {turn.type}: {turn.message}"
        facts: JsonObject = {"type": turn.type, "line": turn.line}
        return error(ErrorCode.SANDBOX_ERROR, Reason.CODE_FAILED, message, **facts)

    def _excess(self, quota: Quota) -> ToolError:
        allowed = getattr(self._implementation.limits, quota)
        message = (
            f"the code of {self._name!r} was stopped at its quota {quota}={allowed:g}; let it do less, or raise it"
        )
        code = ErrorCode.TIMEOUT if quota == "wall_s" else ErrorCode.SANDBOX_ERROR
        return error(code, Reason.SANDBOX_LIMIT_EXCEEDED, message, quota=quota, limit=allowed)


def _job(context: RunContext, implementation: CodeImplementation) -> CodeJob:
    return CodeJob(
        implementation.source,
        cast("JsonObject", context.request.input),
        context.run.created_at,
        seed=context.prior_runs.seed,
        language=implementation.language,
        interpreter=implementation.interpreter,
        functions=tuple(implementation.functions),
        limits=implementation.limits,
    )


def _end_with_error(problem: ToolError, metadata: JsonObject | None = None) -> RunEnd:
    return RunEnd(status="failed", stop_reason="error", error=problem, metadata=metadata or {})
