"""Permissions: which security URIs a principal's grants cover.

A grant is a pattern such as `ai://tools/crm/*/execute`: `*` matches one segment, and at the end one or more. `permits`
checks one tool; lists and searches check a whole catalogue with set operations, with the same result. A run keeps its
principal's grants, but a service account's are read before every call, so that a revoked grant has effect at once. A
service account or an agent may publish workflows only if a grant names that verb.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Final, Protocol

from toolcrib.contracts import PermissionDenied, Principal, ServiceAccount, account_of
from toolcrib.core.registry import RealmIndex

_SCHEME = "ai://"


@lru_cache(maxsize=4096)
def permits(grants: tuple[str, ...], uri: str) -> bool:
    """Whether one of the patterns covers the URI.

    Args:
        grants: Patterns.
        uri: `ai://{kind}/{category}/{name}/{verb}` or a shorter one of that sort.
    """
    return any(_covers(grant, uri) for grant in grants)


def _covers(grant: str, uri: str) -> bool:
    if not (grant.startswith(_SCHEME) and uri.startswith(_SCHEME)):
        return False
    pattern, target = grant[len(_SCHEME) :].split("/"), uri[len(_SCHEME) :].split("/")
    if pattern[-1] == "*":
        target = target[: len(pattern)]
    return len(pattern) == len(target) and all(
        wanted in ("*", found) for wanted, found in zip(pattern, target, strict=True)
    )


def names_covered(grants: tuple[str, ...], plural: str, *verbs: str) -> AbstractSet[str] | None:
    """The names `N` for which one of the patterns covers `ai://{plural}/N/{verb}`; null for all names.

    Args:
        grants: Patterns.
        plural: First segment of the URIs: `runs`.
        verbs: Of which one is enough.
    """
    found: set[str] = set()
    for grant in grants:
        segments = grant.removeprefix(_SCHEME).split("/")
        name = segments[1] if len(segments) > 1 else "*"
        if any(_covers(grant, f"{_SCHEME}{plural}/{name}/{verb}") for verb in verbs):
            if name == "*":
                return None
            found.add(name)
    return found


_APART: Final = {"agent": "agents", "workflow": "workflows"}
"""Kinds of tools whose URIs are not those of tools, and the first segment of theirs."""
_NOTHING: Final[frozenset[str]] = frozenset()


class VisibleTools:
    """What grants reach in one realm; worked out again when its index has changed.

    Args:
        realm_index: The tools of a realm.
    """

    def __init__(self, realm_index: RealmIndex) -> None:
        self.realm_index = realm_index
        self._seen = -1
        self._known: dict[tuple[tuple[str, ...], tuple[str, ...]], AbstractSet[str] | None] = {}

    def of(self, grants: Sequence[str], verbs: Sequence[str]) -> AbstractSet[str] | None:
        """Names of the tools with which the grants allow one of the verbs; null for all tools.

        Args:
            grants: Patterns such as `ai://tools/crm/*/execute`.
            verbs: `execute`, `read`, `write`.
        """
        if self._seen != self.realm_index.changes:
            self._known.clear()
            self._seen = self.realm_index.changes
        key = (tuple(grants), tuple(verbs))
        if key not in self._known:
            self._known[key] = self._names_for_grants(key[0], verbs)
        return self._known[key]

    def _names_for_grants(self, grants: tuple[str, ...], verbs: Sequence[str]) -> AbstractSet[str] | None:
        found: set[str] = set()
        for grant in grants:
            names = self._names_for_grant(grant, verbs)
            if names is None:
                return None
            found |= names
        return found

    def _names_for_grant(self, grant: str, verbs: Sequence[str]) -> AbstractSet[str] | None:
        tools = self._tools_reached_by(grant, verbs)
        apart, reached = set[str](), set[str]()
        for kind in _APART:
            apart |= self.realm_index.having("kind", kind)
            reached |= self._kind_reached_by(kind, grant, verbs)
        if tools is None:
            return None if reached >= apart else frozenset(self.realm_index.names) - apart | reached
        return tools - apart | reached

    def _tools_reached_by(self, grant: str, verbs: Sequence[str]) -> AbstractSet[str] | None:
        """Names by what a grant says of tools; whether an agent or a workflow has one of them does not matter here."""
        _, category, name, *_ = (*grant.removeprefix("ai://").split("/"), "*", "*")
        if name == "*":
            if not _allows(grant, f"tools/{category}/name", verbs):
                return _NOTHING
            return None if category == "*" else self.realm_index.having("category", category)
        tool = self.realm_index.find(name, None)
        reached = tool is not None and _allows(grant, f"tools/{tool.definition.category}/{name}", verbs)
        return {name} if reached else _NOTHING

    def _kind_reached_by(self, kind: str, grant: str, verbs: Sequence[str]) -> AbstractSet[str]:
        """Names of agents, or of workflows, by what a grant says of those."""
        _, name, *_ = (*grant.removeprefix("ai://").split("/"), "*")
        named, segment = self.realm_index.having("kind", kind), _APART[kind]
        if name == "*":
            return named if _allows(grant, f"{segment}/name", verbs) else _NOTHING
        return {name} if name in named and _allows(grant, f"{segment}/{name}", verbs) else _NOTHING


def _allows(grant: str, what: str, verbs: Sequence[str]) -> bool:
    return any(permits((grant,), f"ai://{what}/{verb}") for verb in verbs)


class Accounts(Protocol):
    """Finds service accounts."""

    def find(self, realm: str, name: str) -> ServiceAccount | None:
        """The account of a realm, or null."""
        ...


class NoAccounts:
    """A place without service accounts."""

    def find(self, realm: str, name: str) -> ServiceAccount | None:
        """Null."""
        del realm, name


def as_of_now(principal: Principal, accounts: Accounts) -> Principal:
    """The principal with the grants that it has now: an account that is disabled or gone has none."""
    name = account_of(principal)
    if name is None:
        return principal
    account = accounts.find(principal.realm, name)
    grants = account.principal(principal.realm).grants if account is not None else ()
    return principal.model_copy(update={"grants": grants})


def require_grant(principal: Principal, uri: str) -> None:
    """Let a principal pass who has a grant for a security URI.

    Raises:
        PermissionDenied: The grant is missing; the message names it.
    """
    if not permits(principal.grants, uri):
        msg = f"principal {principal.id!r} has no grant for {uri!r}; ask the realm's owner for it"
        raise PermissionDenied(msg)


def require_publish(principal: Principal, name: str) -> None:
    """Let a principal pass who may publish the workflow of a name.

    Raises:
        PermissionDenied: No grant lets it.
    """
    uri = f"ai://workflows/{name}/publish"
    grants = principal.grants
    if principal.kind != "user":
        grants = tuple(grant for grant in grants if grant.endswith("/publish"))
    if permits(grants, uri):
        return
    advice = "" if principal.kind == "user" else f"; of a principal of kind {principal.kind!r} one must name the verb"
    msg = f"principal {principal.id!r} has no grant for {uri!r}{advice}"
    raise PermissionDenied(f"{msg}; save a draft, and have a person publish it")
