"""Stores imported providers and tools in a realm, and applies decisions on changes that were held back.

An import is one transaction: the provider, its tools, their baselines and their life-cycle states are stored together
or not at all. `core.registry.changes.adoption` decides; nothing here calls a tool.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from difflib import unified_diff
from typing import Final

from toolcrib.contracts import (
    AdoptedTool,
    Baseline,
    Conflict,
    Contract,
    ImportOutcome,
    NotFound,
    Principal,
    ProviderBaseline,
    ProviderDefinition,
    ToolDefinition,
    ToolProposal,
    ToolReview,
    ToolRevision,
    VersionLife,
    content_hash,
)
from toolcrib.core.executor import Clock
from toolcrib.core.providers import ImportedApi
from toolcrib.core.registry import (
    Decision,
    NameState,
    Providers,
    Registry,
    SchemaCopies,
    check_definition,
    concerns,
    plan_absence,
    plan_adoption,
    plan_provider,
    restored,
    stored_provider,
    stored_tool,
    versions_of,
    with_adopted,
)
from toolcrib.crib.container.catalogue import Catalogue
from toolcrib.infrastructure.store import Definition, Definitions, VersionState

_ATTEMPTS: Final = 5
"""Of an import in a realm in which others save at the same time."""
_FEW: Final = 4
"""Tools of a provider, fewer of which may all be gone at once."""
_OF_PROVIDER: Final = "provider:"
"""Begins the name of a provider's baseline; no tool has a colon in its name."""
_CONCERNING: Final = frozenset({"changed", "held", "gone", "returned"})
"""The decisions that change the state of an existing tool."""


@dataclass(slots=True)
class _Read:
    """The baselines of one realm, as they were after some change."""

    seen: int = -1
    all: dict[str, Definition] = field(default_factory=dict[str, Definition])
    """The newest revisions, of providers too."""
    tools: dict[str, Baseline] = field(default_factory=dict[str, Baseline])


class Adoptions:
    """Baselines of a crib's imported tools.

    Args:
        definitions: Where everything is kept.
        registry: The tools.
        providers: The providers.
        catalogue: Checks definitions.
        clock: Time.
    """

    def __init__(
        self,
        definitions: Definitions,
        *,
        registry: Registry,
        providers: Providers,
        catalogue: Catalogue,
        clock: Clock,
    ) -> None:
        self._definitions = definitions
        self._registry = registry
        self._providers = providers
        self._catalogue = catalogue
        self._clock = clock
        self._read: dict[str, _Read] = {}

    async def adopt(
        self, imported: ImportedApi, who: Principal, *, accept: bool, partial: bool, careful: bool = False
    ) -> ImportedApi:
        """Store what an import has made, as far as it may be stored without a person.

        Args:
            imported: The provider and its tools.
            who: The principal that acts, in its realm.
            accept: Take over also what a person would have to look at.
            partial: The tools are some of the provider's: of others nothing is said.
            careful: Refuse an offer that lacks most of the provider's tools.

        Returns:
            The import with its outcome.

        Raises:
            Conflict: The provider would be reached in another way, and `accept` is false; others keep changing the
                realm; or too much is missing.
            InvalidDefinition: A definition is not well formed; nothing is stored.
        """
        decisions: Sequence[Decision] = ()
        for left in reversed(range(_ATTEMPTS)):
            changes = await self._definitions.changes(who.realm)
            await self._catalogue.refresh(who.realm)
            provider = await self._provider(imported.provider, who, accept=accept)
            decisions = await self._decisions(imported, who, accept=accept, partial=partial)
            if careful:
                _refuse_loss(imported, decisions)
            try:
                await self._store(decisions, who, changes, provider)
            except Conflict:
                if not left:
                    raise
            else:
                break
        reports = tuple(decision.report for decision in decisions)
        warnings = tuple(self._concerns(reports, who.realm))
        return replace(
            imported, outcome=ImportOutcome(provider=imported.provider.name, tools=reports, warnings=warnings)
        )

    async def review(self, name: str, who: Principal) -> ToolReview:
        """A tool as it is, and as its provider proposes it.

        Raises:
            NotFound: No such tool, or no import has made it.
        """
        current, baseline = await self._require_baseline(name, who)
        proposal = baseline.proposal
        return ToolReview(
            tool=current.name,
            provider=baseline.provider,
            status=current.status,
            current=current.definition,
            changed_by_person=current.content_hash != baseline.adopted,
            proposal=proposal,
            diff=_diff(current.definition, proposal.definition) if proposal is not None else "",
        )

    async def accept(self, name: str, who: Principal) -> ToolRevision:
        """Take a proposed change over, also in place of a person's own.

        Raises:
            NotFound: No such tool, or nothing is proposed for it.
            Conflict: The tool has changed since.
        """
        changes = await self._definitions.changes(who.realm)
        current, baseline, proposal = await self._require_proposal(name, who)
        checked = self._checked(proposal.definition, who.realm)
        updated = with_adopted(baseline, proposal.change.after)
        report = AdoptedTool(tool=current.name, adoption="changed", change=proposal.change)
        states = restored(baseline, self._versions(who.realm, name))
        await self._store([Decision(report, save=checked, baseline=updated, states=states)], who, changes)
        accepted = self._registry.require(who.realm, name)
        return accepted.model_copy(update={"warnings": concerns(accepted, self._registry)})

    async def reject(self, name: str, who: Principal) -> ToolRevision:
        """Drop a proposed change, and never propose the same again. A tool that it has blocked stays blocked.

        A tool that was called as it was meanwhile goes on so, without the warning.

        Raises:
            NotFound: No such tool, or nothing is proposed for it.
            Conflict: The tool has changed since.
        """
        changes = await self._definitions.changes(who.realm)
        current, baseline, proposal = await self._require_proposal(name, who)
        kept = baseline.model_copy(update={"proposal": None, "rejected": proposal.change.after})
        report = AdoptedTool(tool=current.name, adoption="kept", change=proposal.change)
        states: Sequence[VersionLife] = ()
        if current.status != "blocked":
            states = restored(baseline, self._versions(who.realm, name))
            kept = kept.model_copy(update={"blocked": ()})
        await self._store([Decision(report, baseline=kept, states=states)], who, changes)
        return self._registry.require(who.realm, name)

    async def proposals(self, realm: str) -> Sequence[Baseline]:
        """The baselines for which a change waits for a person, by tool."""
        known = await self._baselines(realm)
        return [baseline for baseline in known.values() if baseline.proposal is not None]

    def _concerns(self, reports: Sequence[AdoptedTool], realm: str) -> Iterator[str]:
        """What was done to workflows by changing, blocking or bringing back tools."""
        for each in reports:
            current = self._registry.find(realm, each.tool, None)
            if each.adoption in _CONCERNING and current is not None:
                yield from concerns(current, self._registry)

    async def _provider(self, offered: ProviderDefinition, who: Principal, *, accept: bool) -> Sequence[Definition]:
        """The provider and its baseline, as they are to be stored."""
        name, at = f"{_OF_PROVIDER}{offered.name}", self._clock.now()
        known = (await self._newest(who.realm)).get(name)
        before = ProviderBaseline.model_validate(known.body).offered if known is not None else None
        current = self._providers.find(who.realm, offered.name)
        wanted = plan_provider(offered, current, before, accept=accept)
        baseline = ProviderBaseline(offered=offered)
        return [
            stored_provider(wanted, realm=who.realm, made_by=who.id, at=at),
            self._baseline_definition(name, baseline, who, at),
        ]

    async def _decisions(
        self, imported: ImportedApi, who: Principal, *, accept: bool, partial: bool
    ) -> Sequence[Decision]:
        provider, at = imported.provider.name, self._clock.now()
        known = await self._baselines(who.realm)
        decisions: list[Decision] = []
        for offer in imported.tools:
            checked = self._checked(offer, who.realm, imported.provider)
            standing = await self._standing(who.realm, offer.name, known.get(offer.name), checked.content_hash())
            decisions.append(plan_adoption(provider, checked, standing, at=at, accept=accept))
        offered = {offer.name for offer in imported.tools}
        for name, baseline in sorted(known.items()):
            if baseline.provider == provider and name not in offered and not partial:
                standing = await self._standing(who.realm, name, baseline, baseline.adopted)
                absent = plan_absence(provider, standing, baseline)
                decisions += [absent] if absent is not None else []
        return decisions

    def _checked(self, offer: ToolDefinition, realm: str, provider: ProviderDefinition | None = None) -> ToolDefinition:
        """What is offered, as it is to be stored; also what the check has completed is checked."""
        checked = self._catalogue.check_tool(offer, realm, provider=provider)
        if checked is not offer:
            check_definition(checked)
        return checked

    async def _standing(self, realm: str, name: str, baseline: Baseline | None, offered: str) -> NameState:
        """The state of a name; the definition of its baseline is read only if a different one is offered."""
        compared = baseline is not None and baseline.adopted != offered
        adopted = (
            await self._registry.get_revision(realm, baseline.adopted) if baseline is not None and compared else None
        )
        return NameState(
            offered=offered,
            current=self._registry.find(realm, name, None),
            versions=self._versions(realm, name),
            baseline=baseline,
            adopted=adopted.definition if adopted is not None else None,
        )

    def _versions(self, realm: str, name: str) -> Sequence[VersionLife]:
        """All versions of a tool, as they are."""
        return versions_of(self._registry.index(realm).revisions(name))

    async def _store(
        self, decisions: Sequence[Decision], who: Principal, changes: int, others: Sequence[Definition] = ()
    ) -> None:
        """Store everything, which has been checked, in one transaction, and add it to the catalogue in memory."""
        at = self._clock.now()
        definitions, copies = list(others), SchemaCopies()
        states: list[VersionState] = []
        for decision in decisions:
            name = decision.report.tool
            if decision.save is not None:
                definitions.append(
                    stored_tool(
                        decision.save,
                        realm=who.realm,
                        made_by=who.id,
                        at=at,
                        content_hash=decision.content_hash,
                        copies=copies,
                        is_checked=True,
                    )
                )
            if decision.baseline is not None:
                definitions.append(self._baseline_definition(name, decision.baseline, who, at))
            states += [_state(who.realm, name, life) for life in decision.states]
        await self._definitions.save_all(who.realm, definitions, states, seen=changes)
        await self._registry.refresh(who.realm, definitions)
        await self._catalogue.refresh(who.realm)

    def _baseline_definition(self, name: str, baseline: Contract, who: Principal, at: datetime) -> Definition:
        body = baseline.model_dump(mode="json")
        return Definition(
            kind="baseline",
            realm=who.realm,
            name=name,
            version="1.0.0",
            revision=0,
            content_hash=content_hash(body),
            body=body,
            made_by=who.id,
            created_at=at,
        )

    async def _baselines(self, realm: str) -> Mapping[str, Baseline]:
        """The baselines of a realm's tools by name."""
        await self._newest(realm)
        return self._read[realm].tools

    async def _newest(self, realm: str) -> Mapping[str, Definition]:
        """The newest revision of every baseline, of which only what has changed is read."""
        read = self._read.setdefault(realm, _Read())
        last = await self._definitions.changes(realm)
        if read.seen != last:
            changed = await self._definitions.changes_since("baseline", realm, read.seen)
            for stored in changed.revisions:
                read.all[stored.name] = stored
                if not stored.name.startswith(_OF_PROVIDER):
                    read.tools[stored.name] = Baseline.model_validate(stored.body)
            read.seen = last
        return read.all

    async def _require_baseline(self, name: str, who: Principal) -> tuple[ToolRevision, Baseline]:
        await self._catalogue.renew(who.realm)
        current = self._registry.require(who.realm, name)
        baseline = (await self._baselines(who.realm)).get(current.name)
        if baseline is None:
            msg = f"tool {current.name!r} was not imported, so no provider can want a change of it"
            raise NotFound(msg)
        return current, baseline

    async def _require_proposal(self, name: str, who: Principal) -> tuple[ToolRevision, Baseline, ToolProposal]:
        current, baseline = await self._require_baseline(name, who)
        if baseline.proposal is None:
            msg = f"no change of tool {current.name!r} waits for a person; import its provider again to see one"
            raise NotFound(msg)
        return current, baseline, baseline.proposal


def _refuse_loss(imported: ImportedApi, decisions: Sequence[Decision]) -> None:
    """Refuse an offer that lacks most of the tools that there were: a system in trouble often offers little or nothing.

    Raises:
        Conflict: It does; the message has the numbers.
    """
    gone = sum(decision.report.adoption == "gone" and bool(decision.states) for decision in decisions)
    there = gone + sum(decision.report.adoption not in {"new", "gone"} for decision in decisions)
    if there >= _FEW and gone > there / 2:
        name = imported.provider.name
        raise Conflict(
            f"provider {name!r} does not offer {gone} of {there} tools any more, so nothing was adopted; look at it, "
            f"and sync it yourself if that is right: toolcrib provider sync {name}"
        )


def _state(realm: str, name: str, life: VersionLife) -> VersionState:
    return VersionState(
        kind="tool",
        realm=realm,
        name=name,
        version=life.version,
        status=life.status,
        message=life.message,
        sunset=life.sunset,
        replacement=life.replacement,
    )


def _diff(before: ToolDefinition, after: ToolDefinition) -> str:
    old, new = (
        json.dumps(each.model_dump(mode="json"), indent=2, ensure_ascii=False, sort_keys=True).splitlines()
        for each in (before, after)
    )
    return "\n".join(unified_diff(old, new, "current", "proposed", lineterm="", n=2))
