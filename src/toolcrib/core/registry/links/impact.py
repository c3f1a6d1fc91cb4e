"""Impact: which definitions depend on a tool, directly or indirectly, and what a change does to them.

References are followed upwards through every callable version; a cycle ends where it closes. Only for composites with
listed arguments is the effect known exactly: the arguments of models and code are known only when a call is made.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from toolcrib.contracts import HARMFUL, Dependent, Difference, ProviderDefinition, ToolChange, ToolRevision, Verdict
from toolcrib.core.registry.catalog.catalog import Registry
from toolcrib.core.registry.checks.versions import Version, satisfies
from toolcrib.core.registry.links.bindings import bindings, means_many, refers_to


class _User(NamedTuple):
    """A definition and how it names another one."""

    name: str
    """As others name it."""
    shown: str
    kind: str
    reference: str
    tool: ToolRevision | None


def dependents_of(
    target: ToolRevision,
    registry: Registry,
    providers: Sequence[ProviderDefinition],
    change: ToolChange | None = None,
) -> list[Dependent]:
    """Everything that is bound to a tool, direct ones first, then by name.

    Args:
        target: The tool.
        registry: Has those that may be bound to it.
        providers: Have reference data that tools list.
        change: What is proposed for the tool, for verdicts.
    """
    named = _Named(_callable_versions(registry, target.realm))
    found: dict[str, Dependent] = {}
    waiting: deque[tuple[ToolRevision, tuple[str, ...], bool]] = deque([(target, (target.name,), True)])
    seen = {(target.name, True)}
    while waiting:
        tool, path, satisfied_so_far = waiting.popleft()
        for user in (*named.users(tool), *_listing(tool, providers)):
            satisfied = satisfied_so_far and _takes(user.reference, tool)
            known_as = found.get(user.shown)
            if user.name == target.name or (known_as is not None and known_as.satisfied >= satisfied):
                continue
            found[user.shown] = Dependent(
                name=user.shown,
                kind=user.kind,
                reference=user.reference,
                satisfied=satisfied,
                path=(user.name, *path),
                verdict=_verdict(user, target, change, satisfied=satisfied, direct=len(path) == 1),
            )
            if user.tool is not None and (user.name, satisfied) not in seen:
                seen.add((user.name, satisfied))
                waiting.append((user.tool, (user.name, *path), satisfied))
    return sorted(found.values(), key=lambda each: (len(each.path), each.name))


def _callable_versions(registry: Registry, realm: str) -> Iterator[ToolRevision]:
    """The newest revision of each version that is not blocked; of names of which all are, the current one."""
    realm_index = registry.index(realm)
    for current in realm_index.current():
        newest = {each.version: each for each in realm_index.revisions(current.name) if each.status != "blocked"}
        yield from newest.values() if newest else (current,)


class _Named:
    """Definitions by what they name, so that each is read once however many lie above a tool.

    Args:
        tools: All that may be bound to something.
    """

    def __init__(self, tools: Iterable[ToolRevision]) -> None:
        self._one: defaultdict[str, list[tuple[ToolRevision, str]]] = defaultdict(list)
        """By the name in the reference."""
        self._many: list[tuple[ToolRevision, str]] = []
        for tool in tools:
            for ref in bindings(tool.definition):
                rows = self._many if means_many(ref) else self._one[ref.partition("@")[0]]
                rows.append((tool, ref))

    def users(self, tool: ToolRevision) -> Iterator[_User]:
        """Those that name a tool, each by a reference that takes this version, if it has one."""
        found: dict[str, _User] = {}
        for user, ref in (*self._one.get(tool.name, ()), *self._many):
            if user.name == tool.name or not refers_to(ref, tool.definition):
                continue
            if user.ref not in found or not _takes(found[user.ref].reference, tool):
                found[user.ref] = _User(user.name, user.ref, user.definition.implementation.kind, ref, user)
        yield from found.values()


def _listing(tool: ToolRevision, providers: Sequence[ProviderDefinition]) -> Iterator[_User]:
    for provider in providers:
        refs = (source.tool for source in provider.reference_data if source.tool is not None)
        for reference in refs:
            if refers_to(reference, tool.definition):
                yield _User(provider.name, provider.name, "provider", reference, None)
                break


def _takes(reference: str, tool: ToolRevision) -> bool:
    """Whether a reference means this version too."""
    version = reference.partition("@")[2]
    return not version or version == tool.content_hash or satisfies(Version.parse(tool.version), version)


def _verdict(
    user: _User, target: ToolRevision, change: ToolChange | None, *, satisfied: bool, direct: bool
) -> Verdict | None:
    if change is None:
        return None
    if not satisfied or not change.is_harmful:
        return "unaffected"
    implementation = user.tool.definition.implementation if user.tool is not None and direct else None
    calls = (
        () if implementation is None else implementation.arguments_for(lambda ref: refers_to(ref, target.definition))
    )
    return _worst({_of_call(sent, change) for sent in calls} or {"may_break"})


def _worst(verdicts: AbstractSet[Verdict]) -> Verdict:
    order: tuple[Verdict, ...] = ("breaks", "may_break", "unaffected")
    return next(verdict for verdict in order if verdict in verdicts)


def _of_call(sent: Mapping[str, object] | None, change: ToolChange) -> Verdict:
    """What a change does to a call whose arguments are listed; null if they are not."""
    harmful = [found for found in change.differences if found.change_class in HARMFUL]
    if sent is None or any(found.part != "input" for found in harmful):
        return "may_break"
    return _worst({_of_argument(found, sent) for found in harmful})


def _of_argument(found: Difference, sent: Mapping[str, object]) -> Verdict:
    name = found.place.partition(".")[0].partition("[")[0]
    if found.change_class != "breaking" or name != found.place:
        return "may_break" if name in sent or not name else "unaffected"
    must_be_sent = found.kind in {"added", "required"}
    return "breaks" if (name in sent) != must_be_sent else "unaffected"
