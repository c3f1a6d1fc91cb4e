"""What a run reuses from the run that it continues, computed once and stored.

A resumed run reuses every step that has ended, unless an earlier step runs again. A rerun from a step reuses
everything except that step and those after it. In steps that run again, successful calls are not repeated, and
repeated calls keep their idempotency key.
"""

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from toolcrib.contracts import (
    Conflict,
    Json,
    JsonObject,
    NotFound,
    Run,
    RunEvent,
    RunFinished,
    ToolcribError,
    ToolRevision,
)
from toolcrib.contracts.workflows import TAKEN_UP, EarlierCall, Rerun, SettledStep, Takeover, WorkflowImplementation
from toolcrib.core.registry import Registry
from toolcrib.core.runs import History, ReusedCalls, RunContext, as_settled
from toolcrib.workflows.run.instances import read_settled_steps, step_of
from toolcrib.workflows.values.graph import WorkflowPlan


async def take_up(context: RunContext, tool: ToolRevision, plan: WorkflowPlan, registry: Registry) -> None:
    """If the run takes up another one, its context knows from now on which steps stand and what was called.

    Raises:
        NotFound: The run that it takes up is gone.
        Conflict: That has not ended, or is no run of a workflow.
    """
    rerun = context.request.rerun
    if rerun is None:
        return

    async def find() -> Json:
        facts = await _Earlier(context, rerun, registry).facts(tool, plan)
        digest = await context.keep(facts.model_dump_json(exclude_defaults=True).encode())
        link: JsonObject = rerun.model_dump(mode="json", exclude_defaults=True)
        return {**link, "steps": sorted(facts.steps), "digest": digest}

    kept = await context.once(TAKEN_UP, TAKEN_UP, find)
    facts = Takeover.model_validate_json(await context.read_blob(kept["digest"]))
    context.prior_runs.taken_over = ReusedCalls(facts, rerun)
    if facts.tainted and context.tainted_by is None:
        context.tainted_by = f"what run {facts.run_id} had read"
    if facts.changed:
        names = ", ".join(facts.changed)
        context.warn(f"steps were taken over from run {facts.run_id} whose definition has changed since: {names}")


class _Known(Struct, frozen=True):
    """What a run has, its own and what it had taken over itself."""

    steps: Mapping[str, SettledStep]
    calls: Mapping[str, EarlierCall]
    tainted: bool = False
    """Whether what it had taken over holds what outsiders can write."""


class _Earlier:
    """Reads the run that is taken up."""

    def __init__(self, context: RunContext, rerun: Rerun, registry: Registry) -> None:
        self._context = context
        self._past = context.past
        self._realm = context.run.realm
        self._rerun = rerun
        self._registry = registry

    async def facts(self, tool: ToolRevision, plan: WorkflowPlan) -> Takeover:
        run = await self._past.run(self._rerun.run_id)
        if run.realm == self._realm and await self._is_orphan(run):
            await self._context.end_orphan(run.run_id)
        events = await self._past.events(run.run_id)
        last = events[-1].event
        if run.realm != self._realm or run.request.kind != "workflow" or not isinstance(last, RunFinished):
            msg = f"run {run.run_id} is no run of a workflow in this realm that has ended; there is nothing to take up"
            raise Conflict(msg)
        known = await self._load_known(run, tool, plan, events)
        first = self._rerun.step
        anew = plan.after(first) if first is not None and first in plan.nodes else set[str]()
        as_it_was = self._rerun.mode == "from_step"
        stands = _standing(plan, known.steps, anew, as_it_was=as_it_was, all_of_it=as_it_was and last.error is None)
        left = {position: call for position, call in known.calls.items() if step_of(position) not in {*stands, *anew}}
        return Takeover(
            run_id=run.run_id,
            tainted=last.tainted or known.tainted,
            steps={name: known.steps[name] for name in stands},
            calls=left,
            schemas=await self._schemas(left.values()),
            changed=tuple(await self._find_changed(stands, tool, run.request.content_hash)),
        )

    async def _is_orphan(self, run: Run) -> bool:
        """Whether it has not ended, and its caller has: a process died in between, or another one still has it."""
        parent_id = run.request.parent_run_id
        return not run.ended and parent_id is not None and (await self._past.run(parent_id)).ended

    async def _load_known(self, run: Run, tool: ToolRevision, plan: WorkflowPlan, events: Iterable[RunEvent]) -> _Known:
        log = list(events)
        history = History(log)
        steps, calls = read_settled_steps(log), await self._calls(history)
        before = await self._before(run, tool, plan, history)
        if before is not None:
            steps = {**before.steps, **steps}
            own = {position: _over(before.calls.get(position), call) for position, call in calls.items()}
            calls = {**before.calls, **own}
        signals = await self._past.signals(run.run_id)
        settled_calls = {
            position: call.model_copy(update={"envelope": as_settled(call.envelope, signals)})
            for position, call in calls.items()
        }
        return _Known(steps, settled_calls, tainted=before is not None and before.tainted)

    async def _before(self, run: Run, tool: ToolRevision, plan: WorkflowPlan, history: History) -> Takeover | None:
        """What the run had taken over itself; what it would have, if it ended before it came to that."""
        entry = history.progress.get(TAKEN_UP)
        if entry is not None:
            return _as_made(Takeover.model_validate_json(await self._context.read_blob(entry["digest"])))
        rerun = run.request.rerun
        if rerun is None:
            return None
        return _as_made(await _Earlier(self._context, rerun, self._registry).facts(tool, plan))

    async def _calls(self, history: History) -> Mapping[str, EarlierCall]:
        children = {child.position: child for child in history.children.values() if child.instead_of is None}
        calls: dict[str, EarlierCall] = {}
        for position, envelope in history.envelopes.items():
            intent, shown = history.intents.get(position), history.approvals.get(position)
            child = None if envelope.ok else children.get(position)
            calls[position] = EarlierCall(
                envelope=envelope,
                asked=envelope.input if shown is None else shown.input,
                intent=intent,
                child_run_id=await self._workflow(child.child_run_id) if child else None,
            )
        return calls

    async def _workflow(self, run_id: str) -> str | None:
        """The id, if it is of a workflow's run."""
        try:
            run = await self._past.run(run_id)
        except NotFound:
            return None  # it was announced, and a crash came before it was made
        return run_id if run.request.kind == "workflow" else None

    async def _schemas(self, calls: Iterable[EarlierCall]) -> dict[str, JsonObject]:
        schemas: dict[str, JsonObject] = {}
        for content_hash in {call.envelope.content_hash for call in calls} - {None}:
            tool = await self._find_revision(content_hash)
            if tool is not None:
                schemas[tool.content_hash] = tool.definition.input_schema
        return schemas

    async def _find_changed(self, names: Collection[str], tool: ToolRevision, ran: str) -> list[str]:
        """Those of the steps that are defined in another way than when they ran."""
        before = await self._find_revision(ran)
        return sorted(set(names) & _different(tool, before)) if before is not None else []

    async def _find_revision(self, content_hash: str | None) -> ToolRevision | None:
        try:
            return await self._registry.get_revision(self._realm, content_hash or "")
        except ToolcribError:
            return None


def _standing(
    plan: WorkflowPlan, settled: Mapping[str, SettledStep], anew: Collection[str], *, as_it_was: bool, all_of_it: bool
) -> list[str]:
    """The steps that stand as they are, in the order in which they were settled.

    What has succeeded stands. What was left out, failed in part, or failed where the workflow goes on all the same, is
    tried again, unless what follows has been done on its ground and stands.

    Args:
        plan: The graph as it is now.
        settled: How steps have ended.
        anew: Steps that shall be run anew.
        as_it_was: Whether also what has not simply succeeded stands in any case.
        all_of_it: Whether everything stands: the run came to a good end.
    """
    stands: set[str] = set()
    for name in _last_first(plan):
        found = settled.get(name)
        if found is None or name in anew:
            continue
        node = plan.nodes[name]
        is_final = all_of_it or found.status not in {"failed", "cut_off"}
        is_final |= found.status == "failed" and node.step.on_error != "fail"
        if found.status == "succeeded" or (is_final and (as_it_was or any(each in stands for each in node.followers))):
            stands.add(name)
    return [name for name in settled if name in stands]


def _last_first(plan: WorkflowPlan) -> list[str]:
    """The steps, each after those that wait for it."""
    left = {name: len(node.followers) for name, node in plan.nodes.items()}
    order = [name for name, count in left.items() if not count]
    for name in order:
        for before in plan.nodes[name].waits_for:
            left[before] -= 1
            if not left[before]:
                order.append(before)
    return order


def _as_made(facts: Takeover) -> Takeover:
    """What was taken over, with the run in which each step and each call was made."""
    steps = {
        name: settled.model_copy(update={"reused": settled.reused or facts.run_id})
        for name, settled in facts.steps.items()
    }
    calls: dict[str, EarlierCall] = {}
    for position, call in facts.calls.items():
        made_in = call.envelope.reused or facts.run_id
        calls[position] = call.model_copy(update={"envelope": call.envelope.model_copy(update={"reused": made_in})})
    return facts.model_copy(update={"steps": steps, "calls": calls})


def _over(before: EarlierCall | None, own: EarlierCall) -> EarlierCall:
    """A call as the last run knows it, with what only the one before knows."""
    if before is None:
        return own
    if own.envelope.reused is not None:
        return before.model_copy(update={"envelope": own.envelope})
    if own.envelope.name != before.envelope.name or own.asked != before.asked:
        return own
    kept = {"intent": own.intent or before.intent, "child_run_id": own.child_run_id or before.child_run_id}
    return own.model_copy(update=kept)


def _different(tool: ToolRevision, before: ToolRevision) -> set[str]:
    """Names of steps that are not the same in two definitions."""
    now, then = tool.definition.implementation, before.definition.implementation
    if not isinstance(now, WorkflowImplementation) or not isinstance(then, WorkflowImplementation):
        return set()
    known = {step.name: step for step in then.steps}
    return {step.name for step in now.steps if known.get(step.name) != step}
