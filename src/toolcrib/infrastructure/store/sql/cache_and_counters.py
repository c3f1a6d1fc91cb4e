"""Counters and cached results in SQL.

A counter has one row per reservation, and one without a ticket for settled amounts.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from pydantic_core import from_json

from toolcrib.contracts import SCHEMA_VERSION, JsonObject
from toolcrib.infrastructure.store.database.database import Database
from toolcrib.infrastructure.store.database.dialect import insert_new
from toolcrib.infrastructure.store.database.session import InTurn, Session
from toolcrib.infrastructure.store.database.tables import CACHE, COUNTERS
from toolcrib.infrastructure.store.ports.records import Charge, Reserved
from toolcrib.infrastructure.store.sql.rows import encode, to_micros

_CACHE_THIS_KEY: Final = CACHE.c.key == sa.bindparam("this_key")
_FRESH: Final = sa.select(CACHE.c.value).where(
    _CACHE_THIS_KEY, CACHE.c.expires_at.is_(None) | (CACHE.c.expires_at > sa.bindparam("now"))
)
_CACHE_DELETE: Final = sa.delete(CACHE).where(_CACHE_THIS_KEY)
_CACHE_INSERT: Final = sa.insert(CACHE)
_CACHE_ADD: Final = insert_new(CACHE)
_DELETE_OLD: Final = sa.delete(CACHE).where(_CACHE_THIS_KEY, CACHE.c.expires_at <= sa.bindparam("now"))
_CACHE_PURGE: Final = sa.delete(CACHE).where(CACHE.c.expires_at <= sa.bindparam("now"))


class SqlCache:
    """Results by key, in the table `cache`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, key: str, *, now: datetime) -> JsonObject | None:
        parameters = {"this_key": key, "now": to_micros(now)}
        row = await self._database.read(lambda session: session.row(_FRESH, parameters))
        return None if row is None else from_json(row["value"])

    async def put(self, key: str, value: JsonObject, *, realm: str, made_by: str, expires_at: datetime | None) -> None:
        row = _cache_row(key, value, realm, made_by, expires_at)

        def work(session: Session) -> None:
            session.run(_CACHE_DELETE, {"this_key": key})
            session.run(_CACHE_INSERT, row)

        await self._database.write(InTurn(work, ("cache", key)))

    async def add(
        self, key: str, value: JsonObject, *, realm: str, made_by: str, now: datetime, expires_at: datetime
    ) -> bool:
        row = _cache_row(key, value, realm, made_by, expires_at)

        def work(session: Session) -> bool:
            session.run(_DELETE_OLD, {"this_key": key, "now": to_micros(now)})
            return session.run(_CACHE_ADD, row) == 1

        return await self._database.write(InTurn(work, ("cache", key)))

    async def purge(self, *, now: datetime) -> int:
        return await self._database.write(lambda session: session.run(_CACHE_PURGE, {"now": to_micros(now)}))


def _cache_row(key: str, value: JsonObject, realm: str, made_by: str, expires_at: datetime | None) -> dict[str, Any]:
    return {
        "key": key,
        "realm": realm,
        "made_by": made_by,
        "value": encode(value, "a result to cache"),
        "expires_at": to_micros(expires_at),
        "schema_version": SCHEMA_VERSION,
    }


_SETTLED: Final = ""
_THIS_KEY: Final = COUNTERS.c.key == sa.bindparam("this_key")
_THIS_ROW: Final = sa.and_(_THIS_KEY, COUNTERS.c.ticket == sa.bindparam("this_ticket"))
_USED: Final = sa.select(sa.func.coalesce(sa.func.sum(COUNTERS.c.amount), 0).label("used")).where(
    _THIS_KEY, COUNTERS.c.ticket != sa.bindparam("this_ticket"), COUNTERS.c.expires_at > sa.bindparam("now")
)
_INSERT: Final = sa.insert(COUNTERS)
_DELETE: Final = sa.delete(COUNTERS).where(_THIS_ROW)
_ADD: Final = (
    sa.update(COUNTERS)
    .where(_THIS_ROW)
    .values(amount=COUNTERS.c.amount + sa.bindparam("more"), expires_at=sa.bindparam("ends"))
)
_PURGE: Final = sa.delete(COUNTERS).where(COUNTERS.c.expires_at <= sa.bindparam("now"))


class SqlCounters:
    """Counters, in the table `counters`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def reserve(self, ticket: str, charges: Sequence[Charge], *, now: datetime, until: datetime) -> Reserved:
        def work(session: Session) -> Reserved:
            parameters = {"this_ticket": ticket, "now": to_micros(now)}
            used = tuple(_amount_used(session, {**parameters, "this_key": charge.key}) for charge in charges)
            pairs = enumerate(zip(used, charges, strict=True))
            refused = next((index for index, (before, each) in pairs if before + each.amount > each.limit), None)
            if refused is None:
                for charge in charges:
                    session.run(_DELETE, {"this_key": charge.key, "this_ticket": ticket})
                    session.run(_INSERT, _row(charge, ticket, until))
            return Reserved(used, refused)

        return await self._database.write(InTurn(work, *_names(charges)))

    async def settle(self, ticket: str, charges: Sequence[Charge]) -> None:
        def work(session: Session) -> None:
            for charge in charges:
                session.run(_DELETE, {"this_key": charge.key, "this_ticket": ticket})
                settled = {"this_key": charge.key, "this_ticket": _SETTLED}
                more = {"more": charge.amount, "ends": to_micros(charge.expires_at)}
                if session.run(_ADD, settled | more) == 0:
                    session.run(_INSERT, _row(charge, _SETTLED, charge.expires_at))

        await self._database.write(InTurn(work, *_names(charges)))

    async def purge(self, *, now: datetime) -> int:
        return await self._database.write(lambda session: session.run(_PURGE, {"now": to_micros(now)}))


def _names(charges: Sequence[Charge]) -> Sequence[tuple[str, str]]:
    return [("counters", charge.key) for charge in charges]


def _amount_used(session: Session, parameters: dict[str, Any]) -> int:
    row = session.row(_USED, parameters)
    return int(row["used"]) if row else 0


def _row(charge: Charge, ticket: str, ends: datetime) -> dict[str, Any]:
    return {
        "key": charge.key,
        "ticket": ticket,
        "realm": charge.realm,
        "made_by": charge.made_by,
        "amount": charge.amount,
        "expires_at": to_micros(ends),
    }
