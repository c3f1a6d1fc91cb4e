"""Synchronous forms of the classes of several modules.

`toolcrib.crib.workflows.instances`,
`toolcrib.crib.workflows.workflows`.

Written by `python -m tools.sync_facade`; not to be edited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.sync.event_loop import EventLoopThread, Facade

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcrib.contracts import ImpactReport, JsonObject, RunStatus, ToolRevision
    from toolcrib.contracts.workflows import (
        InstancePage,
        Materialized,
        MaterializePreview,
        Publication,
        WorkflowDefinition,
        WorkflowDraft,
        WorkflowGraph,
        WorkflowInstance,
    )
    from toolcrib.crib.tools.listing import ToolsPage
    from toolcrib.crib.workflows.instances import Instances as AsynchronousInstances
    from toolcrib.crib.workflows.workflows import Workflows as AsynchronousWorkflows


class Instances(Facade):
    """The instances of a crib.

    Args:
        parts: The parts of the crib.
        executions: The crib's executions, which know who may see a run, and act on it.
        actor: The actor of the crib.
    """

    def __init__(self, asynchronous: AsynchronousInstances, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._instances = asynchronous

    def start(self, ref: str, arguments: JsonObject, *, dry_run: bool = False, wait: bool = True) -> WorkflowInstance:
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
            instance = crib.instances.start("move", {"company": "Acme"})
            print(instance.status, instance.output)
        """
        return self._loop.run(self._instances.start, ref, arguments, dry_run=dry_run, wait=wait)

    def get(self, run_id: str, *, outputs: bool = True) -> WorkflowInstance:
        """The current state of an instance.

        Args:
            run_id: Its run.
            outputs: Whether to include the outputs of steps, which may be large.

        Raises:
            NotFound: The realm has no such run.
            InvalidInput: It is no run of a workflow.
            PermissionDenied: It belongs to another principal, and the principal has no grant to read it.

        Example:
            instance = crib.instances.start("move", {"company": "Acme"}, wait=False)
            instance = crib.instances.get(instance.run_id, outputs=False)
            print([(step.step, step.status) for step in instance.steps])
        """
        return self._loop.run(self._instances.get, run_id, outputs=outputs)

    def page(
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
            page = crib.instances.page(workflow="move", status="failed")
            print([each.run_id for each in page.items], page.next)
        """
        return self._loop.run(
            self._instances.page, workflow=workflow, status=status, filter=filter, sort=sort, before=before, limit=limit
        )

    def resume(self, run_id: str, *, repeat_unknown: bool = False, wait: bool = True) -> WorkflowInstance:
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
            instance = crib.instances.start("move", {"company": "Acme"}, wait=False)
            crib.instances.cancel(instance.run_id)
            instance = crib.instances.resume(instance.run_id)
            print(instance.status)
        """
        return self._loop.run(self._instances.resume, run_id, repeat_unknown=repeat_unknown, wait=wait)

    def rerun(self, run_id: str, step: str, *, wait: bool = True) -> WorkflowInstance:
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
            instance = crib.instances.start("move", {"company": "Acme"})
            again = crib.instances.rerun(instance.run_id, "moved")
            print(again.run_id, again.status)
        """
        return self._loop.run(self._instances.rerun, run_id, step, wait=wait)

    def cancel(self, run_id: str, *, reason: str | None = None) -> WorkflowInstance:
        """End an instance and what is nested in it, whatever it does or waits for. It can be resumed.

        Raises:
            NotFound: As `get`, like the next two.
            PermissionDenied: See there.
            InvalidInput: See there.
            Conflict: It has ended.

        Example:
            instance = crib.instances.start("move", {"company": "Acme"}, wait=False)
            instance = crib.instances.cancel(instance.run_id, reason="Wrong company")
        """
        return self._loop.run(self._instances.cancel, run_id, reason=reason)

    def signal(self, run_id: str, name: str, payload: JsonObject | None = None) -> bool:
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
            crib.workflows.publish({"name": "order", "steps": [wait]})
            instance = crib.instances.start("order", {})
            crib.instances.signal(instance.run_id, "paid", {"amount": 12})
            instance = crib.instances.resume(instance.run_id)
        """
        return self._loop.run(self._instances.signal, run_id, name, payload)


class Workflows(Facade):
    """The workflows of a crib.

    Args:
        parts: The parts of the crib.
        listing: The crib's listing, which knows what a principal may see.
        life: The crib's life cycle, which knows the impact of a change.
        executions: The crib's executions, which know which runs a principal may read.
        actor: The actor of the crib.
    """

    def __init__(self, asynchronous: AsynchronousWorkflows, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._workflows = asynchronous

    def check(self, definition: WorkflowDefinition | JsonObject) -> WorkflowGraph:
        """The graph of a definition, with all its problems; an invalid definition does not raise.

        Args:
            definition: The definition, or a document that may be one.

        Example:
            step = {"name": "found", "tool": "search_dels", "input": {"company": "Acme"}}
            graph = crib.workflows.check({"name": "list_acme", "steps": [step]})
            print([problem.message for problem in graph.problems])
        """
        return self._loop.run(self._workflows.check, definition)

    def draft(
        self,
        definition: WorkflowDefinition | JsonObject,
        *,
        note: str = "",
        authored_by: str | None = None,
        run_id: str | None = None,
        tainted_by: str | None = None,
        after: int | None = None,
    ) -> WorkflowDraft:
        """Keep a definition without publishing it. It must be one that could be published.

        Args:
            definition: The definition, or its document.
            note: For the person who publishes it.
            authored_by: The agent that has written it; null for a person.
            run_id: The run in which it was written.
            tainted_by: What that run had read that outsiders can write.
            after: Number of the draft's revision that the author has changed; 0 for a new one; null for any.

        Raises:
            InvalidDefinition: Something is wrong with it; `problems` has all of it.
            Conflict: Another revision of the draft has been saved since `after`.

        Example:
            step = {"name": "found", "tool": "search_deals", "input": {"company": "Acme"}}
            draft = crib.workflows.draft({"name": "list_acme", "steps": [step]}, note="For the weekly report")
            print(draft.revision, draft.problems)
        """
        return self._loop.run(
            self._workflows.draft,
            definition,
            note=note,
            authored_by=authored_by,
            run_id=run_id,
            tainted_by=tainted_by,
            after=after,
        )

    def drafts(self) -> Sequence[WorkflowDraft]:
        """All drafts of the realm, by name.

        Example:
            for draft in crib.workflows.drafts():
                print(draft.definition.name, draft.made_by, draft.note)
        """
        return self._loop.run(
            self._workflows.drafts,
        )

    def get_draft(self, name: str) -> WorkflowDraft:
        """A draft, with what is wrong with it by now.

        Raises:
            NotFound: The name is unknown.
            InvalidDefinition: Another release has saved it, and this one cannot read it.

        Example:
            crib.workflows.draft(move.definition)
            draft = crib.workflows.get_draft("move")
            print(draft.revision, draft.problems)
        """
        return self._loop.run(self._workflows.get_draft, name)

    def discard(self, name: str) -> None:
        """Take a draft out; the published workflow of its name stays.

        Raises:
            NotFound: The name is unknown.

        Example:
            crib.workflows.draft(move.definition)
            crib.workflows.discard("move")
        """
        return self._loop.run(self._workflows.discard, name)

    def undo(self, name: str) -> WorkflowDraft | None:
        """Take the last change of a draft back; what was published is taken back with `revert`.

        Returns:
            The draft as it was before, which is its newest revision once more; null if there was none before.

        Raises:
            NotFound: There is no draft of this name.
            Conflict: It has been saved again since.

        Example:
            crib.workflows.draft(move.definition)
            crib.workflows.draft(move.definition.model_copy(update={"title": "Move deals"}))
            draft = crib.workflows.undo("move")
            print(draft.definition.title)
        """
        return self._loop.run(self._workflows.undo, name)

    def materialize(
        self,
        name: str,
        *,
        run_id: str,
        step: str,
        node: str | None = None,
        call_id: str | None = None,
        position: str | None = None,
        pin: str | None = None,
    ) -> Materialized:
        """Turn a call that an agent has made into a step of its own: one change of the draft, which `undo` takes back.

        The step has the exact arguments, version and account of the call, and stands where the agent stands. What read
        the handle that the call has filled reads the step. The draft is made of the published workflow if there is
        none.

        Args:
            name: The name of the workflow.
            run_id: The agent's run, or the run of the workflow in which it was asked.
            step: Name of the new step.
            node: The step that has asked the agent; needed with the workflow's run if several have made such a call.
            call_id: The call.
            position: Or its place in the agent's run.
            pin: Or the handle that it has filled; beside another one of them, the handle that is not read any more.

        Raises:
            NotFound: There is no such workflow, run, step, call or handle; or the tool is gone.
            PermissionDenied: The run is another's.
            InvalidInput: No call matches, or several do; or the agent is asked for each element of a list.
            InvalidDefinition: The workflow would be invalid with the step; `problems` lists all errors.
            Conflict: The call failed, holds a secret, or is of a tool that is another one by now; the name is taken;
                or another principal has saved the draft since.

        Example:
            ask = {"name": "ask", "agent": "desk", "input": {"message": "Which deals has Acme?"}}
            crib.workflows.publish({"name": "report", "steps": [ask]})
            instance = crib.instances.start("report", {})
            [asked] = instance.steps[0].child_run_ids
            change = crib.workflows.materialize("report", run_id=asked, position="t1.c1", step="found")
            print(change.tool, change.rewired)
        """
        return self._loop.run(
            self._workflows.materialize,
            name,
            run_id=run_id,
            step=step,
            node=node,
            call_id=call_id,
            position=position,
            pin=pin,
        )

    def preview_materialize(
        self,
        name: str,
        *,
        run_id: str,
        step: str,
        node: str | None = None,
        call_id: str | None = None,
        position: str | None = None,
        pin: str | None = None,
    ) -> MaterializePreview:
        """What `materialize` would change, with the difference and all problems. Nothing is written.

        Raises:
            NotFound: As `materialize` raises.
            PermissionDenied: Likewise.
            InvalidInput: Likewise.
            Conflict: Likewise.

        Example:
            ask = {"name": "ask", "agent": "desk", "input": {"message": "Which deals has Acme?"}}
            crib.workflows.publish({"name": "report", "steps": [ask]})
            instance = crib.instances.start("report", {})
            [asked] = instance.steps[0].child_run_ids
            preview = crib.workflows.preview_materialize("report", run_id=asked, position="t1.c1", step="found")
            print(preview.diff, preview.problems)
        """
        return self._loop.run(
            self._workflows.preview_materialize,
            name,
            run_id=run_id,
            step=step,
            node=node,
            call_id=call_id,
            position=position,
            pin=pin,
        )

    def publish(
        self, definition: WorkflowDefinition | JsonObject | str, *, after: int | None = None, draft: int | None = None
    ) -> Publication:
        """Check a workflow against what there is now, bind it to that, and save it as the newest revision of its tool.

        The draft of the same name is then removed.

        Args:
            definition: The definition, its document, or the name of a draft.
            after: Number of the tool's revision that the author has changed; 0 for a new one; null for any.
            draft: Number of the reviewed revision, if a draft's name is given; null for the newest,
                whichever principal wrote it.

        Raises:
            NotFound: There is no draft of this name.
            InvalidDefinition: Something is wrong with it; `problems` has all of it.
            PermissionDenied: The principal may not publish it, or it acts as an account that its author may not use.
            Conflict: Another revision has been saved since `after`, or of the draft since `draft`.

        Example:
            step = {"name": "found", "tool": "search_deals", "input": {"company": "Acme"}}
            published = crib.workflows.publish({"name": "list_acme", "steps": [step]})
            print(published.tool.ref, published.problems)
            print(crib.call("list_acme").output)
        """
        return self._loop.run(self._workflows.publish, definition, after=after, draft=draft)

    def revert(self, name: str, revision: int, *, after: int | None = None) -> Publication:
        """Make an older revision the newest one once more, bound to what it was bound to.

        Args:
            name: The name of the workflow.
            revision: The number of the older revision.
            after: As for `publish`.

        Raises:
            NotFound: There is no such workflow, or no such revision.
            InvalidDefinition: It could not be published any more; `problems` lists all errors.
            PermissionDenied: As `publish`.
            Conflict: See there.

        Example:
            crib.workflows.publish(move.definition.model_copy(update={"title": "Move deals"}))
            published = crib.workflows.revert("move", 1)
            print(published.tool.revision)
        """
        return self._loop.run(self._workflows.revert, name, revision, after=after)

    def impact(self, definition: WorkflowDefinition | JsonObject | str) -> ImpactReport | None:
        """Whom publishing a workflow would concern; null if there is nothing of its name.

        Args:
            definition: The definition, its document, or the name of a draft.

        Raises:
            NotFound: There is no draft of this name.
            InvalidDefinition: It could not be published; `problems` lists all errors.

        Example:
            crib.workflows.draft(move.definition.model_copy(update={"title": "Move deals"}))
            report = crib.workflows.impact("move")
            print([each.name for each in report.dependents])
        """
        return self._loop.run(self._workflows.impact, definition)

    def get(self, ref: str) -> ToolRevision:
        """The revision of a workflow; `WorkflowDefinition.of` reads it.

        Args:
            ref: `name` or `name@range`.

        Raises:
            NotFound: There is no such workflow; it may be a tool of another kind.

        Example:
            saved = crib.workflows.get("move")
            print(saved.ref, len(WorkflowDefinition.of(saved.definition).steps))
        """
        return self._loop.run(self._workflows.get, ref)

    def graph(self, ref: str) -> WorkflowGraph:
        """All steps and edges of a workflow, each with its state: ok, held at its published revision, or broken.

        The graph of what is not published is that of `check`.

        Args:
            ref: `name` or `name@range`.

        Raises:
            NotFound: There is no such workflow.

        Example:
            graph = crib.workflows.graph("move")
            print([node.name for node in graph.nodes], len(graph.edges))
        """
        return self._loop.run(self._workflows.graph, ref)

    def of(self, ref: str) -> WorkflowDefinition:
        """A deterministic agentic tool as the workflow that it is: its plan, its steps and its answer.

        It runs as the tool does, and is a definition like any other: it can be read, exported, changed and published.

        Args:
            ref: `name` or `name@range` of the tool.

        Raises:
            NotFound: There is no such tool.
            InvalidDefinition: It is not agentic, it has no steps, or its model decides what comes next.

        Example:
            definition = crib.workflows.of("deals")
            print([step.name for step in definition.steps])
        """
        return self._loop.run(self._workflows.of, ref)

    def page(self, *, after: str = "", limit: int = 50, text: str | None = None) -> ToolsPage:
        """The workflows that come after a name and that the principal may see.

        Args:
            after: A name; empty for the beginning.
            limit: At most so many.
            text: Text to find in name, title, description or tags.

        Example:
            page = crib.workflows.page(text="move")
            print([each.name for each in page.items])
        """
        return self._loop.run(self._workflows.page, after=after, limit=limit, text=text)

    def remove(self, name: str) -> None:
        """Remove a workflow from the catalogue; its runs continue.

        Raises:
            NotFound: There is no such workflow.

        Example:
            crib.workflows.remove("move")
        """
        return self._loop.run(self._workflows.remove, name)
