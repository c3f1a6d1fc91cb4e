"""The program of a workflow: runs ready steps in parallel until none is left.

Its decisions depend only on the definition, the input, and recorded calls, so a restarted run continues where it was.
The order in which parallel steps ended cannot be derived, but decides which steps could start before a failure and
which alternative came last. It is therefore journaled, and a restarted or replayed run follows it.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from toolcrib.contracts import (
    ErrorCode,
    InvalidDefinition,
    InvalidExpression,
    Json,
    JsonObject,
    NotFound,
    Reason,
    ToolError,
    ToolRevision,
)
from toolcrib.contracts.workflows import STEP_KEY, STEP_SETTLED, SettledStep, WorkflowImplementation
from toolcrib.core.executor import error
from toolcrib.core.expressions import resolve
from toolcrib.core.policy import Accounts, NoAccounts, is_in_service, least
from toolcrib.core.registry import Lock, Registry, SchemaProblem, Transition, callees_without_model, compile_schema
from toolcrib.core.runs import ConcurrentCalls, Pending, RunContext, RunEnd, Suspended, end_after
from toolcrib.workflows.run.reuse import take_up
from toolcrib.workflows.run.step import StepRunner
from toolcrib.workflows.values.graph import StepNode, WorkflowPlan, plan_of
from toolcrib.workflows.values.scope import Scope
from toolcrib.workflows.values.step_environment import Callee, Handling, StepEnvironment, no_handlers
from toolcrib.workflows.values.step_errors import check_size


async def callees_of(context: RunContext, workflow: WorkflowImplementation, registry: Registry) -> Mapping[str, Callee]:
    """The tools of a run by reference. What is wrong with one matters when a step comes to it.

    Args:
        context: Of the run.
        workflow: What it runs.
        registry: Finds revisions, and compares them.
    """
    callees = _Callees(context, workflow, registry)
    return {ref: await callees.of(ref) for ref in workflow.callees}


class _Callees:
    def __init__(self, context: RunContext, workflow: WorkflowImplementation, registry: Registry) -> None:
        self._realm, self._pins = context.run.realm, context.request.pins
        self._workflow = workflow
        self._registry = registry
        self._lock = Lock(workflow, registry, self._realm)

    async def of(self, ref: str) -> Callee:
        """The tool that is called, unless it, or what it calls in its turn, is something else than was published."""
        found = await self._resolve(ref)
        waiting = [found]
        seen = {ref}
        while waiting:
            tool = waiting.pop()
            if isinstance(tool, ToolError):
                return tool
            for inner in callees_without_model(tool.definition) if self._workflow.bound else ():
                if inner not in seen:
                    seen.add(inner)
                    waiting.append(await self._resolve(inner))
        return found

    async def _resolve(self, ref: str) -> Callee:
        if ref not in self._pins:  # it was not there when the run was made
            locked = self._lock.of(ref)
            if locked.tool is None or locked.cause is not None:
                return _refusal(ref, locked.cause or Reason.TOOL_NOT_FOUND, str(locked.reason))
            return locked.tool
        tool = await self._registry.get_revision(self._realm, self._pins[ref])
        bound = self._workflow.bound.get(ref)
        if bound is not None and "workflow_step" not in tool.definition.available_as:
            reason = f"tool {tool.ref!r} is not available as workflow_step any more; publish the workflow without it"
            return _refusal(ref, Reason.TOOL_NOT_ALLOWED, reason)
        if bound in (None, tool.content_hash) or not is_in_service(tool):
            return tool
        return await self._check_drift(ref, bound, tool)

    async def _check_drift(self, ref: str, bound: str, tool: ToolRevision) -> Callee:
        """A newer revision than the bound one, if the lock lets it pass."""
        try:
            before = await self._registry.get_revision(self._realm, bound)
        except NotFound:
            reason = f"what tool {tool.name!r} was when the workflow was published is not known any more"
        else:
            way = Transition(self._registry, before, tool)
            if not way.obstacles:
                return tool
            reason = f"tool {tool.name!r} has changed ({way.words}), and what it was can not be used any more"
        return _refusal(ref, Reason.TOOL_DRIFTED, f"{reason}; publish the workflow again")


def _refusal(ref: str, cause: Reason, reason: str) -> ToolError:
    return error(ErrorCode.POLICY_DENIED, cause, reason, tool=ref)


class EndsInOrder:
    """Ends that have come and are not dealt with yet.

    Args:
        recorded: Names of the steps that had ended when this process took the run, in order.
    """

    def __init__(self, recorded: Iterable[str]) -> None:
        self._recorded = deque(recorded)
        self._come: dict[str, SettledStep] = {}

    def __len__(self) -> int:
        return len(self._come)

    def add(self, name: str, settled: SettledStep) -> None:
        """A step has come to its end."""
        self._come[name] = settled

    def next(self, underway: Collection[str]) -> tuple[str, SettledStep] | None:
        """The end that is next; null if it is to be waited for.

        Args:
            underway: Names of the steps that have begun and not ended.
        """
        while self._recorded:
            name = self._recorded[0]
            if name in self._come:
                break
            if name in underway:
                return None
            self._recorded.popleft()  # it never began, or was dealt with as it did
        if not self._come:
            return None
        name = self._recorded[0] if self._recorded else next(iter(self._come))
        return name, self._come.pop(name)


_MOST_TOLD = 5
"""Problems of an output in one message."""
_PLANS = 256
"""Graphs that are kept, those that were used last."""


class Workflow:
    """Runs workflows.

    Args:
        registry: Finds the tools of the steps.
        handling: Has the handlers that come with the crib.
        accounts: Finds the service accounts that steps act as; there are none if null.
    """

    def __init__(self, registry: Registry, handling: Handling = no_handlers, accounts: Accounts | None = None) -> None:
        self._registry = registry
        self._handling = handling
        self._accounts = accounts or NoAccounts()
        self._plans: dict[str, WorkflowPlan] = {}

    async def __call__(self, context: RunContext, tool: ToolRevision) -> RunEnd:
        """Run to the end, or until nothing of it can go on without somebody outside."""
        implementation = tool.definition.implementation
        if not isinstance(implementation, WorkflowImplementation):
            return _not_run(tool, tool.status_message or f"it is of kind {implementation.kind!r}")
        try:
            plan = self._plan(tool.content_hash, implementation)
        except (InvalidDefinition, InvalidExpression) as problem:
            return _not_run(tool, f"{problem}; correct it and publish it again")
        await take_up(context, tool, plan, self._registry)
        callees = await callees_of(context, implementation, self._registry)
        context.policy = replace(
            context.policy,
            allowed=frozenset(callee.name for callee in callees.values() if isinstance(callee, ToolRevision)),
            side_effects=least(context.policy.side_effects, tool.definition.side_effects),
        )
        setting = StepEnvironment(context, tool, implementation, callees, self._handling(context), self._accounts)
        return await _Execution(setting, plan).run()

    def _plan(self, content_hash: str, implementation: WorkflowImplementation) -> WorkflowPlan:
        """The graph, read once for all runs of a revision: of 1,000 steps that takes as long as 100 calls."""
        plan = self._plans.pop(content_hash, None) or plan_of(implementation)
        self._plans[content_hash] = plan
        if len(self._plans) > _PLANS:
            del self._plans[next(iter(self._plans))]
        return plan


class _Execution:
    """One run of one workflow in this process."""

    def __init__(self, setting: StepEnvironment, plan: WorkflowPlan) -> None:
        self._setting = setting
        self._context = context = setting.context
        self._plan = plan
        taken_over = context.prior_runs.taken_over
        self._stands = {} if taken_over is None else taken_over.steps
        self._scope = Scope(context.request.input)
        self._stepping = StepRunner(setting, plan, self._scope)
        self._settled: dict[str, SettledStep] = {}
        self._open = {name: len(node.waits_for) for name, node in plan.nodes.items()}
        self._ready = deque(plan.roots)
        self._running: ConcurrentCalls[StepNode, SettledStep] = context.underway()
        self._underway: set[str] = set()
        """Names of the same."""
        keys = (key for key in context.progress_keys if key.startswith(STEP_KEY))
        self._ends = EndsInOrder([key.removeprefix(STEP_KEY) for key in keys])
        self._failure: ToolError | None = None

    async def run(self) -> RunEnd:
        self._context.partial = self._partial
        await self._begin_all()
        while self._running or self._ends:
            for node, ended in await self._next():
                self._underway.discard(node.step.name)
                self._ends.add(node.step.name, ended.result())
            while (end := self._ends.next(self._underway)) is not None:
                name, settled = end
                await self._settle(self._plan.nodes[name], settled)
                await self._begin_all()
        return self._end()

    async def _next(self) -> Sequence[tuple[StepNode, Pending[SettledStep]]]:
        """The steps that have ended since; a run that has failed gives up what waits for somebody outside."""
        try:
            return await self._running.next()
        except Suspended:
            if self._failure is None:
                raise
            self._running = self._context.underway()
            self._underway.clear()
            return ()

    async def _begin_all(self) -> None:
        """Begin what is ready, unless the run has failed."""
        while self._ready and self._failure is None:
            await self._begin(self._plan.nodes[self._ready.popleft()])

    async def _begin(self, node: StepNode) -> None:
        origin = self._origin(node)
        kept_out = (
            self._stands.get(node.step.name)
            or self._settle_by_predecessors(node)
            or self._stepping.settle_by_condition(node, origin)
        )
        if kept_out is not None:
            await self._settle(node, kept_out)
            return
        self._underway.add(node.step.name)
        self._running.add(node, self._context.start(self._stepping.run(node, origin)))

    def _origin(self, node: StepNode) -> str | None:
        """The step that has failed and gone to this one; of several the first one of the definition."""
        if not node.comes_from:
            return None
        return next((name for name in self._plan.nodes if name in node.comes_from and self._has_failed(name)), None)

    def _settle_by_predecessors(self, node: StepNode) -> SettledStep | None:
        """How a step ends that does not run because of what became of the steps before it."""
        name, join = node.step.name, node.step.join
        if node.comes_from:
            if not any(self._has_failed(origin) for origin in node.comes_from):
                return SettledStep(step=name, status="cut_off", reason="no step has gone to it")
            before = node.waits_for - node.comes_from
        else:
            before = node.waits_for
        if join == "always" or not before:
            return None
        if join == "any":
            if any(self._settled[each].ok for each in before):
                return None
            return SettledStep(step=name, status="cut_off", reason="none of the steps before it has succeeded")
        outputs = {self._output_name(each) for each in before if self._settled[each].ok}
        unwell = (each for each in sorted(before) if not self._is_well(each))
        cut = next((each for each in unwell if self._output_name(each) not in outputs), None)
        if cut is None:
            return None
        return SettledStep(step=name, status="cut_off", reason=f"step {cut!r} is {self._settled[cut].status}")

    def _output_name(self, name: str) -> str:
        """Steps that are known by one name are alternatives, and one of them is enough."""
        return self._plan.nodes[name].step.known_as

    def _is_well(self, name: str) -> bool:
        settled = self._settled[name]
        return settled.ok or settled.status == "skipped" or self._is_forgiven(name)

    def _is_forgiven(self, name: str) -> bool:
        return self._has_failed(name) and self._plan.nodes[name].step.on_error == "continue"

    def _has_failed(self, name: str) -> bool:
        return self._settled[name].status == "failed"

    async def _settle(self, node: StepNode, settled: SettledStep) -> None:
        """Write down how a step has ended, and find what can run now."""
        name = node.step.name
        self._settled[name] = settled
        entry = await self._stepping.settle(node, settled)
        await self._context.emit(f"{STEP_KEY}{name}", STEP_SETTLED, entry)
        if settled.error is not None and self._has_failed(name) and node.step.on_error == "fail" and not self._failure:
            self._failure = self._stepping.failure(node, settled.error)
            self._setting.ending = True
            self._context.stop_waiting()
        for follower in node.followers:
            self._open[follower] -= 1
            if not self._open[follower]:
                self._ready.append(follower)

    def _end(self) -> RunEnd:
        if self._failure is not None:
            end = end_after(self._failure, self._context.request)
            return structs.replace(end, partial=self._partial())
        lacking = self._stepping.lacking("output")
        if lacking is not None:
            return RunEnd(partial=self._partial(), warnings=(lacking,))
        try:
            output = self._output()
        except InvalidExpression as problem:
            return self._without_output(Reason.REFERENCE_UNRESOLVED, f"output has no value: {problem}")
        wrong = self._wrong_with(output)
        if wrong:
            problems = "; ".join(map(str, wrong[:_MOST_TOLD]))
            return self._without_output(
                Reason.OUTPUT_SCHEMA_MISMATCH, f"output does not match output_schema: {problems}"
            )
        return RunEnd(output=output)

    def _without_output(self, reason: Reason, why: str) -> RunEnd:
        failure = error(ErrorCode.VALIDATION_ERROR, reason, f"the steps have succeeded, but {why}")
        return RunEnd(partial=self._partial(), status="failed", stop_reason="error", error=failure)

    def _wrong_with(self, output: Json) -> Sequence[SchemaProblem]:
        """Why it puts out something else than its author has promised."""
        promised = self._setting.tool.definition.output_schema
        if promised is None or "output_schema" in self._setting.implementation.derived:
            return ()
        return compile_schema(promised).problems(output)

    def _output(self) -> Json:
        output = self._setting.implementation.output
        if output is not None:
            return check_size(resolve(output, self._scope.names))
        return {name: self._settled[name].output for name in self._plan.ends}

    def _partial(self) -> JsonObject:
        """What there is when a run ends before its end: what became of each step that has ended."""
        return {
            "steps": {
                name: {"status": settled.status, "output": settled.output} for name, settled in self._settled.items()
            }
        }


def _not_run(tool: ToolRevision, why: str) -> RunEnd:
    """The end of a run whose definition this release cannot read or run; it is resumed when that is mended."""
    message = f"workflow {tool.ref!r} cannot be run: {why}. Resume the instance when it can"
    failure = error(ErrorCode.VALIDATION_ERROR, Reason.TOOL_BLOCKED, message, tool=tool.ref)
    return RunEnd(status="failed", stop_reason="error", error=failure)
