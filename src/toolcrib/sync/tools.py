"""Synchronous forms of the classes of several modules.

`toolcrib.crib.tools.lifecycle`,
`toolcrib.crib.tools.listing`,
`toolcrib.crib.tools.prompts`,
`toolcrib.crib.tools.queries`.

Written by `python -m tools.sync_facade`; not to be edited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic

from toolcrib.core.registry import ItemT
from toolcrib.infrastructure.store.ports.queried_fields import EVERYTHING
from toolcrib.sync.event_loop import EventLoopThread, Facade

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime
    from typing import Any

    from toolcrib.contracts import (
        Baseline,
        Dependent,
        DriftReport,
        ImpactReport,
        JsonObject,
        LifeCycle,
        PromptDifference,
        PromptRevision,
        PromptTest,
        ProposalSource,
        TextProposal,
        ToolDefinition,
        ToolReview,
        ToolRevision,
    )
    from toolcrib.contracts.tools.rendered_prompts import PromptPlaceholders, RenderedPrompt
    from toolcrib.core.registry import Facet, Hit
    from toolcrib.crib.tools.lifecycle import ToolLife as AsynchronousToolLife
    from toolcrib.crib.tools.listing import NamedThings as AsynchronousNamedThings
    from toolcrib.crib.tools.listing import ToolListing as AsynchronousToolListing
    from toolcrib.crib.tools.listing import ToolsPage
    from toolcrib.crib.tools.prompts import Prompts as AsynchronousPrompts
    from toolcrib.crib.tools.queries import Queries as AsynchronousQueries
    from toolcrib.crib.tools.queries import T
    from toolcrib.crib.tools.resources import QueryPage, ResourceName, ToolResource
    from toolcrib.infrastructure.queries.grammar import Condition
    from toolcrib.workflows.edit.impact import NamedKind


class ToolLife(Facade):
    """The life cycle of a crib's tools.

    Args:
        parts: The parts of the crib.
        actor: The actor of the crib.
    """

    def __init__(self, asynchronous: AsynchronousToolLife, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._tool_life = asynchronous

    def deprecate(
        self, ref: str, *, message: str | None = None, sunset: datetime | None = None, replacement: str | None = None
    ) -> ToolRevision:
        """Have everybody warned who uses a version; it still runs, also after its sunset.

        Args:
            ref: `name` or `name@version`.
            message: Why.
            sunset: The time after which it should not be used any more.
            replacement: The tool to use instead.

        Raises:
            NotFound: No such tool, or no such replacement.

        Example:
            crib.lifecycle.deprecate("search_deals@1.0.0", message="Slow.", replacement="list_deals")
        """
        return self._loop.run(self._tool_life.deprecate, ref, message=message, sunset=sunset, replacement=replacement)

    def block(self, ref: str, *, message: str | None = None, replacement: str | None = None) -> ToolRevision:
        """Deny every call of a version, including those of active runs.

        Raises:
            NotFound: No such tool, or no such replacement.

        Example:
            crib.lifecycle.block("search_deals", message="Returns wrong data.")
            print(crib.call("search_deals", company="Acme").error.reason)
        """
        return self._loop.run(self._tool_life.block, ref, message=message, replacement=replacement)

    def activate(self, ref: str) -> ToolRevision:
        """Reactivate a version. Changes that its provider proposes keep waiting.

        Raises:
            NotFound: No such tool.

        Example:
            crib.lifecycle.block("search_deals")
            crib.lifecycle.activate("search_deals")
        """
        return self._loop.run(self._tool_life.activate, ref)

    def warnings(self, definition: ToolDefinition) -> Sequence[str]:
        """What the author of a definition should know, saved or not: deprecated tools that it is bound to.

        Example:
            crib.lifecycle.deprecate("search_deals", message="Slow.")
            print(crib.lifecycle.warnings(desk.definition.tool()))
        """
        return self._loop.run(self._tool_life.warnings, definition)

    def impact(self, ref: str, *, proposed: ToolDefinition | None = None) -> ImpactReport:
        """Whom a tool concerns, and what a change would do to them.

        Args:
            ref: `name` or `name@version`.
            proposed: A changed definition of the tool; if null, the change that its provider proposes, if any.

        Raises:
            NotFound: No such tool.

        Example:
            report = crib.lifecycle.impact("search_deals")
            print([(each.kind, each.name) for each in report.dependents], report.runs)
        """
        return self._loop.run(self._tool_life.impact, ref, proposed=proposed)

    def impact_of_name(self, name: str, *, kind: NamedKind) -> Sequence[Dependent]:
        """What uses something that is no tool, directly or through others.

        A change of the workflow vocabulary reaches workflows when they are published again, one of a provider at once.

        Args:
            name: Of a workflow step, a condition or a provider.
            kind: Which of them.

        Example:
            dependents = crib.lifecycle.impact_of_name("crm", kind="provider")
            print([each.name for each in dependents])
        """
        return self._loop.run(self._tool_life.impact_of_name, name, kind=kind)

    def review(self, name: str) -> ToolReview:
        """A tool as it is, and as its provider proposes it.

        Raises:
            NotFound: No such tool, or no import has made it.

        Example:
            crib.imports.openapi(new_document, name="deals_api")  # a dangerous change is held back
            review = crib.lifecycle.review("list_deals")
            print(review.status, review.diff)
        """
        return self._loop.run(self._tool_life.review, name)

    def accept(self, name: str) -> ToolRevision:
        """Adopt the change that a provider proposes, also in place of a person's changes.

        Raises:
            NotFound: No such tool, or nothing is proposed for it.
            Conflict: The realm has changed since.

        Example:
            crib.imports.openapi(new_document, name="deals_api")
            for waiting in crib.lifecycle.proposals():
                crib.lifecycle.accept(waiting.tool)
        """
        return self._loop.run(self._tool_life.accept, name)

    def reject(self, name: str) -> ToolRevision:
        """Reject the change that a provider proposes; it is never proposed again. A blocked tool stays blocked.

        Raises:
            NotFound: No such tool, or nothing is proposed for it.
            Conflict: The realm has changed since.

        Example:
            crib.imports.openapi(new_document, name="deals_api")
            crib.lifecycle.reject("list_deals")
        """
        return self._loop.run(self._tool_life.reject, name)

    def proposals(self) -> Sequence[Baseline]:
        """The tools for which a change waits for a person, by name.

        Example:
            for waiting in crib.lifecycle.proposals():
                print(waiting.provider, waiting.tool, waiting.proposal.change.worst)
        """
        return self._loop.run(
            self._tool_life.proposals,
        )


class ToolListing(Facade):
    """The tools of a crib as a principal may see them.

    Args:
        registry: Has the tools.
        visibility: Tells which of them a principal may see.
        actor: The principal that reads.
        clock: Time.
    """

    def __init__(self, asynchronous: AsynchronousToolListing, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._tool_listing = asynchronous

    def page(
        self,
        *,
        after: str = "",
        limit: int = 50,
        text: str | None = None,
        facets: Mapping[Facet, str | None] | None = None,
        fits: Callable[[ToolRevision], bool] = lambda _: True,
        among: AbstractSet[str] | None = None,
    ) -> ToolsPage:
        """The tools that come after a name.

        Args:
            after: A name; empty for the beginning.
            limit: At most so many.
            text: Text to find in name, title, description or tags.
            facets: What a tool must have: category, tag, kind of implementation, status; null for any.
            fits: What else must be true of it.
            among: Only tools with these names; null for all.

        Example:
            page = crib.listing.page(text="deals", facets={"kind": "python"}, limit=20)
            print([each.name for each in page.items], page.more)
        """
        return self._loop.run(
            self._tool_listing.page, after=after, limit=limit, text=text, facets=facets, fits=fits, among=among
        )

    def visible(self) -> Sequence[ToolRevision]:
        """All tools that the principal may see, by name.

        Example:
            print([each.name for each in crib.listing.visible()])
        """
        return self._loop.run(
            self._tool_listing.visible,
        )

    def query(
        self,
        resource: ToolResource = "tools",
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int = 50,
        text: str | None = None,
        facets: Mapping[Facet, str | None] | None = None,
        fits: Callable[[ToolRevision], bool] = lambda _: True,
    ) -> QueryPage[ToolRevision]:
        """A page of what a filter means; see `crib.queries`.

        Args:
            resource: Tools of every kind, or those of one.
            filter: A condition such as `category eq 'crm' and enabled`; null for all.
            sort: Fields such as `created_at desc`; null for the order of names.
            after: `next` of the page before, with the same filter and sort.
            limit: At most so many.
            text: As in `page`.
            facets: Likewise.
            fits: Likewise.

        Raises:
            InvalidInput: The filter, the sort or `after` is not valid; the message lists the fields.

        Example:
            page = crib.listing.query("tools", filter="contains(text,'deal') and side_effects eq 'reads'")
            print([each.name for each in page.items], page.next)
        """
        return self._loop.run(
            self._tool_listing.query,
            resource,
            filter=filter,
            sort=sort,
            after=after,
            limit=limit,
            text=text,
            facets=facets,
            fits=fits,
        )

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        group: str | None = None,
        status: LifeCycle | None = "active",
        among: AbstractSet[str] | None = None,
    ) -> Sequence[tuple[ToolRevision, Hit]]:
        """The tools that do what a query says, best first.

        Args:
            query: Words in any order.
            limit: At most so many.
            group: Only tools of this group, or of those below it: `crm` for `crm/deals`.
            status: Tools in another life-cycle state are left out; null for tools in any.
            among: Only tools with these names; null for all.

        Example:
            for found, hit in crib.listing.search("move deals to another stage", limit=3):
                print(found.name, hit.score)
        """
        return self._loop.run(self._tool_listing.search, query, limit=limit, group=group, status=status, among=among)


class NamedThings(Facade, Generic[ItemT]):
    """What people do with things of one kind.

    Args:
        named: Has them.
        actor: The actor of the crib.
        clock: Time.
        check: Refuses what a principal may not save, or what could not be used.
    """

    def __init__(self, asynchronous: AsynchronousNamedThings[ItemT], loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._named_things = asynchronous

    def save(self, item: ItemT, *, after: int | None = None) -> int:
        """Store a new revision, which is used from now on; returns its number.

        Args:
            item: What is stored, in place of the one with its name.
            after: Number of the revision that the author has changed, 0 for none; null to save over whatever is there.

        Raises:
            Conflict: Another revision has been saved since `after`.
            PermissionDenied: It is an account with a grant that the caller does not have.
            InvalidDefinition: It is a word of the workflow vocabulary that no step could use.
            NotFound: It names a tool that does not exist.

        Example:
            from toolcrib.contracts import PromptFragment

            crib.fragments.save(PromptFragment(name="tone", text="Answer briefly and kindly."))
        """
        return self._loop.run(self._named_things.save, item, after=after)

    def revision(self, name: str) -> int:
        """The number of the newest revision.

        Raises:
            NotFound: The name is unknown.

        Example:
            from toolcrib.contracts import PromptFragment

            first = crib.fragments.save(PromptFragment(name="tone", text="Answer briefly."))
            assert crib.fragments.revision("tone") == first
        """
        return self._loop.run(self._named_things.revision, name)

    def get(self, name: str) -> ItemT:
        """The newest revision.

        Raises:
            NotFound: The name is unknown.

        Example:
            from toolcrib.contracts import ServiceAccount

            crib.accounts.save(ServiceAccount(name="deal-bot", grants=("ai://tools/crm/*/execute",)))
            print(crib.accounts.get("deal-bot").grants)
        """
        return self._loop.run(self._named_things.get, name)

    def list(self) -> Sequence[ItemT]:
        """All of the realm, by name.

        Example:
            crib.steps.save(StepRegistration(name="deals.find", tool="search_deals"))
            print([each.name for each in crib.steps.list()])
        """
        return self._loop.run(
            self._named_things.list,
        )

    def remove(self, name: str) -> None:
        """Remove one. Runs that have started keep their fragments; an account is removed with immediate effect.

        Raises:
            NotFound: The name is unknown.

        Example:
            is_won = ConditionBinding(name="is_won", parameters=("stage",), expression="${stage == 'Won'}")
            crib.conditions.save(is_won)
            crib.conditions.remove("is_won")
        """
        return self._loop.run(self._named_things.remove, name)


class Prompts(Facade):
    """The texts of agentic tools, as their authors work on them.

    Args:
        catalogue: Checks and saves definitions.
        registry: The tools.
        providers: The lists that prompts are made from.
        bench: Runs what is not saved.
        preparer: Prepares the runs of tests.
        models: Opens the models that write texts.
        actor: The actor of the crib.
    """

    def __init__(self, asynchronous: AsynchronousPrompts, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._prompts = asynchronous

    def default(self, definition: ToolDefinition) -> str:
        """The default prompt of a tool, saved or not, by rule.

        Raises:
            InvalidDefinition: The tool is not agentic.

        Example:
            print(crib.prompts.default(deals.definition))
        """
        return self._loop.run(self._prompts.default, definition)

    def drift(self, tool: str) -> DriftReport:
        """What has changed in the tools of an agentic tool since its prompt was made; empty for any other tool.

        Raises:
            NotFound: No such tool.

        Example:
            report = crib.prompts.drift("deals")
            print(report.drifted, [change.message for change in report.changes])
        """
        return self._loop.run(self._prompts.drift, tool)

    def regenerate(self, tool: str, *, source: ProposalSource = "generator") -> TextProposal:
        """A new system prompt for a tool as it is now: by rule, or written by the tool's own model.

        Raises:
            NotFound: No such tool.
            InvalidDefinition: The tool is not agentic.
            Unavailable: The model wrote no usable text; the message says why.

        Example:
            proposal = crib.prompts.regenerate("deals")
            print(proposal.reason, proposal.diff)
        """
        return self._loop.run(self._prompts.regenerate, tool, source=source)

    def describe(self, tool: str, *, source: ProposalSource = "generator") -> TextProposal:
        """A new text for parent agents, which exports show: by rule, or written by the tool's own model.

        Raises:
            NotFound: No such tool.
            InvalidDefinition: A model is to write, and the tool has none.
            Unavailable: The model wrote no usable text.

        Example:
            proposal = crib.prompts.describe("deals")
            crib.prompts.accept(proposal)
        """
        return self._loop.run(self._prompts.describe, tool, source=source)

    def accept(self, proposal: TextProposal) -> ToolRevision:
        r"""Store a proposal, as it is or edited, as a new revision.

        Raises:
            Conflict: The tool has changed since the proposal was made.
            InvalidDefinition: The text breaks a rule: an unknown placeholder, a missing part.
            NotFound: No such tool.

        Example:
            proposal = crib.prompts.regenerate("deals")
            edited = proposal.model_copy(update={"proposed": proposal.proposed + "\nNever change a deal that is lost."})
            crib.prompts.accept(edited)
        """
        return self._loop.run(self._prompts.accept, proposal)

    def history(self, tool: str) -> Sequence[PromptRevision]:
        """The prompt in all revisions of a tool, oldest first.

        Raises:
            NotFound: No such tool.
            InvalidDefinition: The tool is not agentic.

        Example:
            for entry in crib.prompts.history("deals"):
                print(entry.revision, entry.made_by, entry.changed)
        """
        return self._loop.run(self._prompts.history, tool)

    def compare(self, tool: str, older: int, newer: int) -> PromptDifference:
        """How the prompt changed from one revision to another.

        Raises:
            NotFound: No such tool or revision.

        Example:
            crib.prompts.accept(crib.prompts.describe("deals"))
            print(crib.prompts.compare("deals", 1, 2).diff or "the prompt is the same")
        """
        return self._loop.run(self._prompts.compare, tool, older, newer)

    def roll_back(self, tool: str, revision: int, *, after: int | None = None) -> ToolRevision:
        """Make an older revision the newest one again, the whole of it, under the version that calls get now.

        Args:
            tool: The tool's name.
            revision: The older revision's number.
            after: Number of the current revision as the author knows it; null for any.

        Raises:
            NotFound: No such tool or revision.
            Conflict: Another revision has been saved since `after`.

        Example:
            crib.prompts.accept(crib.prompts.describe("deals"))
            crib.prompts.roll_back("deals", 1)
        """
        return self._loop.run(self._prompts.roll_back, tool, revision, after=after)

    def test(self, definition: ToolDefinition, arguments: JsonObject) -> PromptTest:
        """Test a tool's prompt with a sample input: returns the model's first calls, which are not made.

        Args:
            definition: The tool as it is, or as it may become; it need not be saved.
            arguments: The sample input. Reads of reference data need the grants that a run needs.

        Raises:
            InvalidDefinition: The tool is not agentic.
            InvalidSettings: Its model cannot be opened.

        Example:
            test = crib.prompts.test(deals.definition, {"task": "Update all Acme Corp deals to Negotiation"})
            print(test.system_prompt, test.answer, test.problems)
        """
        return self._loop.run(self._prompts.test, definition, arguments)

    def render(self, definition: ToolDefinition, arguments: JsonObject) -> RenderedPrompt:
        """The first request that a tool would send to its model for a sample input, with its length. Nothing is sent.

        Args:
            definition: The tool as it is, or as it may become; it need not be saved.
            arguments: The sample input. Reads of reference data need the grants that a run needs.

        Raises:
            InvalidDefinition: The tool is not agentic.
            InvalidSettings: Its model cannot be opened.

        Example:
            found = crib.prompts.render(deals.definition, {"task": "Update all Acme Corp deals to Negotiation"})
            print(found.prompt.system, found.prompt.tokens.total, found.problems)
        """
        return self._loop.run(self._prompts.render, definition, arguments)

    def placeholders(self, definition: ToolDefinition) -> PromptPlaceholders:
        """The placeholders that a tool's system prompt can use, with the present length of their values.

        Args:
            definition: The tool; it need not be saved.

        Raises:
            InvalidDefinition: The tool is not agentic.
            InvalidSettings: Its model cannot be opened.

        Example:
            for each in crib.prompts.placeholders(deals.definition).items:
                print(each.name, each.used, each.tokens)
        """
        return self._loop.run(self._prompts.placeholders, definition)


class Queries(Facade):
    """Finds and counts.

    Args:
        parts: The parts of the crib.
        actor: The principal that asks.
        conversations: Those of the principal.
        lists: Tells everything else that the principal's realm has, by resource; `tools` only what it may see.
    """

    def __init__(self, asynchronous: AsynchronousQueries, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._queries = asynchronous

    def page(
        self,
        resource: ResourceName,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int = 50,
        everybody: bool = False,
        where: Condition = EVERYTHING,
    ) -> QueryPage[Any]:
        """A page of what a filter means, of all that the principal may see.

        Args:
            resource: `runs`, `tools`, `agents`…; `docs/queries.md` has them with their fields.
            filter: A condition such as `status eq 'failed' and cost_usd gt 1`; null for everything.
            sort: Fields such as `cost_usd desc`; null for the usual order: by name, or the newest first.
            after: `next` of the page before, with the same filter and sort.
            limit: At most so many.
            everybody: Conversations of all principals of the realm, and not only of the own ones.
            where: What must be true besides.

        Raises:
            InvalidInput: The filter, the sort or `after` is not valid; the message lists the fields.
            NotFound: There is no run, approval or conversation `after`.
            PermissionDenied: The principal may not read conversations.

        Example:
            crib.invoke("search_deals", {"company": "Acme"})
            page = crib.queries.page("runs", filter="tool eq 'search_deals'", sort="created_at desc")
            print([run.run_id for run in page.items], page.next)
        """
        return self._loop.run(
            self._queries.page,
            resource,
            filter=filter,
            sort=sort,
            after=after,
            limit=limit,
            everybody=everybody,
            where=where,
        )

    def count(
        self,
        resource: ResourceName,
        *,
        filter: str | None = None,
        everybody: bool = False,
        where: Condition = EVERYTHING,
    ) -> int:
        """How many a filter means, of all that the principal may see.

        Args:
            resource: As in `page`.
            filter: Likewise.
            everybody: Likewise.
            where: Likewise.

        Raises:
            InvalidInput: The filter is not valid; the message lists the fields.
            PermissionDenied: The principal may not read conversations.

        Example:
            crib.invoke("search_deals", {"company": "Acme"})
            print(crib.queries.count("runs", filter="status eq 'completed'"))
        """
        return self._loop.run(self._queries.count, resource, filter=filter, everybody=everybody, where=where)

    def select(
        self, resource: ResourceName, rows: Iterable[T], *, filter: str | None = None, sort: str | None = None
    ) -> Sequence[T]:
        """Those of some things that a filter means, in order; without a sort they stay in theirs.

        Args:
            resource: What they are.
            rows: The things.
            filter: As in `page`.
            sort: Likewise.

        Raises:
            InvalidInput: The filter or the sort is not valid; the message lists the fields.

        Example:
            deals = crib.fragments.list()
            print(crib.queries.select("fragments", deals, filter="startswith(name,'deal')", sort="name desc"))
        """
        return self._loop.call(self._queries.select, resource, rows, filter=filter, sort=sort)
