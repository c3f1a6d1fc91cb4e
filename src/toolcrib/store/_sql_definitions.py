"""Definitions in SQL: one row per revision."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from pydantic_core import from_json

from toolcrib.contracts import SCHEMA_VERSION, LifeCycle
from toolcrib.store._database import Database, Row, Session
from toolcrib.store._rows import encode, to_micros, to_moment, to_moment_or_none
from toolcrib.store._rules import require_newest
from toolcrib.store._tables import DEFINITIONS
from toolcrib.store.ports import Definition, DefinitionKind

_C: Final = DEFINITIONS.c


def _equal(*columns: str) -> list[sa.ColumnElement[bool]]:
    return [_C[column] == sa.bindparam(f"this_{column}") for column in columns]


_LIFE: Final = ("status", "status_message", "sunset", "replacement")
_NAME: Final = _equal("realm", "kind", "name")
_INSERT: Final = sa.insert(DEFINITIONS)
_OF_VERSION: Final = sa.select(DEFINITIONS).where(*_NAME, *_equal("version")).order_by(_C.revision.desc())
_COUNT: Final = sa.select(sa.func.count().label("count")).select_from(DEFINITIONS).where(*_NAME)
_CHANGES: Final = sa.select(sa.func.coalesce(sa.func.max(_C.change), 0).label("last")).where(*_equal("realm"))
_BY_HASH: Final = (
    sa.select(DEFINITIONS).where(*_equal("realm", "content_hash")).order_by(_C.kind, _C.name, _C.revision).limit(1)
)
_LISTED: Final = sa.select(DEFINITIONS).where(*_equal("realm", "kind"), _C.removed == 0).order_by(_C.name, _C.revision)
_LISTED_NAME: Final = _LISTED.where(*_equal("name"))
_CHANGE: Final[sa.BindParameter[Any]] = sa.bindparam("new_change")
_RESTORE: Final = sa.update(DEFINITIONS).where(*_NAME, *_equal("revision")).values(removed=0, change=_CHANGE)
_REMOVE: Final = sa.update(DEFINITIONS).where(*_NAME, _C.removed == 0).values(removed=1, change=_CHANGE)
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
        key = {f"this_{name}": value for name, value in row.items()}

        def work(session: Session) -> Definition:
            count: int = session.rows(_COUNT, key)[0]["count"]
            require_newest(definition, count, after)
            known = session.rows(_OF_VERSION, key)
            same = next((found for found in known if found["content_hash"] == definition.content_hash), None)
            change = _next_change(session, definition.realm)
            if same is None or same["revision"] != known[0]["revision"]:
                life = {name: same[name] for name in _LIFE} if same is not None else {}
                new = {**row, **life, "revision": count + 1, "change": change}
                session.run(_INSERT, new)
                return _definition(new)
            if same["removed"]:
                session.run(_RESTORE, {**key, "this_revision": same["revision"], "new_change": change})
            return _definition(same)

        return await self._database.write(work)

    async def changes(self, realm: str) -> int:
        return await self._database.read(lambda session: _last_change(session, realm))

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
        parameters = {
            "this_kind": kind,
            "this_realm": realm,
            "this_name": name,
            "this_version": version,
            "new_status": status,
            "new_status_message": message,
            "new_sunset": to_micros(sunset),
            "new_replacement": replacement,
        }
        return await self._database.write(
            lambda session: session.run(_SET_STATUS, {**parameters, "new_change": _next_change(session, realm)})
        )

    async def remove(self, kind: DefinitionKind, realm: str, name: str) -> int:
        key = {"this_kind": kind, "this_realm": realm, "this_name": name}
        return await self._database.write(
            lambda session: session.run(_REMOVE, {**key, "new_change": _next_change(session, realm)})
        )


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


def _definition(row: Row) -> Definition:
    return Definition(
        kind=row["kind"],
        realm=row["realm"],
        name=row["name"],
        version=row["version"],
        revision=row["revision"],
        content_hash=row["content_hash"],
        body=from_json(row["body"]),
        made_by=row["made_by"],
        created_at=to_moment(row["created_at"]),
        status=row["status"],
        status_message=row["status_message"],
        sunset=to_moment_or_none(row["sunset"]),
        replacement=row["replacement"],
    )
