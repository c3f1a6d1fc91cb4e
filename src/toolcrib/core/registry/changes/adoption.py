"""Decides what happens to each tool of a repeated import: `plan_adoption`. Nothing is stored here.

The first offer of a tool is trusted and becomes its baseline. From then on:

- a harmless change is accepted;
- a narrowing or breaking one is held: a person reviews the proposal, and meanwhile the tool is called as it was, with a
  warning in every run that is bound to it. The worst that its calls can do is fail;
- an effect-changing one is held and blocks the tool, because its calls could do something else than they say. So do
  the loss of an argument of a tool that writes, and any change of an MCP tool, its texts included, because models read
  them and the server's operator writes them;
- a tool that a person has changed or removed stays as it is, and is blocked if its provider's side changes dangerously
  or is removed;
- a tool that is no longer offered is blocked, because a call could only fail or mean something else; it is unblocked
  when it is offered again, unchanged.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from toolcrib.contracts import (
    AdoptedTool,
    Adoption,
    Baseline,
    Conflict,
    Contract,
    ProviderDefinition,
    ToolChange,
    ToolDefinition,
    ToolProposal,
    ToolRevision,
    VersionLife,
)
from toolcrib.core.registry.changes.classification import classify

_MADE_BY_IMPORTS: Final = frozenset({"imported", "auto_generated"})
_REACH: Final = ("base_url", "variables", "connection", "auth", "schemes", "security", "headers")
"""Fields of a provider that decide where requests go and what they carry."""
_MOST_SAID: Final = 3
_LONGEST_PART: Final = 200
"""Characters of a part of a provider in a message."""


@dataclass(frozen=True, slots=True)
class NameState:
    """How a tool's name stands in the realm."""

    offered: str
    """Content hash of what is offered; of what was adopted if nothing is."""
    current: ToolRevision | None = None
    """What a call without a version gets; null if there is no such tool."""
    versions: Sequence[VersionLife] = ()
    """All its versions."""
    baseline: Baseline | None = None
    adopted: ToolDefinition | None = None
    """The definition that the baseline names."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be stored for one tool, and what is said of it."""

    report: AdoptedTool
    save: ToolDefinition | None = None
    baseline: Baseline | None = None
    """As it is to be stored; null if it stays."""
    content_hash: str | None = None
    """Of what is to be saved, if it is known."""
    states: Sequence[VersionLife] = ()
    """Life-cycle states to set, after saving."""


@dataclass(frozen=True, slots=True)
class _Case:
    """One tool that is offered, with its standing."""

    provider: str
    offer: ToolDefinition
    standing: NameState
    baseline: Baseline
    at: datetime

    @property
    def offered(self) -> str:
        """Content hash of the offer."""
        return self.standing.offered

    def report(self, adoption: Adoption, message: str = "", change: ToolChange | None = None) -> AdoptedTool:
        """What became of it."""
        return AdoptedTool(tool=self.offer.name, adoption=adoption, change=change, message=message)


def plan_adoption(provider: str, offer: ToolDefinition, standing: NameState, *, at: datetime, accept: bool) -> Decision:
    """Decide on a tool that is offered.

    Args:
        provider: Who offers it.
        offer: The definition, checked.
        standing: How its name stands.
        at: Now.
        accept: Take over also what a person would have to look at.
    """
    current, baseline, offered = standing.current, standing.baseline, standing.offered
    if baseline is not None and baseline.provider != provider:
        message = f"provider {baseline.provider!r} offers a tool of this name too, and was first"
        return Decision(AdoptedTool(tool=offer.name, adoption="kept", message=message))
    trusted = Baseline(tool=offer.name, provider=provider, adopted=standing.offered)
    if baseline is None and current is None:
        return Decision(
            AdoptedTool(tool=offer.name, adoption="new"), save=offer, baseline=trusted, content_hash=offered
        )
    if current is None:
        if accept:
            return Decision(
                AdoptedTool(tool=offer.name, adoption="returned"), save=offer, baseline=trusted, content_hash=offered
            )
        message = "a person has removed it; import once more and accept changes to have it back"
        return Decision(AdoptedTool(tool=offer.name, adoption="kept", message=message))
    if baseline is None:
        if current.definition.source not in _MADE_BY_IMPORTS or not calls(provider, current.definition):
            message = "a tool of this name is there that no import has made"
            return Decision(AdoptedTool(tool=offer.name, adoption="kept", message=message))
        # An import of an earlier release made it, which kept no baselines.
        baseline = trusted.model_copy(update={"adopted": current.content_hash})
        standing = replace(standing, adopted=current.definition)
    case = _Case(provider, offer, standing, baseline, at)
    return _as_before(case) if case.offered == baseline.adopted else _plan_change(case, current, accept=accept)


def plan_absence(provider: str, standing: NameState, baseline: Baseline) -> Decision | None:
    """Decide on a tool that is not offered any more; null if there is nothing to say."""
    current = standing.current
    if current is None:
        return None
    message = f"{_said_by(provider)}does not offer {baseline.tool!r} any more"
    absence = AdoptedTool(tool=baseline.tool, adoption="gone", message=message)
    if not baseline.offered:
        return Decision(absence)
    not_offered = baseline.model_copy(update={"offered": False, "proposal": None})
    if not calls(provider, current.definition):
        kept = "it is not offered any more; a person has made something else of it"
        return Decision(AdoptedTool(tool=baseline.tool, adoption="kept", message=kept), baseline=not_offered)
    return Decision(absence, baseline=_with_blocked(not_offered, standing), states=_blocking(standing, message))


def plan_provider(
    offered: ProviderDefinition,
    current: ProviderDefinition | None,
    adopted: ProviderDefinition | None,
    *,
    accept: bool,
) -> ProviderDefinition:
    """The provider as it is to be stored: what was offered anew, and what a person has changed since.

    Args:
        offered: As the import made it.
        current: As it is stored.
        adopted: As the last import made it.
        accept: Take over also another address or other credentials.

    Raises:
        Conflict: Requests would go elsewhere or carry something else, and nobody has accepted that.
    """
    if current is None:
        return offered
    before = adopted or current
    changes = {
        name: getattr(offered, name)
        for name in ProviderDefinition.model_fields
        if getattr(offered, name) != getattr(before, name) and getattr(current, name) == getattr(before, name)
    }
    moved = [name for name in _REACH if name in changes]
    if moved and not accept:
        told = "; ".join(
            f"{name}: now {_brief(getattr(current, name))}, then {_brief(getattr(offered, name))}" for name in moved
        )
        msg = (
            f"provider {current.name!r} would be reached in another way ({told}); nothing was imported: accept changes "
            "to import it so"
        )
        raise Conflict(msg)
    return current.model_copy(update=changes)


def _brief(value: object) -> str:
    """A part of a provider in short; it has references to secrets and no secrets."""
    shown = value.model_dump(mode="json", exclude_none=True) if isinstance(value, Contract) else value
    text = repr(shown) if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_PART else f"{text[:_LONGEST_PART]}…"


def calls(provider: str, definition: ToolDefinition) -> bool:
    """Whether a tool calls the provider."""
    return definition.provider == provider


def needs_person(change: ToolChange, definition: ToolDefinition) -> bool:
    """Whether a change by another system waits for a person."""
    words = any(found.change_class == "description_only" for found in change.differences)
    return change.is_harmful or (words and definition.implementation.kind == "mcp")


def blocks(change: ToolChange, definition: ToolDefinition) -> bool:
    """Whether a tool is blocked while a change of it waits for a person: its calls could do something else.

    A system may ignore an argument that it no longer knows, so that a write without it acts on more than it should.
    """
    if change.worst == "effect_changing" or definition.implementation.kind == "mcp":
        return True
    lost = any(found.part == "input" and found.kind == "removed" for found in change.differences)
    return lost and definition.side_effects == "writes"


def with_adopted(baseline: Baseline, adopted: str) -> Baseline:
    """The baseline after the definition with this content hash was taken over."""
    return Baseline(tool=baseline.tool, provider=baseline.provider, adopted=adopted)


def summary_of(change: ToolChange) -> str:
    """The class of a change and its first differences, in one line."""
    lines = [f"{found.place or found.part} {found.message}" for found in change.differences if found.part != "text"]
    lines = lines or [f"{found.place} {found.message}" for found in change.differences]
    more = f" and {len(lines) - _MOST_SAID} more" if len(lines) > _MOST_SAID else ""
    return f"{str(change.worst).replace('_', ' ')}: {'; '.join(lines[:_MOST_SAID])}{more}"


def _as_before(case: _Case) -> Decision:
    """It is offered as it was when it was adopted: whatever was in its way is over."""
    baseline = case.baseline
    trusted = with_adopted(baseline, case.offered)
    states = restored(baseline, case.standing.versions)
    stored = trusted if trusted != baseline or case.standing.baseline is None else None
    if case.standing.current is not None and case.standing.current.content_hash != baseline.adopted:
        return Decision(case.report("kept", "a person has changed it"), baseline=stored, states=states)
    return Decision(case.report("returned" if states else "unchanged"), baseline=stored, states=states)


def _plan_change(case: _Case, current: ToolRevision, *, accept: bool) -> Decision:
    change = classify(case.standing.adopted or current.definition, case.offer)
    baseline = case.baseline
    by_person = current.content_hash != baseline.adopted
    held = needs_person(change, case.offer) and not accept
    if held and calls(case.provider, current.definition):
        return _hold_back(case, change)
    states = restored(baseline, case.standing.versions)
    if by_person:
        message = f"a person has changed it; what is offered now is {summary_of(change)}"
        kept = baseline.model_copy(update={"proposal": _proposal(case, change), "offered": True, "blocked": ()})
        return Decision(case.report("kept", message, change), baseline=kept, states=states)
    updated = with_adopted(baseline, case.offered)
    message = summary_of(change)
    return Decision(
        case.report("changed", message, change),
        save=case.offer,
        baseline=updated,
        content_hash=case.offered,
        states=states,
    )


def _hold_back(case: _Case, change: ToolChange) -> Decision:
    baseline = case.baseline
    if case.offered == baseline.rejected:
        return Decision(case.report("held", "a person has rejected this change before", change))
    message = (
        f"{_said_by(case.provider)}offers it changed, {summary_of(change)}; "
        f"look at it with: toolcrib tool review {case.offer.name}"
    )
    waiting = baseline.model_copy(update={"proposal": _proposal(case, change), "offered": True})
    held = _with_blocked(waiting, case.standing)
    states = _blocking(case.standing, message) if blocks(change, case.offer) else _warning(held, case.standing, message)
    return Decision(case.report("held", message, change), baseline=held, states=states)


def _proposal(case: _Case, change: ToolChange) -> ToolProposal:
    """The change as a proposal; one that waits already keeps its time."""
    known = case.baseline.proposal
    if known is not None and known.change.after == case.offered:
        return known
    return ToolProposal(definition=case.offer, change=change, offered_at=case.at)


def _with_blocked(baseline: Baseline, standing: NameState) -> Baseline:
    """The baseline that remembers how the versions stood before they are blocked."""
    known = {life.version for life in baseline.blocked}
    more = tuple(life for life in standing.versions if life.status != "blocked" and life.version not in known)
    return baseline.model_copy(update={"blocked": (*baseline.blocked, *more)})


def _blocking(standing: NameState, message: str) -> Sequence[VersionLife]:
    return [
        life.model_copy(update={"status": "blocked", "message": message})
        for life in standing.versions
        if life.status != "blocked"
    ]


def _warning(baseline: Baseline, standing: NameState, message: str) -> Sequence[VersionLife]:
    """The versions as they were before the provider had any blocked, with what their users are told."""
    before = {life.version: life for life in baseline.blocked}
    return [
        (before[life.version] if life.status == "blocked" else life).model_copy(update={"message": message})
        for life in standing.versions
        if life.version in before
    ]


def _said_by(provider: str) -> str:
    """How what tools are told of their provider begins; what a person says of a tool does not."""
    return f"provider {provider!r} "


def restored(baseline: Baseline, versions: Sequence[VersionLife]) -> Sequence[VersionLife]:
    """The states that versions get back once nothing of the provider's waits; what a person has set meanwhile stays.

    Args:
        baseline: Has the states of before.
        versions: As they are.
    """
    before = {life.version: life for life in baseline.blocked}
    return [
        before[life.version]
        for life in versions
        if life.version in before and (life.message or "").startswith(_said_by(baseline.provider))
    ]


def versions_of(revisions: Iterable[ToolRevision]) -> Sequence[VersionLife]:
    """The life-cycle state of each version: that of its newest revision."""
    found: Mapping[str, VersionLife] = {
        each.version: VersionLife(
            version=each.version,
            status=each.status,
            message=each.status_message,
            sunset=each.sunset,
            replacement=each.replacement,
        )
        for each in revisions
    }
    return list(found.values())
