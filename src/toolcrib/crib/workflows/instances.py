"""Instances of workflows: start, read, resume, rerun from a step, cancel.

An instance is a run, and its state is derived from its journal. Continuing an ended run makes a new run; what it
reuses is recorded in its own journal.

Example:
    instance = await crib.instances.start("move", {"company": "Acme"})
    print(instance.status, [(step.step, step.status) for step in instance.steps])
    instance = await crib.instances.rerun(instance.run_id, "moved")
"""

from collections.abc import Sequence

from toolcrib.contracts import (
    WAITING,
    Conflict,
    InvalidInput,
    JsonObject,
    NotFound,
    Principal,
    Run,
    RunStatus,
    Signal,
    ToolcribError,
    ToolRevision,
)
from toolcrib.contracts.workflows import InstancePage, Rerun, WorkflowImplementation, WorkflowInstance, event_signal
from toolcrib.core.engines import new_run_id
from toolcrib.core.runs import read_tree
from toolcrib.crib.agents.executions import Executions
from toolcrib.crib.container.access import Actor, RunVerb, readable_runs
from toolcrib.crib.container.container import CribServices
from toolcrib.crib.container.requests import refusal_of_run, request_of
from toolcrib.crib.runs.rerun_links import Successors, under_way
from toolcrib.crib.tools.resources import RESOURCES, ResourceQuery, stored_page
from toolcrib.infrastructure.queries.grammar import Every, equal
from toolcrib.workflows.checks import near
from toolcrib.workflows.run.instances import instance_of, summary_of

"""Number of runs that are read together while a page is filled."""


class Instances:
    """The instances of a crib.

    Args:
        parts: The parts of the crib.
        executions: The crib's executions, which know who may see a run, and act on it.
        actor: The actor of the crib.
    """

    def __init__(self, parts: CribServices, executions: Executions, actor: Actor) -> None:
        self._parts = parts
        self._journal = parts.outside.store.journal
        self._executions = executions
        self._actor = actor
        self._successors = Successors(self._journal, parts.outside.clock)

    # Beginning and reading --------------------------------------------------------------------------------------------

    async def start(
        self,
        ref: str,
        arguments: JsonObject,
        *,
        dry_run: bool = False,
        wait: bool = True,
    ) -> WorkflowInstance:
        """Run a workflow.

        Args:
            ref: `name` or `name@range`.
            arguments: Its input.
            dry_run: Skip every call that would write.
            wait: Return when it has ended or waits; else at once, and a serving engine drives it. If this process lacks
                a Python function that it needs, a worker on the same store drives it; without one, the instance is
                `queued` after some seconds (`SharingOptions.worker_wait_s`), and `warnings` says why.

        Raises:
            NotFound: There is no such workflow.
            InvalidInput: The tool of this name is no workflow. All other errors are in the instance.

        Example:
            instance = await crib.instances.start("move", {"company": "Acme"})
            print(instance.status, instance.output)
        """
        who = await self._actor.authorize()
        earlier = await self._actor.earlier_run()
        if earlier is not None:
            return await self._standing(earlier, wait=wait)
        tool = await self._parts.catalogue.require(who.realm, ref)
        _workflow_of(tool)
        return await self._run(tool, arguments, who, new_run_id(), dry_run=dry_run, wait=wait)

    async def get(self, run_id: str, *, outputs: bool = True) -> WorkflowInstance:
        """The current state of an instance.

        Args:
            run_id: Its run.
            outputs: Whether to include the outputs of steps, which may be large.

        Raises:
            NotFound: The realm has no such run.
            InvalidInput: It is no run of a workflow.
            PermissionDenied: It belongs to another principal, and the principal has no grant to read it.

        Example:
            instance = await crib.instances.start("move", {"company": "Acme"}, wait=False)
            instance = await crib.instances.get(instance.run_id, outputs=False)
            print([(step.step, step.status) for step in instance.steps])
        """
        who = await self._actor.authorize()
        run = await self._run_for(run_id, who, "read")
        instance = await self._read(run)
        if outputs:
            return instance
        steps = tuple(step.model_copy(update={"output": None}) for step in instance.steps)
        return instance.model_copy(update={"steps": steps})

    async def page(
        self,
        *,
        workflow: str | None = None,
        status: RunStatus | None = None,
        filter: str | None = None,
        sort: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> InstancePage:
        """Instances in short, newest first, nested ones among them: those that the principal may see.

        Args:
            workflow: Name of the workflow, without a version; null for all.
            status: Their status; null for any.
            filter: What else is true of them, by the grammar of all queries.
            sort: Another order, such as `cost_usd desc`.
            before: `next` of the page before.
            limit: Most of a page.

        Raises:
            NotFound: There is no run `before` that the principal may see.
            InvalidInput: The filter or the sort is not valid; the message lists the fields.

        Example:
            page = await crib.instances.page(workflow="move", status="failed")
            print([each.run_id for each in page.items], page.next)
        """
        who = await self._actor.authorize()
        query = ResourceQuery[Run](RESOURCES["instances"], filter, sort, now=self._parts.outside.clock.now())
        given = {"kind": "workflow", "tool": workflow, "status": status}
        named = [equal(name, value) for name, value in given.items() if value is not None]
        where = Every((*named, readable_runs(who)))
        page = await stored_page(self._journal, who.realm, query, where, after=before, limit=limit)
        return InstancePage(items=tuple(map(summary_of, page.items)), next=page.next)

    # Going on ---------------------------------------------------------------------------------------------------------

    async def resume(self, run_id: str, *, repeat_unknown: bool = False, wait: bool = True) -> WorkflowInstance:
        """Resume an instance that waits or was interrupted, or continue a failed one in a new run.

        An instance that failed, was cancelled or timed out is continued by a new run of the workflow as it is now.
        Calls that succeeded are not repeated, and repeated calls have the same idempotency keys. Nested workflows
        are continued in the same way; nested agents are asked again. If an instance was continued before, its last
        continuation is continued.

        Args:
            run_id: Its run.
            repeat_unknown: Whether calls with an unknown outcome are repeated, also those that could
                do twice; else their steps fail again.
            wait: Drive it here until it ends or waits; else a serving engine does.

        Raises:
            NotFound: As `get`, like the next.
            PermissionDenied: See there.
            InvalidInput: See there.
            Conflict: It has succeeded, or waits for a person, or a run that continues it is active.

        Example:
            instance = await crib.instances.start("move", {"company": "Acme"}, wait=False)
            await crib.instances.cancel(instance.run_id)
            instance = await crib.instances.resume(instance.run_id)
            print(instance.status)
        """
        who = await self._actor.authorize(newest=True)
        earlier = await self._actor.earlier_run()
        if earlier is not None:
            return await self._standing(earlier, wait=wait)
        run = await self._successors.last(await self._run_for(run_id, who, "execute", "read"))
        if not run.ended:
            return await self._go_on(run, requested_id=run_id, wait=wait)
        if run.status == "completed" and run.stop_reason == "final_answer":
            raise _nothing_left(run, run_id)
        await self._check_alone(run)
        return await self._take_up(run, Rerun(run_id=run.run_id, repeat_unknown=repeat_unknown), who, wait=wait)

    async def rerun(self, run_id: str, step: str, *, wait: bool = True) -> WorkflowInstance:
        """Rerun a workflow from a step; earlier outputs are reused.

        The new run has the input of the old one. Steps that are run again use new idempotency keys. Of the other
        steps, the results of ended ones are reused, and failed ones continue as in `resume`.

        Args:
            run_id: A run that has ended, also one that has succeeded.
            step: Name of the first step to run again.
            wait: As in `resume`.

        Raises:
            NotFound: As `get`, like the next; or the workflow has no such step.
            PermissionDenied: See there.
            InvalidInput: See there.
            Conflict: It has not ended, or another run has taken it up and knows more than it does.

        Example:
            instance = await crib.instances.start("move", {"company": "Acme"})
            again = await crib.instances.rerun(instance.run_id, "moved")
            print(again.run_id, again.status)
        """
        who = await self._actor.authorize(newest=True)
        earlier = await self._actor.earlier_run()
        if earlier is not None:
            return await self._standing(earlier, wait=wait)
        run = await self._run_for(run_id, who, "execute", "read")
        if not run.ended:
            msg = f"instance {run_id} is {run.status}; wait for its end, or cancel it, then rerun it from a step"
            raise Conflict(msg)
        last = await self._successors.last(run)
        if last.run_id != run_id:
            msg = f"instance {run_id} was continued by {last.run_id}, which is {last.status}; rerun that one"
            raise Conflict(msg)
        tool = await self._tool(run)
        _check_step(tool, step)
        if run.status != "completed":
            await self._check_alone(run)
        return await self._take_up(run, Rerun(run_id=run_id, mode="from_step", step=step), who, wait=wait)

    async def cancel(self, run_id: str, *, reason: str | None = None) -> WorkflowInstance:
        """End an instance and what is nested in it, whatever it does or waits for. It can be resumed.

        Raises:
            NotFound: As `get`, like the next two.
            PermissionDenied: See there.
            InvalidInput: See there.
            Conflict: It has ended.

        Example:
            instance = await crib.instances.start("move", {"company": "Acme"}, wait=False)
            instance = await crib.instances.cancel(instance.run_id, reason="Wrong company")
        """
        who = await self._actor.authorize()
        await self._run_for(run_id, who, "execute", "read")
        await self._parts.engine.cancel(run_id, by=who.id, reason=reason)
        return await self._read(await self._journal.run(run_id))

    async def signal(self, run_id: str, name: str, payload: JsonObject | None = None) -> bool:
        """Tell an instance what a step of it waits for. The first of a name counts; false if there was one.

        Who serves the store carries the instance on; `resume` does so here.

        Args:
            run_id: Its run.
            name: The name that the step waits for, also before it does.
            payload: The output of the step.

        Raises:
            NotFound: As `get`, like the next two; or no step of the workflow waits for a signal of this name.
            PermissionDenied: See there.
            InvalidInput: See there.
            Conflict: It has ended.

        Example:
            wait = {"name": "payment", "wait": {"signal": "paid"}}
            await crib.workflows.publish({"name": "order", "steps": [wait]})
            instance = await crib.instances.start("order", {})
            await crib.instances.signal(instance.run_id, "paid", {"amount": 12})
            instance = await crib.instances.resume(instance.run_id)
        """
        who = await self._actor.authorize()
        run = await self._run_for(run_id, who, "execute")
        if run.ended:
            msg = f"instance {run_id} is {run.status} and waits for nothing any more"
            raise Conflict(msg)
        _check_signal(await self._parts.registry.get_revision(run.realm, run.request.content_hash), name)
        signal = Signal(
            name=event_signal(name), payload=payload or {}, made_by=who.id, at=self._parts.outside.clock.now()
        )
        return await self._parts.engine.signal(run_id, signal)

    # Inside -----------------------------------------------------------------------------------------------------------

    async def _run(
        self,
        tool: ToolRevision,
        arguments: JsonObject,
        who: Principal,
        run_id: str,
        *,
        dry_run: bool,
        wait: bool,
        rerun: Rerun | None = None,
    ) -> WorkflowInstance:
        parts = self._parts
        request = request_of(tool, arguments, who, parts.registry, dry_run=dry_run, rerun=rerun)
        refusal = refusal_of_run(parts.executor, tool, request)
        if refusal is not None:
            refused = (await parts.engine.refuse(request, refusal)).result.run_id
            return await self._standing(refused, wait=False)
        if rerun is not None:
            run_id = await self._successors.announce(rerun, run_id, who)
        await parts.engine.create(request, run_id=await self._actor.begin_run(run_id))
        return await self._standing(run_id, wait=wait)

    async def _standing(self, run_id: str, *, wait: bool) -> WorkflowInstance:
        """An instance as it stands; after it was driven until it ends or waits, if that is wanted."""
        warnings = (await self._parts.resume(run_id)).result.warnings if wait else ()
        return _with(await self._read(await self._journal.run(run_id)), warnings)

    async def _take_up(self, run: Run, rerun: Rerun, who: Principal, *, wait: bool) -> WorkflowInstance:
        tool, request = await self._tool(run), run.request
        dry_run, arguments = request.dry_run, request.input
        return await self._run(tool, arguments, who, new_run_id(), dry_run=dry_run, wait=wait, rerun=rerun)

    async def _tool(self, run: Run) -> ToolRevision:
        """The workflow as it is now; if the name no longer exists, as the run had it."""
        try:
            tool = await self._parts.catalogue.require(run.realm, run.request.tool_name)
        except NotFound:
            tool = await self._parts.registry.get_revision(run.realm, run.request.content_hash)
        _workflow_of(tool)
        return tool

    async def _go_on(self, run: Run, *, requested_id: str, wait: bool) -> WorkflowInstance:
        """Carry on what has not ended: a process has died, or what it waited for is there."""
        if run.run_id != requested_id and run.status not in WAITING:
            raise under_way(run, requested_id)
        warnings = (await self._parts.resume(run.run_id)).result.warnings if wait else ()
        now = await self._journal.run(run.run_id)
        if now.ended or now.events > run.events or warnings or not wait:
            return _with(await self._read(now), warnings)
        raise _waits(await self._read(now))

    async def _check_alone(self, run: Run) -> None:
        """Refuse to continue a nested workflow: the outer workflow continues it."""
        parent_id = run.request.parent_run_id
        if parent_id is None:
            return
        parent = await self._journal.run(parent_id)
        if parent.request.kind == "workflow":
            msg = f"instance {run.run_id} is a step of instance {parent_id}; resume that, which continues this one too"
            raise Conflict(msg)

    async def _read(self, run: Run) -> WorkflowInstance:
        tree = await read_tree(self._journal, run.run_id)
        signals = await self._journal.signals(run.run_id)
        return instance_of(tree, await self._definition(run), taken_up_by=self._successors.run_ids_in(signals))

    async def _definition(self, run: Run) -> WorkflowImplementation | None:
        """What the run executes; null if another release has written it, and this one cannot read it."""
        try:
            tool = await self._parts.registry.get_revision(run.realm, run.request.content_hash)
        except ToolcribError:
            return None
        implementation = tool.definition.implementation
        return implementation if isinstance(implementation, WorkflowImplementation) else None

    async def _run_for(self, run_id: str, who: Principal, *verbs: RunVerb) -> Run:
        run, *_ = [await self._executions.run_for(run_id, who, verb) for verb in verbs]
        if run.request.kind != "workflow":
            msg = f"run {run_id} is of {run.request.tool!r}, of kind {run.request.kind!r}, and no run of a workflow"
            raise InvalidInput(msg)
        return run


def _workflow_of(tool: ToolRevision) -> WorkflowImplementation:
    implementation = tool.definition.implementation
    if not isinstance(implementation, WorkflowImplementation):
        if tool.status_message is not None:
            raise InvalidInput(f"{tool.ref!r} cannot be run: {tool.status_message}")
        msg = f"tool {tool.ref!r} is of kind {implementation.kind!r}, not a workflow; call it as a tool"
        raise InvalidInput(msg)
    return implementation


def _check_step(tool: ToolRevision, step: str) -> None:
    names = [known.name for known in _workflow_of(tool).steps]
    if step not in names:
        raise NotFound(f"workflow {tool.ref!r} has no step {step!r}; {near(step, names)}")


def _with(instance: WorkflowInstance, warnings: Sequence[str]) -> WorkflowInstance:
    """An instance with warnings that its journal may not have."""
    more = [each for each in warnings if each not in instance.warnings]
    return instance.model_copy(update={"warnings": (*instance.warnings, *more)}) if more else instance


def _check_signal(tool: ToolRevision, name: str) -> None:
    names = [step.wait.signal for step in _workflow_of(tool).steps if step.wait and step.wait.signal]
    if name not in names:
        raise NotFound(f"no step of workflow {tool.ref!r} waits for a signal {name!r}; {near(name, names)}")


def _nothing_left(run: Run, requested_id: str) -> Conflict:
    which = (
        f"instance {requested_id}"
        if run.run_id == requested_id
        else f"instance {run.run_id}, which continues {requested_id},"
    )
    return Conflict(
        f"{which} has succeeded; there is nothing to resume. To do a part of it again, use rerun with a step"
    )


def _waits(instance: WorkflowInstance) -> Conflict:
    """What an instance waits for."""
    waits = [(step.step, wait) for step in instance.steps for wait in step.waits_for]
    lines = [f"step {step!r} for {wait.whom} {wait.name!r}" for step, wait in waits[:5]]
    whom = "; ".join(lines) or instance.status.replace("_", " ")
    return Conflict(f"instance {instance.run_id} is {instance.status} and waits: {whom}. Answer it, and it continues")
