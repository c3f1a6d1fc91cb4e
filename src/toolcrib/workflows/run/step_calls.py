"""The call of a step: its account, timeout, retries, and its result in a dry run.

Each try is a separate call in the journal: `NAME`, `NAME.try2`, `NAME[3].try2`. All tries have the idempotency key of
the first. A call with a known effect is never retried. A call with an unknown effect is retried only if the step names
its error code or the call may be repeated. The retries of the tool itself come first.
"""

from typing import Any, Final, NamedTuple

import msgspec
import orjson

from toolcrib.contracts import (
    ErrorCode,
    Json,
    JsonObject,
    Principal,
    Reason,
    ToolDefinition,
    ToolEnvelope,
    ToolError,
    ToolRevision,
)
from toolcrib.contracts.workflows import AGENT_HANDLERS, SettledStep, StepRetry, StepStatus, WorkflowStep
from toolcrib.core.executor import CallRequest, may_run_twice
from toolcrib.core.runs import RunContext
from toolcrib.workflows.values.agent_outputs import AgentNodes
from toolcrib.workflows.values.graph import StepNode
from toolcrib.workflows.values.scope import DRY_RUN, arguments_of, output_mapping, output_of
from toolcrib.workflows.values.step_environment import HELD_S, StepEnvironment
from toolcrib.workflows.values.step_errors import StepFailed, denial

_FINAL: Final = frozenset({ErrorCode.VALIDATION_ERROR, ErrorCode.POLICY_DENIED, ErrorCode.AUTH_REQUIRED})
"""What would come again."""


def wait_before_try(retry: StepRetry, tool: ToolDefinition, failure: ToolError, tries: int) -> float | None:
    """Seconds until the next try, or null if there will be none.

    The longer one of the policy's wait and what the other side asks for; one that is longer than `max_s` ends it.

    Args:
        retry: Of the step.
        tool: What was called.
        failure: How the last try failed.
        tries: How many there were, from 1.
    """
    if tries > retry.count or not _is_wanted(retry, tool, failure):
        return None
    wait = max(retry.wait_s(tries), failure.retry_after_s or 0.0)
    return wait if wait <= retry.max_s else None


def _is_wanted(retry: StepRetry, tool: ToolDefinition, failure: ToolError) -> bool:
    safe = may_run_twice(tool)
    if failure.reason is Reason.OUTCOME_UNKNOWN or (failure.effect == "done" and not safe):
        return False
    if retry.codes:
        return failure.code in retry.codes
    is_unknown = failure.effect == "unknown" or failure.reason is Reason.TOOL_TIMEOUT
    if is_unknown and not safe:
        return False
    return failure.code not in _FINAL


_MOST_SHOWN: Final = 200
"""Characters of the arguments in what a dry run says."""


class StepCaller:
    """Makes the calls of one run's steps.

    Args:
        setting: The run.
        agents: Those of its steps that ask agents.
    """

    def __init__(self, setting: StepEnvironment, agents: AgentNodes) -> None:
        self._setting = setting
        self._agents = agents
        self._registered = setting.implementation.handlers

    async def call(self, node: StepNode, names: JsonObject, position: str) -> SettledStep:
        """Call the tool of a step until it succeeds, or is not tried again.

        Args:
            node: The step.
            names: What its expressions can read.
            position: Where it stands in the journal: `NAME`, or `NAME[i]`.

        Raises:
            StepFailed: There is nothing to be called, or an expression has no value.
        """
        step = node.step
        tool = self._tool(node)
        arguments = arguments_of(step, self._registered, names)
        context = self._acting(step)
        mapping = output_mapping(step, self._registered)
        handler = self._setting.handlers.get(step.handler_ref or "")
        if handler is not None:
            settled = (await handler(context, tool, arguments, position)).model_copy(update={"step": step.name})
            if settled.status == "failed":
                return settled
            return settled.model_copy(update={"output": output_of(step, mapping, names, settled.output)})
        envelope, tries = await self._try(context, step, tool, arguments, position)
        facts = _CallFacts(step.name, envelope.position, tries, self._agents.runs_of(node, envelope))
        if envelope.status == "skipped":
            return facts.settled("skipped", reason=_would_call(tool, arguments))
        if not envelope.ok:
            return facts.settled("failed", error=envelope.error)
        lacking = await self._agents.lacking(node, envelope)
        if lacking is not None:
            return facts.settled("failed", error=lacking)
        output = envelope.output if mapping is None else await self._agents.raw_output(node, envelope, position)
        return facts.settled("succeeded", output=output_of(step, mapping, names, output))

    def is_told(self, node: StepNode) -> bool:
        """Whether the envelope of a step's call tells what the step puts out."""
        step = node.step
        is_call = node.callee is not None and step.handler_ref not in self._setting.handlers
        return is_call and output_mapping(step, self._registered) is None

    async def _try(
        self, context: RunContext, step: WorkflowStep, tool: ToolRevision, arguments: JsonObject, position: str
    ) -> tuple[ToolEnvelope, int]:
        """The envelope of the last try, and how many there were."""
        first = call = CallRequest(position, tool.name, arguments, tool.content_hash, timeout_s=step.timeout_s)
        tries = 1
        while True:
            envelope = await context.make(call)
            failure = envelope.error
            wait = None if failure is None else wait_before_try(step.retry, tool.definition, failure, tries)
            if wait is None or self._setting.ending:
                return envelope, tries
            place = f"{position}.try{tries + 1}"
            await context.sleep(place, wait, hold_s=HELD_S)
            if self._setting.ending:
                return envelope, tries
            tries += 1
            call = msgspec.structs.replace(first, position=place, idempotency_key=context.key_of(first))

    def _tool(self, node: StepNode) -> ToolRevision:
        step = node.step
        if node.callee is None:
            raise _nothing_to_call(step)
        registered = self._registered.get(step.handler_ref or "")
        if registered is not None and not registered.enabled:
            message = f"names the handler {step.handler_ref!r}, which is disabled; enable it and publish again"
            raise denial(step.name, Reason.TOOL_DISABLED, message)
        callee = self._setting.callees[node.callee]
        if isinstance(callee, ToolError):
            raise StepFailed(_of_step(callee, step.name))
        return callee

    def _acting(self, step: WorkflowStep) -> RunContext:
        """The run as the one sees it who makes the calls of a step."""
        context = self._setting.context
        if step.principal_ref is None:
            return context
        acting = context.beside()
        acting.principal = self._account(step, step.principal_ref)
        return acting

    def _account(self, step: WorkflowStep, name: str) -> Principal:
        realm = self._setting.context.run.realm
        account = self._setting.accounts.find(realm, name)
        if account is None or not account.enabled:
            state = "does not exist" if account is None else "is disabled"
            message = f"acts as the account {name!r}, which {state} in realm {realm!r}; save it, or enable it"
            raise denial(step.name, Reason.PERMISSION_MISSING, message, account=name)
        return account.principal(realm)


class _CallFacts(NamedTuple):
    """What is known of a step's call, whatever has come of it."""

    step: str
    position: str
    tries: int
    agent_runs: tuple[str | None, ...]

    def settled(self, status: StepStatus, **ending: Any) -> SettledStep:
        """How the step has ended."""
        return SettledStep(
            step=self.step,
            status=status,
            positions=(self.position,),
            tries=self.tries,
            agent_runs=self.agent_runs,
            **ending,
        )


def _nothing_to_call(step: WorkflowStep) -> StepFailed:
    if step.handler_ref in AGENT_HANDLERS:
        message = f"has the handler {step.handler_ref!r} and names no agent; give input/agent_ref the name of one"
        return denial(step.name, Reason.NOT_FOUND, message)
    message = f"names the handler {step.handler_ref!r}, which the workflow was not published with; publish it again"
    return denial(step.name, Reason.NOT_FOUND, message)


def _of_step(failure: ToolError, step: str) -> ToolError:
    details: JsonObject = {**(failure.details or {}), "step": step}
    return failure.model_copy(update={"message": f"step {step!r}: {failure.message}", "details": details})


def _would_call(tool: ToolRevision, arguments: Json) -> str:
    shown = orjson.dumps(arguments).decode()
    if len(shown) > _MOST_SHOWN:
        shown = f"{shown[:_MOST_SHOWN]}…"
    return f"{DRY_RUN}would call {tool.name} with {shown}"
