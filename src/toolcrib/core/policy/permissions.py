"""Which of many tools a principal's grants reach: found by set operations, not by asking for each tool.

A check of one tool is `permits`; this is the same question about a whole catalogue, for lists and searches. It agrees
with `permits` tool by tool.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from toolcrib.core.policy.permissions_part import permits
from toolcrib.core.registry import Shelf

_APART: Final = {"agent": "agents", "workflow": "workflows"}
"""Kinds of tools whose URIs are not those of tools, and the first segment of theirs."""
_NOTHING: Final[frozenset[str]] = frozenset()


class Reach:
    """What grants reach on one shelf; worked out anew when the shelf has changed.

    Args:
        shelf: The tools of a realm.
    """

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self._seen = -1
        self._known: dict[tuple[tuple[str, ...], tuple[str, ...]], AbstractSet[str] | None] = {}

    def of(self, grants: Sequence[str], verbs: Sequence[str]) -> AbstractSet[str] | None:
        """Names of the tools with which the grants allow one of the verbs; null for all tools.

        Args:
            grants: Patterns such as `ai://tools/crm/*/execute`.
            verbs: `execute`, `read`, `write`.
        """
        if self._seen != self.shelf.changes:
            self._known.clear()
            self._seen = self.shelf.changes
        key = (tuple(grants), tuple(verbs))
        if key not in self._known:
            self._known[key] = self._reached(key[0], verbs)
        return self._known[key]

    def _reached(self, grants: tuple[str, ...], verbs: Sequence[str]) -> AbstractSet[str] | None:
        found: set[str] = set()
        for grant in grants:
            names = self._reached_by(grant, verbs)
            if names is None:
                return None
            found |= names
        return found

    def _reached_by(self, grant: str, verbs: Sequence[str]) -> AbstractSet[str] | None:
        tools = self._tools_reached_by(grant, verbs)
        apart, reached = set[str](), set[str]()
        for kind in _APART:
            apart |= self.shelf.having("kind", kind)
            reached |= self._kind_reached_by(kind, grant, verbs)
        if tools is None:
            return None if reached >= apart else frozenset(self.shelf.names) - apart | reached
        return tools - apart | reached

    def _tools_reached_by(self, grant: str, verbs: Sequence[str]) -> AbstractSet[str] | None:
        """Names by what a grant says of tools; whether an agent or a workflow has one of them does not matter here."""
        _, category, name, *_ = (*grant.removeprefix("ai://").split("/"), "*", "*")
        if name == "*":
            if not _allows(grant, f"tools/{category}/name", verbs):
                return _NOTHING
            return None if category == "*" else self.shelf.having("category", category)
        tool = self.shelf.find(name, None)
        reached = tool is not None and _allows(grant, f"tools/{tool.definition.category}/{name}", verbs)
        return {name} if reached else _NOTHING

    def _kind_reached_by(self, kind: str, grant: str, verbs: Sequence[str]) -> AbstractSet[str]:
        """Names of agents, or of workflows, by what a grant says of those."""
        _, name, *_ = (*grant.removeprefix("ai://").split("/"), "*")
        named, segment = self.shelf.having("kind", kind), _APART[kind]
        if name == "*":
            return named if _allows(grant, f"{segment}/name", verbs) else _NOTHING
        return {name} if name in named and _allows(grant, f"{segment}/{name}", verbs) else _NOTHING


def _allows(grant: str, what: str, verbs: Sequence[str]) -> bool:
    return any(permits((grant,), f"ai://{what}/{verb}") for verb in verbs)
