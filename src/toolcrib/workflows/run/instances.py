"""Instances: the state of a workflow run, read from its journal at any time.

Pure: a tree of runs and the definition in, an instance out. Journals of other releases are read as far as possible;
steps that the definition does not have come last.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from toolcrib.contracts import (
    ApprovalRequested,
    CallFinished,
    CallStarted,
    ChildStarted,
    ClientHandoff,
    Event,
    Json,
    JsonObject,
    ProgressMade,
    Run,
    RunEvent,
    RunFinished,
    SignalAwaited,
    ToolEnvelope,
    approval_id,
    approval_signal,
)
from toolcrib.contracts.workflows import (
    STEP_KEY,
    STEP_SETTLED,
    InstanceSummary,
    SettledStep,
    StepInstance,
    StepWait,
    WorkflowImplementation,
    WorkflowInstance,
    WorkflowStep,
    event_signal,
)
from toolcrib.core.runs import Branch, History, spending_of, step_at, wait_key, waiting_approvals, waiting_handoffs

_SLEEP: Final = "sleep:"
_EVENT: Final = event_signal("")


def summary_of(run: Run) -> InstanceSummary:
    """A run in a list: what its row tells."""
    return InstanceSummary(**_row(run))


def instance_of(
    tree: Sequence[Branch], workflow: WorkflowImplementation | None, *, taken_up_by: Sequence[str] = ()
) -> WorkflowInstance:
    """How a run stands.

    Args:
        tree: The run first, then those that are nested in it and have not ended.
        workflow: What it executes; null if that cannot be read any more.
        taken_up_by: Ids of the runs that go on where it has ended.
    """
    run, events, _ = tree[0]
    last = events[-1].event
    spent = spending_of(History(events))
    finished = last if isinstance(last, RunFinished) else None
    row = _row(run)
    if finished is None:
        row["cost_usd"] = spent.billed_usd or None
    return WorkflowInstance(
        **row,
        input=cast("JsonObject", run.request.input),
        output=run.output,
        partial=run.partial,
        steps=tuple(_Steps(tree, workflow).read()),
        taken_up_by=tuple(taken_up_by),
        tokens=spent.tokens if finished is None or finished.tokens is None else finished.tokens,
    )


def step_of(position: str) -> str:
    """Name of the step that a call, or a rest between two of its tries, belongs to."""
    return step_at(position.removeprefix(_SLEEP))


def read_settled_steps(events: Iterable[RunEvent]) -> dict[str, SettledStep]:
    """The steps that have ended, by name in that order, with the outputs that their calls have put out."""
    log = list(events)
    envelopes = _envelopes(log)
    found = (_read(entry.event, envelopes) for entry in log if isinstance(entry.event, ProgressMade))
    return {settled.step: settled for settled in found if settled is not None}


def _row(run: Run) -> dict[str, Any]:
    request = run.request
    same = run.model_dump(include=_SHOWN)
    return {
        **same,
        "error": run.error,
        "workflow": request.tool,
        "content_hash": request.content_hash,
        "rerun": request.rerun,
        "parent_run_id": request.parent_run_id,
        "dry_run": request.dry_run,
    }


_SHOWN: Final = InstanceSummary.model_fields.keys() & set(Run.__struct_fields__) - {"error"}


def _envelopes(events: Iterable[RunEvent]) -> dict[str, ToolEnvelope]:
    return {entry.event.position: entry.event.envelope for entry in events if isinstance(entry.event, CallFinished)}


def _read(event: ProgressMade, envelopes: Mapping[str, ToolEnvelope]) -> SettledStep | None:
    """A settled step; null if the event tells something else, or in a way that is not understood."""
    data: Json = event.data
    if event.kind != STEP_SETTLED or not isinstance(data, dict):
        return None
    known: JsonObject = {name: data[name] for name in SettledStep.model_fields.keys() & data.keys()}
    try:
        settled = SettledStep.model_validate({"step": event.key.removeprefix(STEP_KEY), **known})
    except ValueError:
        return None
    if "output" in known:
        return settled
    return settled.model_copy(update={"output": _put_out(settled, envelopes)})


def _put_out(settled: SettledStep, envelopes: Mapping[str, ToolEnvelope]) -> Json:
    """What the calls of a step have put out."""
    if not settled.ok:
        return None
    if settled.items is None:
        return _output_at(settled.positions[-1], envelopes) if settled.positions else None
    return [_output_at(f"{settled.step}[{index}]", envelopes) for index in range(settled.items)]


def _output_at(position: str, envelopes: Mapping[str, ToolEnvelope]) -> Json:
    """The output of a call in its last try."""
    envelope, tries = envelopes.get(position), 1
    while (further := envelopes.get(f"{position}.try{tries + 1}")) is not None:
        envelope, tries = further, tries + 1
    return envelope.output if envelope is not None and envelope.ok else None


class _Steps:
    """Reads the steps of one run."""

    def __init__(self, tree: Sequence[Branch], workflow: WorkflowImplementation | None) -> None:
        self._tree = tree
        self._run, self._events, _ = tree[0]
        self._definition = {step.name: step for step in workflow.steps} if workflow else {}
        self._settled = read_settled_steps(self._events)
        self._started: dict[str, RunEvent] = {}
        """The first event of each step."""
        self._ended: dict[str, RunEvent] = {}
        """The event that tells how it has ended."""
        self._children: dict[str, list[str]] = {}
        for entry in self._events:
            self._take(entry)
        self._waits: dict[str, list[StepWait]] = {}
        for branch in tree:
            if not branch.run.ended:
                self._wait(branch)

    def read(self) -> Iterator[StepInstance]:
        """All steps, those of the definition first."""
        others = {*self._settled, *(self._started if not self._definition else ())} - self._definition.keys()
        for name in (*self._definition, *sorted(others)):
            yield self._step(name, self._definition.get(name))

    def _take(self, entry: RunEvent) -> None:
        event = entry.event
        name = _step_of_event(event)
        if name is None:
            return
        self._started.setdefault(name, entry)
        if isinstance(event, ChildStarted):
            self._children.setdefault(name, []).append(event.child_run_id)
        elif isinstance(event, ProgressMade):
            self._ended[name] = entry

    def _step(self, name: str, step: WorkflowStep | None) -> StepInstance:
        settled = self._settled.get(name) or self._state_so_far(name)
        ended, started = self._ended.get(name), self._started.get(name)
        return StepInstance(
            **{field: getattr(settled, field) for field in SettledStep.model_fields},
            title=step.title if step else None,
            started_at=started.at if started else None,
            ended_at=ended.at if ended else None,
            waits_for=tuple(self._waits.get(name, ())),
            child_run_ids=tuple(dict.fromkeys(self._children.get(name, ()))),
        )

    def _state_so_far(self, name: str) -> SettledStep:
        begun = name in self._started
        if self._run.ended:
            when = "while it was under way" if begun else "before it began"
            return SettledStep(step=name, status="cut_off", reason=f"the run has ended {when}")
        if name in self._waits:
            return SettledStep(step=name, status="waiting")
        return SettledStep(step=name, status="running" if begun else "pending")

    # What is waited for -----------------------------------------------------------------------------------------------

    def _wait(self, branch: Branch) -> None:
        run_id, above = branch.run.run_id, self._step_above(branch.run)
        for request in waiting_approvals(branch.events, branch.signals):
            name = approval_id(run_id, approval_signal(request.position, request.number))
            wait = StepWait(whom="approval", name=name, run_id=run_id, until=request.expires_at)
            self._add(above or step_of(request.position), wait)
        for envelope in waiting_handoffs(branch.events, branch.signals):
            wait = StepWait(whom="client", name=envelope.position, run_id=run_id)
            self._add(above or step_of(envelope.position), wait)
        for awaited in _open_waits(branch):
            whom = "time" if awaited.name.startswith(_SLEEP) else "signal"
            name = awaited.name.removeprefix(_SLEEP).removeprefix(_EVENT)
            wait = StepWait(whom=whom, name=name, run_id=run_id, until=awaited.wake_at)
            self._add(above or self._waiting_for(awaited), wait)

    def _add(self, step: str | None, wait: StepWait) -> None:
        if step is not None:
            self._waits.setdefault(step, []).append(wait)

    def _step_above(self, run: Run) -> str | None:
        """The step that a nested run belongs to, at whatever depth; null for the run itself."""
        runs = {branch.run.run_id: branch.run for branch in self._tree}
        position = None
        while run.run_id != self._run.run_id:
            position = run.request.parent_position or ""
            run = runs[run.request.parent_run_id or self._run.run_id]
        return None if position is None else step_of(position)

    def _waiting_for(self, awaited: SignalAwaited) -> str | None:
        if awaited.position is not None or awaited.name.startswith(_SLEEP):
            return step_of(awaited.position or awaited.name)
        waiting = (name for name, step in self._definition.items() if step.wait and step.wait.signal == awaited.name)
        return next(waiting, None)


def _step_of_event(event: Event) -> str | None:
    match event:
        case CallStarted() | CallFinished() | ApprovalRequested() | ClientHandoff() | ChildStarted():
            return step_of(event.position)
        case SignalAwaited():
            return step_of(event.position or event.name)
        case ProgressMade(kind=kind, key=key) if kind == STEP_SETTLED:
            return key.removeprefix(STEP_KEY)
        case _:
            return None


def _open_waits(branch: Branch) -> Iterator[SignalAwaited]:
    history = History(branch.events)
    for awaited in history.awaited.values():
        if wait_key(awaited.name, awaited.position) not in history.received and awaited.name not in branch.signals:
            yield awaited
