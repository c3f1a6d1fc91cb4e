"""The index of a realm's tools by name, version, facet and word.

It is updated change by change, so a large realm costs no more per change than a small one. It knows no store and no
permissions.
"""

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any, Final, Literal, TypeAlias

from toolcrib.contracts import ToolRevision
from toolcrib.contracts.specs.agents import GROUP, TAG
from toolcrib.core.registry.catalog.search import ToolSearch
from toolcrib.core.registry.checks.versions import newest

Facet: TypeAlias = Literal["category", "tag", "kind", "status"]

_MOST_ANSWERS: Final = 10_000
_FEW: Final = 10
"""New names that are sorted in one by one."""
_NOTHING: Final[frozenset[str]] = frozenset()


class RealmIndex:
    """Revisions by name. Of each name one is current: what a call without a version gets."""

    def __init__(self) -> None:
        self._revisions: dict[str, list[ToolRevision]] = {}
        self._sorted: list[str] = []
        self._new_names: list[str] = []
        """Those that have still to be sorted in: of many that come one after the other, all at once."""
        self._current: dict[str, ToolRevision] = {}
        self._found: dict[tuple[str, str | None], ToolRevision | None] = {}
        """Answers of `find` to questions with a version, until something changes."""
        self._facets: dict[tuple[Facet, str], set[str]] = defaultdict(set)
        self._texts: dict[str, str] = {}
        """What `q` is looked for in, of the names that were asked about."""
        self._search: ToolSearch | None = None
        self.derived: dict[object, Any] = {}
        """What others have worked out from the tools as they are, by keys of theirs; empty after every change."""
        self.changes = 0
        """Grows with every change."""

    # What changes it --------------------------------------------------------------------------------------------------

    def put(self, revision: ToolRevision) -> None:
        """Add a revision, or replace the one of its number."""
        revisions = self._revisions.get(revision.name)
        if revisions is None:
            revisions = self._revisions[revision.name] = []
            self._new_names.append(revision.name)
        revisions[:] = [known for known in revisions if known.revision != revision.revision]
        insort(revisions, revision, key=lambda known: known.revision)
        self._renew(revision.name)

    def fill(self, revisions: Iterable[ToolRevision]) -> None:
        """Have these revisions and no others."""
        for known in (self._revisions, self._current, self._facets, self._found, self.derived):
            known.clear()
        self.changes += 1
        for revision in revisions:
            self._revisions.setdefault(revision.name, []).append(revision)
        self._sorted, self._new_names = sorted(self._revisions), []
        self._search = None
        for name, known in self._revisions.items():
            known.sort(key=lambda revision: revision.revision)
            self._renew(name)

    def drop(self, name: str, revision: int | None = None) -> None:
        """Take a name away, or one of its revisions."""
        left = [known for known in self._revisions.get(name, ()) if revision not in (None, known.revision)]
        if left:
            self._revisions[name] = left
        elif self._revisions.pop(name, None) is not None:
            del self._names[bisect_left(self._names, name)]
        self._renew(name)

    def _renew(self, name: str) -> None:
        """Bring everything that is derived from a name's revisions up to date."""
        self.changes += 1
        self._found.clear()
        self.derived.clear()
        self._texts.pop(name, None)
        before, now = self._current.pop(name, None), self._choose(name, None)
        if before is not None:
            for facet in _facets(before):
                self._facets[facet].discard(name)
        if now is not None:
            self._current[name] = now
            for facet in _facets(now):
                self._facets[facet].add(name)
        if self._search is None or (before is not None and now is not None and before.definition is now.definition):
            return
        if now is None:
            self._search.discard(name)
        else:
            self._search.add(now.definition)

    # What it is asked -------------------------------------------------------------------------------------------------

    @property
    def names(self) -> Sequence[str]:
        """All names in order."""
        return self._names

    @property
    def _names(self) -> list[str]:
        if len(self._new_names) > _FEW:
            self._sorted += self._new_names
            self._sorted.sort()
        else:
            for name in self._new_names:
                insort(self._sorted, name)
        self._new_names.clear()
        return self._sorted

    @property
    def search(self) -> ToolSearch:
        """The current revisions by their words; made when it is first asked for."""
        if self._search is None:
            self._search = ToolSearch(tool.definition for tool in self.current())
        return self._search

    async def ensure_search(self) -> ToolSearch:
        """`search`, made in a thread if it is not there: of many tools it takes seconds, in which other things go on.

        What changes meanwhile makes it be made again.
        """
        while self._search is None:
            changes = self.changes
            made = await asyncio.to_thread(ToolSearch, [tool.definition for tool in self.current()])
            if self.changes == changes:
                self._search = made
        return self._search

    def revisions(self, name: str) -> Sequence[ToolRevision]:
        """All revisions of a name, oldest first."""
        return self._revisions.get(name, ())

    def current(self) -> Iterator[ToolRevision]:
        """What a call without a version gets, of every name in order."""
        return (self._current[name] for name in self._names)

    def find(self, name: str, version: str | None) -> ToolRevision | None:
        """The newest revision whose version is in the range; a blocked one only if no other fits."""
        if version is None:
            return self._current.get(name)
        key = (name, version)
        if key not in self._found:
            if len(self._found) > _MOST_ANSWERS:
                self._found.clear()
            self._found[key] = self._choose(name, version)
        return self._found[key]

    def derive(self, key: object, value: Any) -> None:
        """Keep something that follows from the tools as they are, until one of them changes."""
        if len(self.derived) >= _MOST_ANSWERS:
            self.derived.clear()
        self.derived[key] = value

    def having(self, facet: Facet, value: str) -> AbstractSet[str]:
        """Names whose current revision has a category, a tag, a kind of implementation or a status."""
        return self._facets.get((facet, value), _NOTHING)

    def like(self, pattern: str) -> Sequence[ToolRevision]:
        """The current revisions whose names fit a pattern with `*`, `?` and `[…]`, in order."""
        start = next((place for place, character in enumerate(pattern) if character in "*?["), len(pattern))
        begun = self._names_with_prefix(pattern[:start])
        return [self._current[name] for name in begun if fnmatchcase(name, pattern)]

    def meant_by(self, ref: str) -> Sequence[ToolRevision]:
        """The current revisions that a reference means: by name, pattern, group (`group:crm/deals`) or `tag:deals`.

        A group may also be all of a category, or any tag in it. An agent is meant by its name only.
        """
        if ref.startswith(GROUP):
            category, _, tag = ref.removeprefix(GROUP).partition("/")
            among = [self.having("category", category), *([self.having("tag", tag)] if tag else [])]
            found = list(self.page(after="", among=among))
        elif ref.startswith(TAG):
            found = list(self.page(after="", among=[self.having("tag", ref.removeprefix(TAG))]))
        elif "*" in ref:
            found = self.like(ref)
        else:
            named = self.find(ref, None)
            return [] if named is None else [named]
        agents = self.having("kind", "agent")
        return [tool for tool in found if tool.name not in agents]

    def page(
        self, *, after: str, among: Sequence[AbstractSet[str]] = (), text: str | None = None
    ) -> Iterator[ToolRevision]:
        """The current revisions that come after a name, in order, found as far as somebody reads on.

        Args:
            after: A name; empty for the beginning.
            among: Sets of names, in all of which a name must be.
            text: What must stand in name, title, description or tags, upper or lower case alike.
        """
        smallest = min(among, key=len, default=None)
        if smallest is not None and len(smallest) * 8 < len(self._names):
            names: Iterable[str] = sorted(name for name in smallest if name > after)
        else:
            names = islice(self._names, bisect_right(self._names, after), None)
        for some in among:
            names = filter(some.__contains__, names)
        if text:
            wanted, texts = text.lower(), self._texts
            names = (name for name in names if wanted in (texts.get(name) or self._text(name)))
        return (self._current[name] for name in names)

    def _names_with_prefix(self, start: str) -> Sequence[str]:
        first = bisect_left(self._names, start)
        return self._names[first : bisect_right(self._names, start + "\U0010ffff", first)] if start else self._names

    def _choose(self, name: str, version: str | None) -> ToolRevision | None:
        revisions = self._revisions.get(name, [])
        usable = [revision for revision in revisions if revision.status != "blocked"]
        for candidates in (usable, revisions):
            best = newest([revision.version for revision in candidates], version) if candidates else None
            if best is not None:
                return next(revision for revision in reversed(candidates) if revision.version == best)
        return None

    def _text(self, name: str) -> str:
        definition = self._current[name].definition
        texts = (definition.name, definition.title or "", definition.description, *definition.tags)
        text = self._texts[name] = "\n".join(texts).lower()
        return text


def _facets(tool: ToolRevision) -> Iterator[tuple[Facet, str]]:
    definition = tool.definition
    yield "category", definition.category
    yield "kind", definition.implementation.kind
    yield "status", tool.status
    for tag in definition.tags:
        yield "tag", tag
