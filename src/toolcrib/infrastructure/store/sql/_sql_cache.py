"""Cached results in SQL."""

from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from pydantic_core import from_json

from toolcrib.contracts import SCHEMA_VERSION, JsonObject
from toolcrib.infrastructure.store.database.database import Database
from toolcrib.infrastructure.store.database.dialect import insert_new
from toolcrib.infrastructure.store.database.session import InTurn, Session
from toolcrib.infrastructure.store.database.tables import CACHE
from toolcrib.infrastructure.store.sql.rows import encode, to_micros

_THIS_KEY: Final = CACHE.c.key == sa.bindparam("this_key")
_FRESH: Final = sa.select(CACHE.c.value).where(
    _THIS_KEY, CACHE.c.expires_at.is_(None) | (CACHE.c.expires_at > sa.bindparam("now"))
)
_DELETE: Final = sa.delete(CACHE).where(_THIS_KEY)
_INSERT: Final = sa.insert(CACHE)
_ADD: Final = insert_new(CACHE)
_DELETE_OLD: Final = sa.delete(CACHE).where(_THIS_KEY, CACHE.c.expires_at <= sa.bindparam("now"))
_PURGE: Final = sa.delete(CACHE).where(CACHE.c.expires_at <= sa.bindparam("now"))


class SqlCache:
    """Results by key, in the table `cache`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, key: str, *, now: datetime) -> JsonObject | None:
        parameters = {"this_key": key, "now": to_micros(now)}
        row = await self._database.read(lambda session: session.row(_FRESH, parameters))
        return None if row is None else from_json(row["value"])

    async def put(self, key: str, value: JsonObject, *, realm: str, made_by: str, expires_at: datetime | None) -> None:
        row = _row(key, value, realm, made_by, expires_at)

        def work(session: Session) -> None:
            session.run(_DELETE, {"this_key": key})
            session.run(_INSERT, row)

        await self._database.write(InTurn(work, ("cache", key)))

    async def add(
        self, key: str, value: JsonObject, *, realm: str, made_by: str, now: datetime, expires_at: datetime
    ) -> bool:
        row = _row(key, value, realm, made_by, expires_at)

        def work(session: Session) -> bool:
            session.run(_DELETE_OLD, {"this_key": key, "now": to_micros(now)})
            return session.run(_ADD, row) == 1

        return await self._database.write(InTurn(work, ("cache", key)))

    async def purge(self, *, now: datetime) -> int:
        return await self._database.write(lambda session: session.run(_PURGE, {"now": to_micros(now)}))


def _row(key: str, value: JsonObject, realm: str, made_by: str, expires_at: datetime | None) -> dict[str, Any]:
    return {
        "key": key,
        "realm": realm,
        "made_by": made_by,
        "value": encode(value, "a result to cache"),
        "expires_at": to_micros(expires_at),
        "schema_version": SCHEMA_VERSION,
    }
