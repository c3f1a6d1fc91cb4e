"""Workflows of a crib: check, draft, publish, read and remove them.

A published workflow is a tool: it is called, listed and searched for like any other. Drafts are stored under the name
of the workflow, with their own revisions, and are read from the store each time.

Example:
    step = {"name": "deals", "tool": "search_deals", "input": {"company": "Acme"}}
    definition = {"name": "list_acme", "steps": [step]}
    graph = await crib.workflows.check(definition)  # lists every problem, and saves nothing
    draft = await crib.workflows.draft(definition)  # saves it beside the published one
    done = await crib.workflows.publish("list_acme")
    print(done.tool.ref, done.impact, done.problems)
"""

from collections.abc import Sequence
from typing import Any, Final

from pydantic import ValidationError

from toolcrib.agents import workflow_of
from toolcrib.contracts import (
    Conflict,
    ImpactReport,
    InvalidDefinition,
    JsonObject,
    NotFound,
    Principal,
    ToolDefinition,
    ToolRevision,
    content_hash,
)
from toolcrib.contracts.workflows import (
    Materialized,
    MaterializePreview,
    PastCall,
    Publication,
    WorkflowDefinition,
    WorkflowDraft,
    WorkflowGraph,
    WorkflowImplementation,
    WorkflowProblem,
    WorkflowStep,
)
from toolcrib.core.policy import require_publish
from toolcrib.core.registry import Facet, why_unreadable
from toolcrib.crib.agents.executions import Executions
from toolcrib.crib.container.access import Actor
from toolcrib.crib.container.container import CribServices
from toolcrib.crib.tools.lifecycle import ToolLife
from toolcrib.crib.tools.listing import ToolListing, ToolsPage
from toolcrib.crib.workflows.materialize import Material, Materials
from toolcrib.infrastructure.store import Definition, Definitions
from toolcrib.workflows.checks import Checked, DefinitionDocument, draw, read_definition, refusal
from toolcrib.workflows.edit.published_status import standing_of

_STORED: Final = {"definition", "note", "authored_by", "run_id", "tainted_by"}
_VERSION: Final = "1.0.0"
"""Of the row; the definition in it has one of its own."""


class Drafts:
    """The drafts of a crib.

    Args:
        definitions: Where they are kept.
    """

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions

    async def save(self, draft: WorkflowDraft, who: Principal, *, after: int | None) -> WorkflowDraft:
        """Append a revision; the same content as the newest one is that revision.

        Args:
            draft: What is to be kept; its number is assigned here.
            who: The principal that acts, in its realm.
            after: Number of the revision that the author has changed; 0 for a new draft, null for any.

        Raises:
            Conflict: Another revision has been saved since `after`.
        """
        body = draft.model_dump(mode="json", include=_STORED)
        new = Definition(
            kind="draft",
            realm=who.realm,
            name=draft.definition.name,
            version=_VERSION,
            revision=0,
            content_hash=content_hash(body),
            body=body,
            made_by=who.id,
            created_at=draft.created_at,
        )
        stored = await self._definitions.save(new, after=after)
        metadata = {"revision": stored.revision, "made_by": stored.made_by, "created_at": stored.created_at}
        return draft.model_copy(update=metadata)

    async def current(self, realm: str) -> Sequence[WorkflowDraft]:
        """The newest revision of each, by name. If one cannot be read, the value is the error."""
        newest = {stored.name: stored for stored in await self._definitions.revisions("draft", realm)}
        return [_read(newest[name]) for name in sorted(newest)]

    async def find(self, realm: str, name: str) -> WorkflowDraft | None:
        """The newest revision, or null.

        Raises:
            InvalidDefinition: Another release has saved it, and this one cannot read it.
        """
        stored = await self._definitions.revisions("draft", realm, name)
        return _read_valid(stored[-1]) if stored else None

    async def require(self, realm: str, name: str, *, revision: int | None = None) -> WorkflowDraft:
        """The newest revision.

        Args:
            realm: Where it is.
            name: The name of the workflow.
            revision: The number that it must have; null for any.

        Raises:
            NotFound: The name is unknown.
            InvalidDefinition: As `find`.
            Conflict: It has another number.
        """
        found = await self.find(realm, name)
        if found is None:
            raise NotFound(f"there is no draft {name!r} in realm {realm!r}; list the drafts for the names there are")
        if revision is not None and found.revision != revision:
            msg = f"draft {name!r} is at revision {found.revision}, and not at {revision}, which was looked at"
            raise Conflict(f"{msg}; look at it as it is now")
        return found

    async def last_two(self, realm: str, name: str) -> tuple[WorkflowDraft | None, WorkflowDraft]:
        """The newest revision, behind the one before it, or null if it is the first.

        Raises:
            NotFound: The name is unknown.
            InvalidDefinition: As `find`.
        """
        last = await self.require(realm, name)
        stored = await self._definitions.revisions("draft", realm, name)
        return (_read_valid(stored[-2]) if len(stored) > 1 else None), last

    async def remove(self, realm: str, name: str) -> bool:
        """Remove a draft; false if there is none."""
        return await self._definitions.remove("draft", realm, name) > 0


def _read(stored: Definition) -> WorkflowDraft:
    """A stored draft; one that cannot be read has an empty definition, and the reason as its problem."""
    metadata: dict[str, Any] = {"revision": stored.revision, "made_by": stored.made_by, "created_at": stored.created_at}
    try:
        return WorkflowDraft.model_validate({**stored.body, **metadata})
    except ValidationError as problem:
        why = WorkflowProblem(path="", message=f"draft {stored.name!r} {why_unreadable(problem)}")
        empty = WorkflowDefinition(name=stored.name, status="disabled", steps=(WorkflowStep(name="unreadable"),))
        return WorkflowDraft(definition=empty, problems=(why,), **metadata)


def _read_valid(stored: Definition) -> WorkflowDraft:
    draft = _read(stored)
    if draft.problems:
        raise InvalidDefinition(draft.problems[0].message)
    return draft


class Workflows:
    """The workflows of a crib.

    Args:
        parts: The parts of the crib.
        listing: The crib's listing, which knows what a principal may see.
        life: The crib's life cycle, which knows the impact of a change.
        executions: The crib's executions, which know which runs a principal may read.
        actor: The actor of the crib.
    """

    def __init__(
        self, parts: CribServices, listing: ToolListing, life: ToolLife, executions: Executions, actor: Actor
    ) -> None:
        self._parts = parts
        self._listing = listing
        self._life = life
        self._actor = actor
        self._drafts = Drafts(parts.outside.store.definitions)
        self._materials = Materials(parts, executions)

    # Writing ----------------------------------------------------------------------------------------------------------

    async def check(self, definition: WorkflowDefinition | JsonObject) -> WorkflowGraph:
        """The graph of a definition, with all its problems; an invalid definition does not raise.

        Args:
            definition: The definition, or a document that may be one.

        Example:
            step = {"name": "found", "tool": "search_dels", "input": {"company": "Acme"}}
            graph = await crib.workflows.check({"name": "list_acme", "steps": [step]})
            print([problem.message for problem in graph.problems])
        """
        who = await self._actor.authorize(newest=True)
        found = read_definition(definition)
        if found.definition is None:
            name = definition.get("name") if isinstance(definition, dict) else None
            return WorkflowGraph(workflow=str(name or ""), problems=self._all_problems(found, who))
        checked = self._parts.catalogue.check_workflow(found.definition, who.realm, who)
        callees = self._parts.catalogue.around(who.realm).callees(checked.implementation)
        return draw(checked.tool, checked.problems, callees)

    async def draft(
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
            draft = await crib.workflows.draft({"name": "list_acme", "steps": [step]}, note="For the weekly report")
            print(draft.revision, draft.problems)
        """
        who = await self._actor.authorize(newest=True)
        checked = self._sound(definition, who)
        new = WorkflowDraft(
            definition=WorkflowDefinition.of(checked.tool),
            note=note,
            authored_by=authored_by,
            run_id=run_id,
            tainted_by=tainted_by,
            revision=1,
            made_by=who.id,
            created_at=self._parts.outside.clock.now(),
            problems=checked.warnings,
        )
        return await self._drafts.save(new, who, after=after)

    async def drafts(self) -> Sequence[WorkflowDraft]:
        """All drafts of the realm, by name.

        Example:
            for draft in await crib.workflows.drafts():
                print(draft.definition.name, draft.made_by, draft.note)
        """
        return await self._drafts.current((await self._actor.authorize()).realm)

    async def get_draft(self, name: str) -> WorkflowDraft:
        """A draft, with what is wrong with it by now.

        Raises:
            NotFound: The name is unknown.
            InvalidDefinition: Another release has saved it, and this one cannot read it.

        Example:
            await crib.workflows.draft(move.definition)
            draft = await crib.workflows.get_draft("move")
            print(draft.revision, draft.problems)
        """
        who = await self._actor.authorize(newest=True)
        draft = await self._drafts.require(who.realm, name)
        checked = self._parts.catalogue.check_workflow(draft.definition, who.realm, who)
        return draft.model_copy(update={"problems": checked.problems})

    async def discard(self, name: str) -> None:
        """Take a draft out; the published workflow of its name stays.

        Raises:
            NotFound: The name is unknown.

        Example:
            await crib.workflows.draft(move.definition)
            await crib.workflows.discard("move")
        """
        who = await self._actor.authorize()
        if not await self._drafts.remove(who.realm, name):
            await self._drafts.require(who.realm, name)

    async def undo(self, name: str) -> WorkflowDraft | None:
        """Take the last change of a draft back; what was published is taken back with `revert`.

        Returns:
            The draft as it was before, which is its newest revision once more; null if there was none before.

        Raises:
            NotFound: There is no draft of this name.
            Conflict: It has been saved again since.

        Example:
            await crib.workflows.draft(move.definition)
            await crib.workflows.draft(move.definition.model_copy(update={"title": "Move deals"}))
            draft = await crib.workflows.undo("move")
            print(draft.definition.title)
        """
        who = await self._actor.authorize()
        before, last = await self._drafts.last_two(who.realm, name)
        if before is None:
            await self._drafts.remove(who.realm, name)
            return None
        return await self._drafts.save(before, who, after=last.revision)

    async def materialize(
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
            await crib.workflows.publish({"name": "report", "steps": [ask]})
            instance = await crib.instances.start("report", {})
            [asked] = instance.steps[0].child_run_ids
            change = await crib.workflows.materialize("report", run_id=asked, position="t1.c1", step="found")
            print(change.tool, change.rewired)
        """
        past = PastCall(run_id=run_id, node=node, call_id=call_id, position=position, pin=pin)
        made, _, draft = await self._material(name, past, step)
        saved = await self.draft(
            made.rewired.document,
            note=made.note if draft is None else "\n".join(filter(None, (draft.note, made.note))),
            authored_by=None if draft is None else draft.authored_by,
            run_id=None if draft is None else draft.run_id,
            tainted_by=made.tainted_by if draft is None else draft.tainted_by or made.tainted_by,
            after=0 if draft is None else draft.revision,
        )
        return made.to_result(saved, draft)

    async def preview_materialize(
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
            await crib.workflows.publish({"name": "report", "steps": [ask]})
            instance = await crib.instances.start("report", {})
            [asked] = instance.steps[0].child_run_ids
            preview = await crib.workflows.preview_materialize("report", run_id=asked, position="t1.c1", step="found")
            print(preview.diff, preview.problems)
        """
        past = PastCall(run_id=run_id, node=node, call_id=call_id, position=position, pin=pin)
        made, now, draft = await self._material(name, past, step)
        return made.to_preview(now, draft, await self.check(made.rewired.document))

    async def _material(
        self, name: str, past: PastCall, step: str
    ) -> tuple[Material, WorkflowDefinition, WorkflowDraft | None]:
        """A past call as a step, the definition that it is for, and its draft, if there is one."""
        who = await self._actor.authorize(newest=True)
        draft = await self._drafts.find(who.realm, name)
        now = WorkflowDefinition.of(self._require(who.realm, name).definition) if draft is None else draft.definition
        inside = self._parts.catalogue.check_workflow(now, who.realm).implementation
        return await self._materials.material(now, inside, past, step, who), now, draft

    # Publishing -------------------------------------------------------------------------------------------------------

    async def publish(
        self,
        definition: WorkflowDefinition | JsonObject | str,
        *,
        after: int | None = None,
        draft: int | None = None,
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
            published = await crib.workflows.publish({"name": "list_acme", "steps": [step]})
            print(published.tool.ref, published.problems)
            print((await crib.call("list_acme")).output)
        """
        who = await self._actor.authorize(newest=True)
        if isinstance(definition, str):
            require_publish(who, definition)
            definition = (await self._drafts.require(who.realm, definition, revision=draft)).definition
        checked = self._sound(definition, who)
        published = await self._publish(checked.tool, who, after)
        await self._drafts.remove(who.realm, checked.tool.name)
        return published.model_copy(update={"problems": checked.warnings})

    async def revert(self, name: str, revision: int, *, after: int | None = None) -> Publication:
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
            await crib.workflows.publish(move.definition.model_copy(update={"title": "Move deals"}))
            published = await crib.workflows.revert("move", 1)
            print(published.tool.revision)
        """
        who = await self._actor.authorize(newest=True)
        current = self._require(who.realm, name)
        known = await self._parts.registry.revisions(who.realm, current.name)
        older = next((one for one in known if one.revision == revision), None)
        if older is None or not isinstance(older.definition.implementation, WorkflowImplementation):
            numbers = f"1 to {known[-1].revision}"
            raise NotFound(f"workflow {name!r} has no revision {revision}; there are {numbers}")
        checked = self._sound(WorkflowDefinition.of(older.definition), who)
        tool = older.definition.model_copy(update={"version": current.version})  # what a call without a version gets
        published = await self._publish(tool, who, after)
        return published.model_copy(update={"problems": checked.warnings})

    async def impact(self, definition: WorkflowDefinition | JsonObject | str) -> ImpactReport | None:
        """Whom publishing a workflow would concern; null if there is nothing of its name.

        Args:
            definition: The definition, its document, or the name of a draft.

        Raises:
            NotFound: There is no draft of this name.
            InvalidDefinition: It could not be published; `problems` lists all errors.

        Example:
            await crib.workflows.draft(move.definition.model_copy(update={"title": "Move deals"}))
            report = await crib.workflows.impact("move")
            print([each.name for each in report.dependents])
        """
        who = await self._actor.authorize(newest=True)
        if isinstance(definition, str):
            definition = (await self._drafts.require(who.realm, definition)).definition
        return await self._impact_of_change(self._sound(definition, who).tool, who)

    async def _publish(self, tool: ToolDefinition, who: Principal, after: int | None) -> Publication:
        impact = await self._impact_of_change(tool, who)
        return Publication(tool=await self._parts.catalogue.keep(tool, who, after=after), impact=impact)

    async def _impact_of_change(self, tool: ToolDefinition, who: Principal) -> ImpactReport | None:
        known = self._parts.registry.find_by_ref(who.realm, tool.name)
        return None if known is None else await self._life.impact(tool.name, proposed=tool)

    def _all_problems(self, found: DefinitionDocument, who: Principal) -> tuple[WorkflowProblem, ...]:
        """What is wrong with the form of a document, and with what of it has the right form."""
        if found.rest is None:
            return found.problems
        return found.with_further(self._parts.catalogue.check_workflow(found.rest, who.realm, who).problems)

    def _sound(self, definition: WorkflowDefinition | JsonObject, who: Principal) -> Checked:
        found = read_definition(definition)
        if found.definition is None:
            name = definition.get("name") if isinstance(definition, dict) else None
            raise refusal(str(name or ""), self._all_problems(found, who))
        checked = self._parts.catalogue.check_workflow(found.definition, who.realm, who)
        if checked.errors:
            raise refusal(checked.tool.name, checked.errors)
        return checked

    # Reading ----------------------------------------------------------------------------------------------------------

    async def get(self, ref: str) -> ToolRevision:
        """The revision of a workflow; `WorkflowDefinition.of` reads it.

        Args:
            ref: `name` or `name@range`.

        Raises:
            NotFound: There is no such workflow; it may be a tool of another kind.

        Example:
            saved = await crib.workflows.get("move")
            print(saved.ref, len(WorkflowDefinition.of(saved.definition).steps))
        """
        who = await self._actor.authorize(newest=True)
        return self._require(who.realm, ref)

    async def graph(self, ref: str) -> WorkflowGraph:
        """All steps and edges of a workflow, each with its state: ok, held at its published revision, or broken.

        The graph of what is not published is that of `check`.

        Args:
            ref: `name` or `name@range`.

        Raises:
            NotFound: There is no such workflow.

        Example:
            graph = await crib.workflows.graph("move")
            print([node.name for node in graph.nodes], len(graph.edges))
        """
        tool = await self.get(ref)
        return standing_of(tool, self._parts.catalogue.around(tool.realm))

    async def of(self, ref: str) -> WorkflowDefinition:
        """A deterministic agentic tool as the workflow that it is: its plan, its steps and its answer.

        It runs as the tool does, and is a definition like any other: it can be read, exported, changed and published.

        Args:
            ref: `name` or `name@range` of the tool.

        Raises:
            NotFound: There is no such tool.
            InvalidDefinition: It is not agentic, it has no steps, or its model decides what comes next.

        Example:
            definition = await crib.workflows.of("deals")
            print([step.name for step in definition.steps])
        """
        who = await self._actor.authorize(newest=True)
        return workflow_of(self._parts.registry.require(who.realm, ref))

    async def page(self, *, after: str = "", limit: int = 50, text: str | None = None) -> ToolsPage:
        """The workflows that come after a name and that the principal may see.

        Args:
            after: A name; empty for the beginning.
            limit: At most so many.
            text: Text to find in name, title, description or tags.

        Example:
            page = await crib.workflows.page(text="move")
            print([each.name for each in page.items])
        """
        facets: dict[Facet, str | None] = {"kind": "workflow"}
        return await self._listing.page(after=after, limit=limit, text=text, facets=facets)

    async def remove(self, name: str) -> None:
        """Remove a workflow from the catalogue; its runs continue.

        Raises:
            NotFound: There is no such workflow.

        Example:
            await crib.workflows.remove("move")
        """
        who = await self._actor.authorize(newest=True)
        await self._parts.registry.remove(who.realm, self._require(who.realm, name).name)

    def _require(self, realm: str, ref: str) -> ToolRevision:
        found = self._parts.registry.find_by_ref(realm, ref)
        if found is not None and isinstance(found.definition.implementation, WorkflowImplementation):
            return found
        if found is not None and found.status == "blocked":  # another release may have saved it
            raise NotFound(f"no workflow {ref!r} in realm {realm!r}: {found.ref} is blocked, {found.status_message}")
        names = sorted(self._parts.registry.index(realm).having("kind", "workflow"))[:10]
        known = f"available: {', '.join(names)}" if names else "publish it first"
        raise NotFound(f"no workflow {ref!r} in realm {realm!r}; {known}")
