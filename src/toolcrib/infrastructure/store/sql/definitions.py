"""Definitions in SQL: one row per revision."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

import sqlalchemy as sa
from pydantic_core import from_json

from toolcrib.contracts import SCHEMA_VERSION, JsonObject, LifeCycle
from toolcrib.infrastructure.store.database.database import Database
from toolcrib.infrastructure.store.database.session import InTurn, Row, Session
from toolcrib.infrastructure.store.database.tables import DEFINITIONS
from toolcrib.infrastructure.store.ports.state_changes import require_newest, require_unchanged
from toolcrib.infrastructure.store.ports.store import Changed, Definition, DefinitionKind, Removal, VersionState
from toolcrib.infrastructure.store.sql.rows import encode, to_micros, to_moment, to_moment_or_none

T = TypeVar("T")
_C: Final = DEFINITIONS.c


def _equal(*columns: str) -> list[sa.ColumnElement[bool]]:
    return [_C[column] == sa.bindparam(f"this_{column}") for column in columns]


_LIFE: Final = ("status", "status_message", "sunset", "replacement")
_NAME: Final = _equal("realm", "kind", "name")
_INSERT: Final = sa.insert(DEFINITIONS)
_OF_VERSION: Final = sa.select(DEFINITIONS).where(*_NAME, *_equal("version")).order_by(_C.revision.desc())
_STANDING: Final = sa.select(_C.removed).where(*_NAME)
_CHANGES: Final = sa.select(sa.func.coalesce(sa.func.max(_C.change), 0).label("last")).where(*_equal("realm"))
_BY_HASH: Final = (
    sa.select(DEFINITIONS).where(*_equal("realm", "content_hash")).order_by(_C.kind, _C.name, _C.revision).limit(1)
)
_LISTED: Final = sa.select(DEFINITIONS).where(*_equal("realm", "kind"), _C.removed == 0).order_by(_C.name, _C.revision)
_LISTED_NAME: Final = _LISTED.where(*_equal("name"))
_CHANGED: Final = (
    sa.select(DEFINITIONS)
    .where(*_equal("realm", "kind"), _C.change > sa.bindparam("since"))
    .order_by(_C.name, _C.revision)
)
_CHANGED_BODILESS: Final = _CHANGED.with_only_columns(*(column for column in _C if column.name != "body"))
_BODY: Final = sa.select(_C.body).where(*_NAME, *_equal("revision"))
_CHANGE: Final[sa.BindParameter[Any]] = sa.bindparam("new_change")
_RESTORE: Final = sa.update(DEFINITIONS).where(*_NAME, *_equal("revision")).values(removed=0, change=_CHANGE)
_REMOVE: Final = sa.update(DEFINITIONS).where(*_NAME, _C.removed == 0).values(removed=1, change=_CHANGE)
_REMOVE_VERSION: Final = _REMOVE.where(*_equal("version"))
_SET_STATUS: Final = (
    sa.update(DEFINITIONS)
    .where(*_NAME, *_equal("version"))
    .values({name: sa.bindparam(f"new_{name}") for name in ("change", *_LIFE)})
)


class SqlDefinitions:
    """Immutable revisions, in the table `definitions`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, definition: Definition, *, after: int | None = None) -> Definition:
        row = _row(definition)

        def work(session: Session) -> Definition:
            known = session.rows(_STANDING, _key(row))
            require_newest(definition, len(known), after, listed=any(not found["removed"] for found in known))
            return _save(session, row, definition)

        return await self._database.write(_in_turn(work, definition.realm))

    async def save_all(
        self,
        realm: str,
        definitions: Sequence[Definition],
        states: Sequence[VersionState] = (),
        *,
        seen: int,
        removals: Sequence[Removal] = (),
    ) -> Sequence[Definition]:
        def work(session: Session) -> list[Definition]:
            require_unchanged(realm, _last_change(session, realm), seen)
            # Their texts are made one after the other: all of a large import at once would take hundreds of megabytes.
            saved = [_save(session, _row(definition), definition) for definition in definitions]
            for state in states:
                _set_status(session, state)
            for each in removals:
                _remove(session, realm, each)
            return saved

        return await self._database.write(_in_turn(work, realm))

    async def changes(self, realm: str) -> int:
        return await self._database.read(lambda session: _last_change(session, realm))

    async def changes_since(
        self, kind: DefinitionKind, realm: str, since: int, *, without: Collection[str] = ()
    ) -> Changed:
        key = {"this_kind": kind, "this_realm": realm, "since": since}

        def read(session: Session, row: Row) -> Definition:
            if not without:
                return _definition(row)
            body = None if row["content_hash"] in without else session.rows(_BODY, _key(row))[0]["body"]
            return _definition(row, {} if body is None else from_json(body))

        def work(session: Session) -> Changed:
            rows = session.rows(_CHANGED_BODILESS if without else _CHANGED, key)
            return Changed(
                [read(session, row) for row in rows if not row["removed"]],
                [(row["name"], row["revision"]) for row in rows if row["removed"]],
            )

        return await self._database.read(work)

    async def get(self, realm: str, content_hash: str) -> Definition | None:
        def work(session: Session) -> Definition | None:
            row = session.row(_BY_HASH, {"this_realm": realm, "this_content_hash": content_hash})
            return _definition(row) if row is not None else None

        return await self._database.read(work)

    async def revisions(self, kind: DefinitionKind, realm: str, name: str | None = None) -> Sequence[Definition]:
        listed = _LISTED if name is None else _LISTED_NAME
        key = {"this_kind": kind, "this_realm": realm, "this_name": name}

        def work(session: Session) -> list[Definition]:
            return [_definition(row) for row in session.rows(listed, key)]

        return await self._database.read(work)

    async def set_status(
        self,
        kind: DefinitionKind,
        realm: str,
        name: str,
        version: str,
        *,
        status: LifeCycle,
        message: str | None = None,
        sunset: datetime | None = None,
        replacement: str | None = None,
    ) -> int:
        state = VersionState(kind, realm, name, version, status, message, sunset, replacement)

        def work(session: Session) -> int:
            return _set_status(session, state)

        return await self._database.write(_in_turn(work, realm))

    async def remove(self, kind: DefinitionKind, realm: str, name: str, version: str | None = None) -> int:
        def work(session: Session) -> int:
            return _remove(session, realm, Removal(kind, name, version))

        return await self._database.write(_in_turn(work, realm))


def _in_turn(work: Callable[[Session], T], realm: str) -> InTurn[T]:
    """Let one process after the other number revisions and changes of a realm."""
    return InTurn(work, ("definitions", realm))


def _key(row: Row) -> Row:
    return {f"this_{name}": value for name, value in row.items()}


def _save(session: Session, row: Row, definition: Definition) -> Definition:
    """Append a revision, unless the newest of its version has its content."""
    key = _key(row)
    known = session.rows(_OF_VERSION, key)
    same = next((found for found in known if found["content_hash"] == row["content_hash"]), None)
    change = _next_change(session, row["realm"])
    if same is None or same["revision"] != known[0]["revision"]:
        life = {name: same[name] for name in _LIFE} if same is not None else {}
        new = {**row, **life, "revision": len(session.rows(_STANDING, key)) + 1, "change": change}
        session.run(_INSERT, new)
        return _definition(new, definition.body)
    if same["removed"]:
        session.run(_RESTORE, {**key, "this_revision": same["revision"], "new_change": change})
    return _definition(same)


def _set_status(session: Session, state: VersionState) -> int:
    parameters = {
        "this_kind": state.kind,
        "this_realm": state.realm,
        "this_name": state.name,
        "this_version": state.version,
        "new_status": state.status,
        "new_status_message": state.message,
        "new_sunset": to_micros(state.sunset),
        "new_replacement": state.replacement,
        "new_change": _next_change(session, state.realm),
    }
    return session.run(_SET_STATUS, parameters)


def _remove(session: Session, realm: str, what: Removal) -> int:
    key = {"this_kind": what.kind, "this_realm": realm, "this_name": what.name}
    parameters = {**key, "new_change": _next_change(session, realm)}
    if what.version is None:
        return session.run(_REMOVE, parameters)
    return session.run(_REMOVE_VERSION, {**parameters, "this_version": what.version})


def _last_change(session: Session, realm: str) -> int:
    return session.rows(_CHANGES, {"this_realm": realm})[0]["last"]


def _next_change(session: Session, realm: str) -> int:
    return _last_change(session, realm) + 1


def _row(definition: Definition) -> dict[str, Any]:
    return {
        "realm": definition.realm,
        "kind": definition.kind,
        "name": definition.name,
        "version": definition.version,
        "content_hash": definition.content_hash,
        "body": encode(definition.body, f"{definition.kind} {definition.name!r}"),
        "made_by": definition.made_by,
        "created_at": to_micros(definition.created_at),
        "status": definition.status,
        "status_message": definition.status_message,
        "sunset": to_micros(definition.sunset),
        "replacement": definition.replacement,
        "removed": 0,
        "schema_version": SCHEMA_VERSION,
    }


def _definition(row: Row, body: JsonObject | None = None) -> Definition:
    """A revision; its body is read unless it is given."""
    return Definition(
        kind=row["kind"],
        realm=row["realm"],
        name=row["name"],
        version=row["version"],
        revision=row["revision"],
        content_hash=row["content_hash"],
        body=from_json(row["body"]) if body is None else body,
        made_by=row["made_by"],
        created_at=to_moment(row["created_at"]),
        status=row["status"],
        status_message=row["status_message"],
        sunset=to_moment_or_none(row["sunset"]),
        replacement=row["replacement"],
    )
