"""The catalogue of tools: every saved definition, by name and version range, with its life-cycle state.

The store has the revisions; the catalogue caches them, because every call needs one. `refresh` reads the changes of
other processes.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final, cast

import orjson
from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from toolcrib.contracts import (
    Conflict,
    Json,
    JsonSchema,
    LifeCycle,
    NotFound,
    ToolChange,
    ToolDefinition,
    ToolRevision,
)
from toolcrib.contracts.base.errors import UnknownName
from toolcrib.contracts.base.identity import is_simple
from toolcrib.contracts.workflows import WorkflowImplementation
from toolcrib.core.registry.catalog.index import RealmIndex
from toolcrib.core.registry.catalog.unversioned_definitions import stand_in, why_unreadable
from toolcrib.core.registry.changes.classification import classify
from toolcrib.core.registry.checks.definitions import check_definition
from toolcrib.infrastructure.store import Definition, Definitions

_HASH = "sha256:"
_MANY = 2_000
"""Names that are compared one by one with one that is not known."""
_MOST_COMPARED = 100
_MOST_SHOWN = 10
_MOST_CHANGES = 10_000
_NOTHING_AT_HAND: Mapping[str, ToolDefinition] = MappingProxyType({})


class Registry:
    """Tools by realm, name and version.

    Args:
        definitions: Where revisions are kept.
    """

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self.runs_here: Callable[[ToolRevision], bool] = lambda _tool: True
        """Whether this process has what a revision needs to run, such as its Python function; set by who wires it."""
        self._indexes: defaultdict[str, RealmIndex] = defaultdict(RealmIndex)
        self._seen: dict[str, int] = {}
        """Number of the last change that was read, by realm."""
        self._by_hash: dict[tuple[str, str], ToolRevision] = {}
        self._unreadable: set[str] = set()
        """Content hashes of what another release has saved and this one cannot read."""
        self._first_saved: dict[tuple[str, str], datetime] = {}
        """When a name of a realm was first saved, as far as its revisions were read."""
        self._compared: dict[tuple[str, str], ToolChange] = {}
        """Answers of `change`, by content hashes."""
        self._changing = asyncio.Lock()
        """Held from asking the store until its answer is at hand, so that no older answer replaces a newer one."""

    async def refresh(self, realm: str, saved: Sequence[Definition] = ()) -> None:
        """Read what is stored now.

        Args:
            realm: Of it.
            saved: What the caller has just saved, whose bodies need not be read from the store once more.
        """
        at_hand: dict[str, ToolDefinition] = {}
        for stored in saved:
            if stored.kind == "tool":
                with suppress(ValidationError):
                    at_hand[stored.content_hash] = ToolDefinition.model_validate(stored.body)
        async with self._changing:
            await self._refresh(realm, at_hand)

    async def changes(self, realm: str) -> int:
        """A number that grows with every change of the realm's definitions, whoever makes it."""
        return await self._definitions.changes(realm)

    async def _refresh(self, realm: str, at_hand: Mapping[str, ToolDefinition] = _NOTHING_AT_HAND) -> None:
        """Read everything once, and after that what has changed."""
        since = self._seen.get(realm)
        last = await self._definitions.changes(realm)  # before reading: what is saved meanwhile is read once more
        if since is None:
            realm_index = RealmIndex()
            found = [self._remember(stored) for stored in await self._definitions.revisions("tool", realm)]
            realm_index.fill(found)
            self._indexes[realm] = realm_index
            await self._recall(found)
        elif since != last:
            changed = await self._definitions.changes_since("tool", realm, since, without=at_hand)
            for name, revision in changed.removed:
                self._indexes[realm].drop(name, revision)
            found: list[ToolRevision] = []
            for stored in changed.revisions:
                revision = self._unchanged(stored)
                if revision is None:
                    revision = self._remember(stored, at_hand.get(stored.content_hash))
                    self._indexes[realm].put(revision)
                found.append(revision)
            await self._recall(found)
        self._seen[realm] = last

    async def _recall(self, tools: Iterable[ToolRevision]) -> None:
        """Have at hand what workflows are bound to, also if its name was removed since: it is compared with."""
        for tool in tools:
            workflow = tool.definition.implementation
            for content_hash in workflow.bound.values() if isinstance(workflow, WorkflowImplementation) else ():
                with suppress(NotFound):
                    await self.get_revision(tool.realm, content_hash)

    async def save(
        self,
        definition: ToolDefinition,
        *,
        realm: str,
        made_by: str,
        at: datetime,
        after: int | None = None,
        is_checked: bool = False,
    ) -> ToolRevision:
        """Store a definition as a new revision; the content of the newest one is that revision.

        An older content becomes the newest revision once more, which is how a change is rolled back.

        Args:
            definition: What is to be saved.
            realm: Where.
            made_by: Who saves it.
            at: When.
            after: Number of the revision that a call without a version gets, as the author knows it; 0 if the name is
                to be new, null for any.
            is_checked: The definition has been checked as it is.

        Raises:
            InvalidDefinition: The definition is not well formed.
            Conflict: Another revision has been saved since `after`.
        """
        new = stored_tool(definition, realm=realm, made_by=made_by, at=at, is_checked=is_checked)
        async with self._changing:
            if after is not None:
                await self._refresh(realm)
            newest_known = self._require_current(realm, definition.name, after)
            revision = self._revision(
                await self._definitions.save(new, after=newest_known), _as_stored(definition, new)
            )
            self._indexes[realm].put(revision)
            self._by_hash[realm, revision.content_hash] = revision
        return revision

    def _require_current(self, realm: str, name: str, after: int | None) -> int | None:
        """The number of a name's newest revision, if the one that calls get is still `after`; null if nobody asks."""
        if not after:
            return after  # the store itself knows whether a name is new
        current = self.find(realm, name, None)
        if current is not None and current.revision != after:
            msg = (
                f"tool {name!r} has revision {current.revision} and this change was made to revision {after}; "
                "read it again and repeat the change"
            )
            raise Conflict(msg)
        return max((known.revision for known in self._indexes[realm].revisions(name)), default=after)

    def find(self, realm: str, name: str, version: str | None) -> ToolRevision | None:
        """The newest revision whose version is in the range, or null.

        Instead of a range, a content hash (`sha256:…`) names one revision. Blocked versions are found only if no
        other fits, so that the guard can say that they are blocked.
        """
        if version is None:
            return self._indexes[realm].find(name, None)
        known = self._by_hash.get((realm, version))
        if known is not None or version.startswith(_HASH):
            return known
        return self._indexes[realm].find(name, version)

    async def get_revision(self, realm: str, content_hash: str) -> ToolRevision:
        """The revision with this content, also if its name was removed since.

        Raises:
            NotFound: This realm never had it.
        """
        known = self._by_hash.get((realm, content_hash))
        if known is not None:
            return known
        stored = await self._definitions.get(realm, content_hash)
        if stored is None or stored.kind != "tool":
            msg = f"realm {realm!r} has no tool with content hash {content_hash!r}"
            raise NotFound(msg)
        revision = self._by_hash[realm, content_hash] = self._revision(stored)
        return revision

    async def resolve(self, realm: str, ref: str, pins: Mapping[str, str]) -> ToolRevision:
        """The tool that a run means by `name` or `name@range`: what it has pinned, whatever was saved since.

        Args:
            realm: The run's.
            ref: As the definition has it.
            pins: Content hashes by reference.

        Raises:
            NotFound: There is none; names the nearest.
        """
        pinned = pins.get(ref)
        return self.require(realm, ref) if pinned is None else await self.get_revision(realm, pinned)

    def require(self, realm: str, ref: str) -> ToolRevision:
        """The tool that `name` or `name@range` means.

        Raises:
            NotFound: There is none; names the nearest.
        """
        found = self.find_by_ref(realm, ref)
        if found is None:
            instead, names = self._instead(realm, ref.partition("@")[0])
            raise UnknownName(f"no tool {ref!r} in realm {realm!r}", instead, kind="tool", names=names)
        return found

    def find_by_ref(self, realm: str, ref: str) -> ToolRevision | None:
        """The tool that `name` or `name@range` means, or null."""
        name, _, version = ref.partition("@")
        return self.find(realm, name, version or None)

    def _instead(self, realm: str, name: str) -> tuple[str, Sequence[str]]:
        """What to call instead, and whose names that tells: versions of a known name, names like it, or some names."""
        index = self._indexes[realm]
        known = index.revisions(name)
        if known:
            versions = list(dict.fromkeys(revision.ref for revision in known))[-_MOST_SHOWN:]
            return f"available: {', '.join(versions)}", [name]
        found = index.search.find(name, limit=_MOST_COMPARED) if len(index.names) > _MANY else ()
        names = [hit.name for hit in found] or index.names[:_MANY]
        if near := get_close_matches(name, names, n=3):
            return f"did you mean {' or '.join(map(repr, near))}?", near
        more = ", …" if len(index.names) > _MOST_SHOWN else ""
        shown = names[:_MOST_SHOWN]
        return (f"available: {', '.join(shown)}{more}", shown) if names else ("add it first", ())

    def names(self, realm: str) -> Sequence[str]:
        """Names of all tools of a realm, sorted."""
        return self._indexes[realm].names

    def current(self, realm: str) -> Sequence[ToolRevision]:
        """The revision of every name that a call without a version would get, by name."""
        return list(self._indexes[realm].current())

    def index(self, realm: str) -> RealmIndex:
        """The tools of a realm by what they are looked up by."""
        return self._indexes[realm]

    def find_revision(self, realm: str, name: str, content_hash: str) -> ToolRevision | None:
        """The newest revision of a name with this content, or null if it has none, or was removed since."""
        revisions = reversed(self._indexes[realm].revisions(name))
        return next((known for known in revisions if known.content_hash == content_hash), None)

    def change(self, before: ToolRevision, after: ToolRevision) -> ToolChange:
        """What is different between two revisions; each pair of contents is compared once."""
        pair = before.content_hash, after.content_hash
        if pair not in self._compared:
            if len(self._compared) >= _MOST_CHANGES:
                self._compared.clear()
            self._compared[pair] = classify(before.definition, after.definition)
        return self._compared[pair]

    async def revisions(self, realm: str, name: str) -> Sequence[ToolRevision]:
        """All revisions of a name, oldest first."""
        return [self._revision(stored) for stored in await self._definitions.revisions("tool", realm, name)]

    async def set_status(
        self,
        realm: str,
        ref: str,
        status: LifeCycle,
        *,
        message: str | None = None,
        sunset: datetime | None = None,
        replacement: str | None = None,
    ) -> ToolRevision:
        """Deprecate, block or bring back a version.

        Raises:
            NotFound: No such tool.
        """
        tool = self.require(realm, ref)
        await self._definitions.set_status(
            "tool",
            realm,
            tool.name,
            tool.version,
            status=status,
            message=message,
            sunset=sunset,
            replacement=replacement,
        )
        await self.refresh(realm)
        return self.require(realm, f"{tool.name}@{tool.version}")

    async def remove(self, realm: str, name: str, version: str | None = None) -> None:
        """Take a name, or one version of it, out of the catalogue; runs that pinned its revisions still find them.

        Raises:
            NotFound: No such tool.
        """
        self.require(realm, name if version is None else f"{name}@{version}")
        async with self._changing:
            await self._definitions.remove("tool", realm, name, version)
            removed = [each for each in self._indexes[realm].revisions(name) if version in {None, each.version}]
            for each in removed:
                self._indexes[realm].drop(name, each.revision)

    def _unchanged(self, stored: Definition) -> ToolRevision | None:
        """What the index has of a stored revision if that is the same: this process has saved it itself."""
        known = self._by_hash.get((stored.realm, stored.content_hash))
        if known is None or stored.content_hash in self._unreadable:
            return None
        is_same = (
            known.revision == stored.revision
            and known.status == stored.status
            and known.status_message == stored.status_message
            and known.sunset == stored.sunset
            and known.replacement == stored.replacement
            and known.made_by == stored.made_by
            and known.created_at == stored.created_at
        )
        revisions = self._indexes[stored.realm].revisions(known.name)
        return known if is_same and any(each is known for each in revisions) else None

    def _remember(self, stored: Definition, at_hand: ToolDefinition | None = None) -> ToolRevision:
        revision = self._by_hash[stored.realm, stored.content_hash] = self._revision(stored, at_hand)
        return revision

    def _revision(self, stored: Definition, at_hand: ToolDefinition | None = None) -> ToolRevision:
        """A stored revision, blocked if it cannot be read; content that is at hand already is not read once more."""
        known = self._by_hash.get((stored.realm, stored.content_hash))
        status, message = stored.status, stored.status_message
        if known is not None and stored.content_hash not in self._unreadable:
            definition = known.definition
        elif at_hand is not None:
            definition = at_hand
        else:
            try:
                definition = ToolDefinition.model_validate(stored.body)
            except ValidationError as problem:
                definition = stand_in(stored.name, stored.version)
                status, message = "blocked", f"it {why_unreadable(problem)}"
                self._unreadable.add(stored.content_hash)
        name = stored.realm, stored.name
        first = self._first_saved[name] = min(self._first_saved.get(name, stored.created_at), stored.created_at)
        return ToolRevision(
            definition=definition,
            revision=stored.revision,
            content_hash=stored.content_hash,
            status=status,
            status_message=message,
            sunset=stored.sunset,
            replacement=stored.replacement,
            realm=stored.realm,
            made_by=stored.made_by,
            created_at=stored.created_at,
            first_created_at=first,
        )


_FIXED: Final = frozenset({str, int, float, bool, type(None)})
"""Types of values that nothing can change."""


def _as_stored(definition: ToolDefinition, stored: Definition) -> ToolDefinition | None:
    """The definition with the schemas that are stored, which no change of its own reaches.

    Null if more than its schemas can be changed from outside: then it is read from what is stored.
    """
    if definition.examples or not all(type(value) in _FIXED for value in vars(definition.implementation).values()):
        return None
    schemas = {"input_schema": stored.body["input_schema"], "output_schema": stored.body["output_schema"]}
    return definition.model_copy(update=schemas)


class SchemaCopies:
    """Copies of schemas: what the definitions of an import share, is copied once and shared by the copies."""

    def __init__(self) -> None:
        self._shared: dict[int, tuple[Json, Json]] = {}
        """What was copied, and its copy, by the identity of the first."""

    def of(self, schema: JsonSchema) -> JsonSchema:
        """A copy that no change of the original reaches."""
        definitions = schema.get("$defs")
        if type(definitions) is not dict:
            return _copied(schema)
        shared = {name: self._part(part) for name, part in cast("JsonSchema", definitions).items()}
        bare = _copied({keyword: value for keyword, value in schema.items() if keyword != "$defs"})
        return {**bare, "$defs": shared}

    def _part(self, part: Json) -> Json:
        if id(part) not in self._shared:
            self._shared[id(part)] = part, _copied(part)
        return self._shared[id(part)][1]


def _copied(value: Json) -> Json:
    return orjson.loads(orjson.dumps(value)) if is_simple(value) else to_jsonable_python(value)


def stored_tool(
    definition: ToolDefinition,
    *,
    realm: str,
    made_by: str,
    at: datetime,
    content_hash: str | None = None,
    copies: SchemaCopies | None = None,
    is_checked: bool = False,
) -> Definition:
    """A definition as the store keeps it.

    Args:
        definition: What is to be saved.
        realm: Where.
        made_by: Who saves it.
        at: When.
        content_hash: Of the definition, if it is at hand.
        copies: Those of the definitions that are saved together with it.
        is_checked: It has been checked as it is.

    Raises:
        InvalidDefinition: It is not well formed.
    """
    if not is_checked:
        check_definition(definition)
    copies = copies or SchemaCopies()
    body = definition.model_dump(mode="json", exclude={"input_schema", "output_schema"})
    body["input_schema"] = copies.of(definition.input_schema)
    body["output_schema"] = None if definition.output_schema is None else copies.of(definition.output_schema)
    return Definition(
        kind="tool",
        realm=realm,
        name=definition.name,
        version=definition.version,
        revision=0,
        content_hash=content_hash or definition.content_hash(),
        body=body,
        made_by=made_by,
        created_at=at,
    )
