"""The life cycle of tools: deprecate and block them, show who is affected, and review changes that providers made.

Example:
    await crib.lifecycle.deprecate("search_deals@1.0.0", message="Slow.", replacement="list_deals")
    report = await crib.lifecycle.impact("search_deals@1.0.0")
    for waiting in await crib.lifecycle.proposals():
        print((await crib.lifecycle.review(waiting.tool)).diff)
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from toolcrib.contracts import (
    Baseline,
    Dependent,
    ImpactReport,
    NotFound,
    PinnedRun,
    Principal,
    Run,
    RunStatus,
    ToolDefinition,
    ToolReview,
    ToolRevision,
    VersionLife,
)
from toolcrib.core.registry import classify, concerns, dependents_of, warnings_for
from toolcrib.crib.container.access import Actor
from toolcrib.crib.container.adoption import Adoptions
from toolcrib.crib.container.container import CribServices
from toolcrib.workflows.edit.impact import NamedKind, judge_dependents, users_of

_UNDER_WAY: Final[tuple[RunStatus, ...]] = (
    "queued",
    "running",
    "awaiting_approval",
    "awaiting_client",
    "awaiting_answer",
)
_MOST_RUNS: Final = 1000
"""Maximum number of runs of each status that are examined, the newest first."""


class ToolLife:
    """The life cycle of a crib's tools.

    Args:
        parts: The parts of the crib.
        actor: The actor of the crib.
    """

    def __init__(self, parts: CribServices, actor: Actor) -> None:
        self._parts = parts
        self._actor = actor

    @property
    def _adoptions(self) -> Adoptions:
        return self._parts.adoptions

    # States -----------------------------------------------------------------------------------------------------------

    async def deprecate(
        self,
        ref: str,
        *,
        message: str | None = None,
        sunset: datetime | None = None,
        replacement: str | None = None,
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
            await crib.lifecycle.deprecate("search_deals@1.0.0", message="Slow.", replacement="list_deals")
        """
        life = VersionLife(version=ref, status="deprecated", message=message, sunset=sunset, replacement=replacement)
        return await self._set(life)

    async def block(
        self,
        ref: str,
        *,
        message: str | None = None,
        replacement: str | None = None,
    ) -> ToolRevision:
        """Deny every call of a version, including those of active runs.

        Raises:
            NotFound: No such tool, or no such replacement.

        Example:
            await crib.lifecycle.block("search_deals", message="Returns wrong data.")
            print((await crib.call("search_deals", company="Acme")).error.reason)
        """
        life = VersionLife(version=ref, status="blocked", message=message, replacement=replacement)
        return await self._set(life)

    async def activate(self, ref: str) -> ToolRevision:
        """Reactivate a version. Changes that its provider proposes keep waiting.

        Raises:
            NotFound: No such tool.

        Example:
            await crib.lifecycle.block("search_deals")
            await crib.lifecycle.activate("search_deals")
        """
        return await self._set(VersionLife(version=ref))

    async def warnings(self, definition: ToolDefinition) -> Sequence[str]:
        """What the author of a definition should know, saved or not: deprecated tools that it is bound to.

        Example:
            await crib.lifecycle.deprecate("search_deals", message="Slow.")
            print(await crib.lifecycle.warnings(desk.definition.tool()))
        """
        who = await self._actor.authorize()
        return warnings_for(definition, self._parts.registry, who.realm, self._parts.outside.clock.now())

    # Impact -----------------------------------------------------------------------------------------------------------

    async def impact(self, ref: str, *, proposed: ToolDefinition | None = None) -> ImpactReport:
        """Whom a tool concerns, and what a change would do to them.

        Args:
            ref: `name` or `name@version`.
            proposed: A changed definition of the tool; if null, the change that its provider proposes, if any.

        Raises:
            NotFound: No such tool.

        Example:
            report = await crib.lifecycle.impact("search_deals")
            print([(each.kind, each.name) for each in report.dependents], report.runs)
        """
        who = await self._actor.authorize(newest=True)
        registry = self._parts.registry
        target = registry.require(who.realm, ref)
        definition = proposed or await self._find_proposal(target, who)
        change = None if definition is None else classify(target.definition, definition)
        providers = self._parts.providers.current(who.realm)
        dependents = dependents_of(target, registry, providers, change)
        if definition is not None:
            dependents = judge_dependents(
                dependents, _as_saved(target, definition), self._parts.catalogue.around(who.realm)
            )
        return ImpactReport(
            tool=target.ref,
            content_hash=target.content_hash,
            status=target.status,
            dependents=tuple(dependents),
            runs=tuple(await self._runs(target, who.realm)),
            proposed=change,
        )

    async def impact_of_name(self, name: str, *, kind: NamedKind) -> Sequence[Dependent]:
        """What uses something that is no tool, directly or through others.

        A change of the workflow vocabulary reaches workflows when they are published again, one of a provider at once.

        Args:
            name: Of a workflow step, a condition or a provider.
            kind: Which of them.

        Example:
            dependents = await crib.lifecycle.impact_of_name("crm", kind="provider")
            print([each.name for each in dependents])
        """
        who = await self._actor.authorize(newest=True)
        return users_of(name, kind, self._parts.catalogue.around(who.realm))

    # What providers want ----------------------------------------------------------------------------------------------

    async def review(self, name: str) -> ToolReview:
        """A tool as it is, and as its provider proposes it.

        Raises:
            NotFound: No such tool, or no import has made it.

        Example:
            await crib.imports.openapi(new_document, name="deals_api")  # a dangerous change is held back
            review = await crib.lifecycle.review("list_deals")
            print(review.status, review.diff)
        """
        return await self._adoptions.review(name, await self._actor.authorize())

    async def accept(self, name: str) -> ToolRevision:
        """Adopt the change that a provider proposes, also in place of a person's changes.

        Raises:
            NotFound: No such tool, or nothing is proposed for it.
            Conflict: The realm has changed since.

        Example:
            await crib.imports.openapi(new_document, name="deals_api")
            for waiting in await crib.lifecycle.proposals():
                await crib.lifecycle.accept(waiting.tool)
        """
        return await self._adoptions.accept(name, await self._actor.authorize())

    async def reject(self, name: str) -> ToolRevision:
        """Reject the change that a provider proposes; it is never proposed again. A blocked tool stays blocked.

        Raises:
            NotFound: No such tool, or nothing is proposed for it.
            Conflict: The realm has changed since.

        Example:
            await crib.imports.openapi(new_document, name="deals_api")
            await crib.lifecycle.reject("list_deals")
        """
        return await self._adoptions.reject(name, await self._actor.authorize())

    async def proposals(self) -> Sequence[Baseline]:
        """The tools for which a change waits for a person, by name.

        Example:
            for waiting in await crib.lifecycle.proposals():
                print(waiting.provider, waiting.tool, waiting.proposal.change.worst)
        """
        who = await self._actor.authorize()
        return await self._adoptions.proposals(who.realm)

    async def _set(self, life: VersionLife) -> ToolRevision:
        who = await self._actor.authorize(newest=True)
        if life.replacement is not None:
            self._parts.registry.require(who.realm, life.replacement)
        changed = await self._parts.registry.set_status(
            who.realm,
            life.version,
            life.status,
            message=life.message,
            sunset=life.sunset,
            replacement=life.replacement,
        )
        return changed.model_copy(update={"warnings": concerns(changed, self._parts.registry)})

    async def _find_proposal(self, target: ToolRevision, who: Principal) -> ToolDefinition | None:
        """The change that a tool's provider proposes, if any."""
        try:
            proposal = (await self._adoptions.review(target.name, who)).proposal
        except NotFound:
            return None
        return None if proposal is None else proposal.definition

    async def _runs(self, target: ToolRevision, realm: str) -> Sequence[PinnedRun]:
        """Active runs that use this revision, or started with another revision of the name."""
        journal = self._parts.outside.store.journal
        found: list[Run] = []
        for status in _UNDER_WAY:
            found += await journal.runs(realm, status=status, limit=_MOST_RUNS)
        pinned = (
            (run, _pin_of(run, target.name)) for run in sorted(found, key=lambda run: (run.created_at, run.run_id))
        )
        return [
            PinnedRun(run_id=run.run_id, tool=run.request.tool, status=run.status, content_hash=content_hash)
            for run, content_hash in pinned
            if content_hash is not None
        ]


def _as_saved(target: ToolRevision, proposed: ToolDefinition) -> ToolRevision:
    """The revision that a definition would become, if it were saved."""
    return target.model_copy(
        update={
            "definition": proposed,
            "content_hash": proposed.content_hash(),
            "revision": target.revision + 1,
            "status": "active",
        }
    )


def _pin_of(run: Run, name: str) -> str | None:
    """The revision of a name that a run uses."""
    request = run.request
    if request.tool_name == name:
        return request.content_hash
    return next((pin for ref, pin in request.pins.items() if ref.partition("@")[0] == name), None)
