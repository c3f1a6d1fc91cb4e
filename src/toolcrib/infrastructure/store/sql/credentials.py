"""API keys and encrypted values in SQL."""

from collections.abc import Sequence
from typing import Any, Final

import orjson
import sqlalchemy as sa

from toolcrib.contracts import Conflict
from toolcrib.infrastructure.store.database.database import Database
from toolcrib.infrastructure.store.database.dialect import insert_new
from toolcrib.infrastructure.store.database.session import InTurn, Row, Session
from toolcrib.infrastructure.store.database.tables import API_KEYS, SEALED
from toolcrib.infrastructure.store.ports.records import SealedKey, SealedValue
from toolcrib.infrastructure.store.ports.records import require_next_sealed as require_next
from toolcrib.infrastructure.store.ports.store import ApiKey
from toolcrib.infrastructure.store.sql.rows import ids_with_prefix, to_micros, to_moment, to_moment_or_none

_INSERT: Final = insert_new(API_KEYS)
_GET: Final = sa.select(API_KEYS).where(API_KEYS.c.key_id == sa.bindparam("this_key"))
_OF_REALM: Final = sa.select(API_KEYS).where(API_KEYS.c.realm == sa.bindparam("this_realm"))
_LIST: Final = _OF_REALM.order_by(API_KEYS.c.created_at, API_KEYS.c.key_id)
_DELETE: Final = sa.delete(API_KEYS).where(
    API_KEYS.c.key_id == sa.bindparam("this_key"), API_KEYS.c.realm == sa.bindparam("this_realm")
)
_COUNT: Final = sa.select(sa.func.count().label("count")).select_from(API_KEYS)


class SqlApiKeys:
    """API keys, in the table `api_keys`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, key: ApiKey) -> None:
        row = {
            "key_id": key.key_id,
            "realm": key.realm,
            "principal": key.principal,
            "secret_hash": key.secret_hash,
            "last_four": key.last_four,
            "made_by": key.made_by,
            "created_at": to_micros(key.created_at),
            "expires_at": to_micros(key.expires_at),
            "scopes": orjson.dumps(key.scopes).decode(),
        }

        def work(session: Session) -> None:
            if not session.run(_INSERT, row):
                msg = f"an API key {key.key_id} already exists; use a new id"
                raise Conflict(msg)

        await self._database.write(work)

    async def get(self, key_id: str) -> ApiKey | None:
        def work(session: Session) -> ApiKey | None:
            row = session.row(_GET, {"this_key": key_id})
            return None if row is None else _api_key(row)

        return await self._database.read(work)

    async def count(self) -> int:
        return await self._database.read(lambda session: session.rows(_COUNT, {})[0]["count"])

    async def list(self, realm: str) -> Sequence[ApiKey]:
        rows = await self._database.read(lambda session: session.rows(_LIST, {"this_realm": realm}))
        return [_api_key(row) for row in rows]

    async def find_ids(self, realm: str, prefix: str, *, limit: int) -> Sequence[str]:
        found = ids_with_prefix(API_KEYS.c.key_id, realm, prefix, limit)
        return await self._database.read(lambda session: session.connection.execute(found).scalars().all())

    async def remove(self, realm: str, key_id: str) -> bool:
        key = {"this_key": key_id, "this_realm": realm}
        return await self._database.write(lambda session: session.run(_DELETE, key) > 0)


def _api_key(row: Row) -> ApiKey:
    return ApiKey(
        key_id=row["key_id"],
        realm=row["realm"],
        principal=row["principal"],
        secret_hash=row["secret_hash"],
        made_by=row["made_by"],
        created_at=to_moment(row["created_at"]),
        expires_at=to_moment_or_none(row["expires_at"]),
        last_four=row["last_four"],
        scopes=tuple(orjson.loads(row["scopes"])),
    )


_C: Final = SEALED.c
_PLACE: Final = tuple(_C[name] == sa.bindparam(f"this_{name}") for name in SealedKey._fields)
_ORDER: Final = tuple(_C[name] for name in SealedKey._fields)
_SEALED_GET: Final = sa.select(SEALED).where(*_PLACE)
_ALL: Final = sa.select(SEALED).order_by(*_ORDER)
_SEALED_OF_REALM: Final = _ALL.where(_C.realm == sa.bindparam("this_realm"))
_SEALED_DELETE: Final = sa.delete(SEALED).where(*_PLACE)
_SEALED_INSERT: Final = sa.insert(SEALED)
_RESEAL: Final = (
    sa.update(SEALED)
    .where(*_PLACE, _C.version == sa.bindparam("old_version"), _C.sealed == sa.bindparam("old_sealed"))
    .values(sealed=sa.bindparam("new_sealed"))
)


class SqlSealedValues:
    """Sealed values, in the table `sealed`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, value: SealedValue) -> None:
        row = {
            **value.place._asdict(),
            "version": value.version,
            "sealed": value.sealed,
            "made_by": value.made_by,
            "created_at": to_micros(value.created_at),
        }

        def work(session: Session) -> None:
            known = session.row(_SEALED_GET, _key(value.place))
            require_next(value, known["version"] if known else 0)
            session.run(_SEALED_DELETE, _key(value.place))
            session.run(_SEALED_INSERT, row)

        await self._database.write(InTurn(work, ("sealed", *value.place)))

    async def get(self, place: SealedKey) -> SealedValue | None:
        row = await self._database.read(lambda session: session.row(_SEALED_GET, _key(place)))
        return None if row is None else _value(row)

    async def list(self, realm: str | None) -> Sequence[SealedValue]:
        def work(session: Session) -> Sequence[SealedValue]:
            rows = session.rows(_ALL, {}) if realm is None else session.rows(_SEALED_OF_REALM, {"this_realm": realm})
            return [_value(row) for row in rows]

        return await self._database.read(work)

    async def reseal(self, old: SealedValue, sealed: str) -> bool:
        changes = {"old_version": old.version, "old_sealed": old.sealed, "new_sealed": sealed}
        return await self._database.write(lambda session: session.run(_RESEAL, {**_key(old.place), **changes}) > 0)

    async def remove(self, place: SealedKey) -> bool:
        return await self._database.write(lambda session: session.run(_SEALED_DELETE, _key(place)) > 0)


def _key(place: SealedKey) -> dict[str, Any]:
    return {f"this_{name}": value for name, value in place._asdict().items()}


def _value(row: Row) -> SealedValue:
    return SealedValue(
        place=SealedKey(row["realm"], row["scope"], row["name"]),
        version=row["version"],
        sealed=row["sealed"],
        made_by=row["made_by"],
        created_at=to_moment(row["created_at"]),
    )
