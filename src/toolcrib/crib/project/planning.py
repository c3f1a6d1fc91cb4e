"""Plans what applying a project changes in a store, and applies the plan.

The plan is made in a shadow of the store: the project is saved there with all the rules of single commands, so that
everything is checked before the first write, and what has changed in the shadow is the plan. Applying writes exactly
these revisions and life-cycle states, and removes what the project does not have any more, in one transaction.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast, get_args

from toolcrib.contracts import InvalidSettings, JsonObject, LifeCycle, NotFound, ToolDefinition, content_hash
from toolcrib.contracts.projects import (
    FieldChange,
    PlannedChange,
    ProjectBlob,
    ProjectBudget,
    ProjectKey,
    ProjectNeed,
    ProjectPlan,
)
from toolcrib.core.policy.caps import SpendingCap
from toolcrib.core.registry import classify
from toolcrib.core.registry.changes.adoption import summary_of
from toolcrib.crib.crib import Crib
from toolcrib.crib.project.documents import InvalidProject, Project, ProjectDocument, ProjectFault
from toolcrib.crib.project.field_changes import field_changes
from toolcrib.crib.project.saved import Pin, SavedProject, StoredName
from toolcrib.crib.project.saving import Functions, save_project
from toolcrib.crib.project.writing import document_of
from toolcrib.infrastructure.store import Definition, DefinitionKind, Definitions, Removal, VersionState

_STORED: Final[tuple[DefinitionKind, ...]] = get_args(DefinitionKind)
SHOWN: Final[tuple[DefinitionKind, ...]] = (
    "provider",
    "fragment",
    "account",
    "condition",
    "tool",
    "workflow_step",
    "mcp_server",
    "trigger",
)
"""What plans name, in this order; baselines and ownership are kept beside it."""
_VERSION: Final = "1.0.0"
"""Of all rows that say what a project owns."""
_MOST_NAMED: Final = 8

_Key = tuple[DefinitionKind, str, str]
"""Kind, name and version in the store."""
_Name = tuple[DefinitionKind, str]


@dataclass(frozen=True)
class PreparedPlan:
    """A plan that was checked against the store as it was at one moment."""

    plan: ProjectPlan
    rows: tuple[Definition, ...]
    """New revisions, in the order in which they are saved."""
    states: tuple[VersionState, ...]
    removals: tuple[StoredName, ...]
    blobs: tuple[ProjectBlob, ...]
    """Those that the store lacks."""
    records: tuple[Definition, ...]
    """What projects own once all is done, if it is not what the store says."""
    seen: int
    """The last change of the realm that the plan knows."""

    @property
    def is_needed(self) -> bool:
        """Whether applying it writes anything, be it only what the project owns."""
        return bool(self.plan.to_do or self.records or self.blobs)

    async def apply(self, crib: Crib) -> ProjectPlan:
        """Write the plan.

        Args:
            crib: Of the store that it was made for.

        Returns:
            The plan, marked as applied.

        Raises:
            Conflict: Something in the realm has changed since the plan was made; nothing was written.
        """
        store, who = crib.store, crib.principal
        for blob in self.blobs:
            await store.blobs.put(blob.base64, realm=who.realm, made_by=who.id, content_type=blob.media_type)
        if self.is_needed:
            removals = [Removal(*each) for each in self.removals]
            written = (*self.rows, *self.records)
            await store.definitions.save_all(who.realm, written, self.states, seen=self.seen, removals=removals)
        await crib.refresh(who.realm)
        return self.plan.model_copy(update={"applied": True})


async def prepare(
    crib: Crib, project: Project, *, adopt: bool = False, functions: Functions | None = None, sync: bool = False
) -> PreparedPlan:
    """Plan what applying a project changes. Nothing is written.

    Args:
        crib: Of the store.
        project: The documents.
        adopt: Own also what others have made and the project has documents for; only what a project owns is removed
            when its document is.
        functions: The Python functions of the application that the project names.
        sync: Ask also the addresses of imports whose documents have not changed.

    Raises:
        InvalidProject: A document cannot be saved, or another project owns its name; `faults` has all problems.

    Example:
        from pathlib import Path
        from toolcrib.crib.project import Project, prepare

        prepared = await prepare(crib, Project.read(Path("definitions")))
        done = await prepared.apply(crib)
        print(done.counts())
    """
    await crib.authorize(newest=True)
    realm = crib.principal.realm
    seen = await crib.store.definitions.changes(realm)
    async with crib.shadow() as (shadow, store):
        begun = await _newest_numbers(store.definitions, realm)
        before = await _rows(store.definitions, realm)
        ownership = _Ownership(project, await store.definitions.revisions("project", realm))
        removals = ownership.unnamed(before)
        for each in removals:
            await _remove(shadow, each)
        saved = await save_project(shadow, project, functions, {} if sync else ownership.pins())
        faults = [] if adopt else ownership.conflicts(saved)
        if faults:
            raise InvalidProject(faults)
        gone = [each for each in removals if each not in saved.made_by]
        owned = ownership.owned(saved, before, adopt=adopt)
        rows = await _new_rows(store.definitions, realm, begun)
        after = await _rows(store.definitions, realm)
        records = tuple(ownership.records(owned, after, saved, shadow))
        planner = _Planner(crib, saved, before, after, ownership)
        changes = [each async for each in planner.changes()]
    plan = ProjectPlan(
        project=project.name,
        changes=tuple(changes),
        needs=tuple([each async for each in _needs(crib, project)]),
        warnings=tuple(saved.warnings),
    )
    blobs = tuple([each for each in saved.blobs.values() if not await _has_blob(crib, each.name)])
    return PreparedPlan(plan, rows, _states(before, after), tuple(gone), blobs, records, seen)


async def _has_blob(crib: Crib, digest: str) -> bool:
    try:
        await crib.store.blobs.get(crib.principal.realm, digest)
    except NotFound:
        return False
    return True


async def _rows(definitions: Definitions, realm: str) -> dict[_Key, Definition]:
    """The newest revision of each version."""
    found: dict[_Key, Definition] = {}
    for kind in SHOWN:
        for row in await definitions.revisions(kind, realm):
            found[kind, row.name, row.version] = row
    return found


async def _newest_numbers(definitions: Definitions, realm: str) -> dict[_Name, int]:
    return {(kind, row.name): row.revision for kind in _STORED for row in await definitions.revisions(kind, realm)}


async def _new_rows(definitions: Definitions, realm: str, begun: Mapping[_Name, int]) -> tuple[Definition, ...]:
    """The revisions that were saved in a shadow, the ones that others are bound to first."""
    found: list[Definition] = []
    for kind in _STORED:
        if kind not in {"draft", "project"}:
            rows = sorted(await definitions.revisions(kind, realm), key=lambda each: each.created_at)
            found += [row for row in rows if row.revision > begun.get((kind, row.name), 0)]
    return tuple(found)


def _states(before: Mapping[_Key, Definition], after: Mapping[_Key, Definition]) -> tuple[VersionState, ...]:
    """The life-cycle states that differ, of tools."""
    states: list[VersionState] = []
    for (kind, name, version), row in after.items():
        known = before.get((kind, name, version))
        was = ("active", None, None, None) if known is None else _life(known)
        if _life(row) != was:
            status, message, sunset, replacement = _life(row)
            states.append(VersionState(kind, row.realm, name, version, status, message, sunset, replacement))
    return tuple(states)


def _life(row: Definition) -> tuple[LifeCycle, str | None, datetime | None, str | None]:
    return row.status, row.status_message, row.sunset, row.replacement


async def _remove(shadow: Crib, what: StoredName) -> None:
    """Remove one thing as its own command does."""
    realm, name = shadow.principal.realm, what.name
    match what.kind:
        case "tool":
            await shadow.registry.remove(realm, name, what.version)
        case "provider":
            await shadow.providers.remove(realm, name)
        case "fragment":
            await shadow.fragments.remove(name)
        case "account":
            await shadow.accounts.remove(name)
        case "condition":
            await shadow.conditions.remove(name)
        case "mcp_server":
            await shadow.mcp_servers.remove(name)
        case "trigger":
            await shadow.triggers.remove(name)
        case _:
            await shadow.steps.remove(name)


def _stored_name(key: _Key) -> StoredName:
    kind, name, version = key
    return StoredName(kind, name, version if kind == "tool" else None)


class _Ownership:
    """Which project has made what, as the store knows it, and what each thing was when its project was last applied."""

    def __init__(self, project: Project, stored: Sequence[Definition]) -> None:
        self._project = project
        self._stored = {row.name: row for row in stored}
        self._owner: dict[str, str] = {}
        for name, row in self._stored.items():
            self._owner |= dict.fromkeys(_section(row, "owns"), name)
        self._applied = _section(self._stored.get(project.name), "applied")

    def _owner_of(self, made: StoredName) -> str | None:
        """The project that owns a thing; a record without versions means all of them."""
        return self._owner.get(str(made)) or self._owner.get(f"{made.kind}/{made.name}")

    def unnamed(self, present: Iterable[_Key]) -> list[StoredName]:
        """What the project owns and has no document for any more, the ones that others depend on last."""
        kept = {_text(each) for each in self._project.documents}
        kept |= {f"{each.kind}/{each.name}" for each in self._project.documents}
        owns = _section(self._stored.get(self._project.name), "owns")
        found = [_stored_name(key) for key in sorted(present, key=lambda each: (-SHOWN.index(each[0]), *each[1:]))]
        documents = {made: owns.get(str(made), owns.get(f"{made.kind}/{made.name}")) for made in found}
        return [made for made, document in documents.items() if document is not None and document not in kept]

    def pins(self) -> dict[str, Pin]:
        """What the project's imports from addresses have made."""
        row = self._stored.get(self._project.name)
        made: dict[str, list[StoredName]] = {}
        for text, document in _section(row, "owns").items():
            made.setdefault(str(document), []).append(StoredName.read(text))
        digests = _section(row, "imports")
        return {name: Pin(str(digest), tuple(made.get(f"import/{name}", ()))) for name, digest in digests.items()}

    def conflicts(self, saved: SavedProject) -> list[ProjectFault]:
        """The documents of what another project owns; also other versions of a tool are its own."""
        by_name: dict[tuple[str, str], set[str]] = {}
        for text, owner in self._owner.items():
            kind, _, name = text.partition("@")[0].partition("/")
            by_name.setdefault((kind, name), set()).add(owner)
        faults: list[ProjectFault] = []
        for made, document in saved.made_by.items():
            owner = self._owner_of(made)
            owners = {owner} if owner is not None else by_name.get((made.kind, made.name), set[str]())
            if owners and self._project.name not in owners:
                told = f"it belongs to the project {min(owners)!r}; take it over with --adopt, or rename it"
                faults.append(document.fault("/name", told))
        return faults

    def owned(self, saved: SavedProject, before: Iterable[_Key], *, adopt: bool) -> dict[StoredName, ProjectDocument]:
        """What the project owns from now on."""
        present = {_stored_name(key) for key in before}
        return {
            made: document
            for made, document in sorted(saved.made_by.items(), key=lambda each: str(each[0]))
            if adopt or made not in present or self._owner_of(made) == self._project.name
        }

    def records(
        self,
        owned: Mapping[StoredName, ProjectDocument],
        after: Mapping[_Key, Definition],
        saved: SavedProject,
        who: Crib,
    ) -> Iterator[Definition]:
        """What the store must say of projects, where it says something else: one thing has one owner."""
        owns = {str(made): _text(document) for made, document in owned.items()}
        states = {str(_stored_name(key)): _state(row) for key, row in after.items() if _stored_name(key) in owned}
        imports: JsonObject = {name: pin.digest for name, pin in saved.pins.items()}
        yield from self._record(self._project.name, {"owns": owns, "applied": states, "imports": imports}, who)
        for name, row in self._stored.items():
            if name != self._project.name:
                left = {text: document for text, document in _section(row, "owns").items() if text not in owns}
                known = {text: state for text, state in _section(row, "applied").items() if text in left}
                yield from self._record(name, {**row.body, "owns": left, "applied": known}, who)

    def _record(self, name: str, sections: JsonObject, who: Crib) -> Iterator[Definition]:
        row = self._stored.get(name)
        if all(sections.get(section, {}) == _section(row, section) for section in ("owns", "applied", "imports")):
            return
        body: JsonObject = {"project": name, **sections}
        yield Definition(
            kind="project",
            realm=who.principal.realm,
            name=name,
            version=_VERSION,
            revision=0,
            content_hash=content_hash(body),
            body=body,
            made_by=who.principal.id,
            created_at=who.clock.now(),
        )

    def drift(self, key: _Key, row: Definition | None) -> str | None:
        """What others have done to a thing since the project was last applied."""
        was = self._applied.get(str(_stored_name(key)))
        if was is None or (row is not None and _state(row) == was):
            return None
        if row is None:
            return "removed by others since the last apply"
        if str(was).partition(" ")[0] != row.content_hash:
            when = row.created_at.isoformat(timespec="seconds")
            return f"changed by {row.made_by} since the last apply, at {when}"
        return "its life-cycle state was changed by others since the last apply"


def _section(row: Definition | None, name: str) -> JsonObject:
    return {} if row is None else cast("JsonObject", row.body.get(name, {}))


def _text(document: ProjectDocument) -> str:
    version = "" if document.version is None else f"@{document.version}"
    return f"{document.kind}/{document.name}{version}"


def _state(row: Definition) -> str:
    """Content and life-cycle state in one text."""
    status, message, sunset, replacement = _life(row)
    life = {"message": message, "sunset": None if sunset is None else sunset.isoformat(), "replacement": replacement}
    return f"{row.content_hash} {status} {content_hash(life)}"


class _Planner:
    """Compares the rows of a store before and after."""

    def __init__(
        self,
        crib: Crib,
        saved: SavedProject,
        before: Mapping[_Key, Definition],
        after: Mapping[_Key, Definition],
        ownership: _Ownership,
    ) -> None:
        self._crib = crib
        self._saved = saved
        self._before, self._after = before, after
        self._ownership = ownership

    async def changes(self) -> AsyncIterator[PlannedChange]:
        """All changes, in the order of kinds and names; what does not change is named if it has a document."""
        keys = sorted({*self._before, *self._after}, key=lambda key: (SHOWN.index(key[0]), *key[1:]))
        for key in keys:
            old, new = self._before.get(key), self._after.get(key)
            document = self._saved.made_by.get(_stored_name(key))
            drift = None if document is not None and document.kind == "function" else self._ownership.drift(key, old)
            if old is not None and new is not None and _same(old, new):
                if document is not None:
                    yield self._change("unchanged", new, document, drift=drift)
            elif new is None and old is not None:
                yield self._change("remove", old, document, dangers=await self._dangers(old, None), drift=drift)
            elif new is not None and old is None:
                yield self._change("create", new, document, drift=drift)
            elif old is not None and new is not None:
                fields = tuple(field_changes(document_of(old)[1], document_of(new)[1]))
                yield self._change("change", new, document, fields, await self._dangers(old, new), drift=drift)

    @staticmethod
    def _change(
        action: str,
        row: Definition,
        document: ProjectDocument | None,
        fields: tuple[FieldChange, ...] = (),
        dangers: tuple[str, ...] = (),
        *,
        drift: str | None = None,
    ) -> PlannedChange:
        kind = document_of(row)[0]
        return PlannedChange.model_validate(
            {
                "action": action,
                "kind": kind,
                "name": row.name,
                "version": row.version if row.kind == "tool" else None,
                "source": None if document is None else document.source,
                "fields": fields,
                "dangers": dangers,
                "drift": drift,
            }
        )

    async def _dangers(self, old: Definition, new: Definition | None) -> tuple[str, ...]:
        """Why a change or a removal can affect callers, with those that depend on it."""
        if old.kind == "tool":
            return tuple([each async for each in self._dangers_of_tool(old, new)])
        if old.kind == "provider":
            return tuple(self._dangers_of_provider(old, new))
        return () if new is not None else ("what names it fails from now on",)

    async def _dangers_of_tool(self, old: Definition, new: Definition | None) -> AsyncIterator[str]:
        before = ToolDefinition.model_validate(old.body)
        after = None if new is None else ToolDefinition.model_validate(new.body)
        change = None if after is None else classify(before, after)
        is_blocked = new is not None and new.status == "blocked" and old.status != "blocked"
        if change is not None and not change.is_harmful and not is_blocked:
            return
        if is_blocked:
            yield "every call is denied from now on"
        else:
            yield "it is not found any more" if change is None else summary_of(change)
        try:
            impact = await self._crib.lifecycle.impact(f"{old.name}@{old.version}", proposed=after)
        except NotFound:
            return
        if impact.dependents:
            yield f"used by {_listed([f'{each.kind} {each.name}' for each in impact.dependents])}"
        if impact.runs:
            yield f"runs that have not ended: {_listed([each.run_id for each in impact.runs])}"

    def _dangers_of_provider(self, old: Definition, new: Definition | None) -> Iterator[str]:
        reached = ("base_url", "auth", "connection", "schemes", "security", "enabled", "variables")
        if new is not None and all(old.body.get(name) == new.body.get(name) for name in reached):
            return
        yield "its tools cannot be called any more" if new is None else "its tools are called in another way"
        tools = [row.name for (kind, _, _), row in self._before.items() if kind == "tool" and _calls(row, old.name)]
        if tools:
            yield f"used by {_listed([f'tool {name}' for name in dict.fromkeys(tools)])}"


def _same(old: Definition, new: Definition) -> bool:
    return old.content_hash == new.content_hash and _life(old) == _life(new)


def _calls(row: Definition, provider: str) -> bool:
    return ToolDefinition.model_validate(row.body).provider == provider


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"


async def _needs(crib: Crib, project: Project) -> AsyncIterator[ProjectNeed]:
    """What the project names and applying it does not make."""
    secrets: set[str] = set()
    if project.of_kind("secret"):
        try:
            secrets = {entry.name for entry in await crib.secrets.list()}
        except InvalidSettings:
            secrets = set()
    for each in project.of_kind("secret"):
        there = each.name in secrets
        message = "it is in the vault" if there else f"it is not in the vault; run toolcrib secret set {each.name}"
        yield ProjectNeed(kind="secret", name=each.name, source=each.source, present=there, message=message)
    keys = await crib.store.api_keys.list(crib.principal.realm)
    now = crib.clock.now()
    for each in project.of_kind("key"):
        scopes = set(each.body.scopes) if isinstance(each.body, ProjectKey) else set[str]()
        live = [key for key in keys if key.expires_at is None or key.expires_at > now]
        there = any(key.principal == each.name and scopes <= set(key.scopes) for key in live)
        asked = "".join(f" --scope '{scope}'" for scope in sorted(scopes))
        message = "there is one" if there else f"there is none; run toolcrib key add --principal {each.name}{asked}"
        yield ProjectNeed(kind="key", name=each.name, source=each.source, present=there, message=message)
    for each in project.of_kind("budget"):
        cap = SpendingCap.parse(each.body.cap) if isinstance(each.body, ProjectBudget) else None
        there = cap in {SpendingCap.parse(text) for text in crib.budgets}
        message = "the settings have it" if there else f"add {str(cap)!r} to budgets (TOOLCRIB_BUDGETS)"
        yield ProjectNeed(kind="budget", name=each.name, source=each.source, present=there, message=message)
