"""API keys in SQL."""

from typing import Final

import orjson
import sqlalchemy as sa

from toolcrib.contracts import Conflict
from toolcrib.store._database import Database, Session
from toolcrib.store._dialect import insert_new
from toolcrib.store._rows import to_micros, to_moment, to_moment_or_none
from toolcrib.store._tables import API_KEYS
from toolcrib.store.ports import ApiKey

_INSERT: Final = insert_new(API_KEYS)
_GET: Final = sa.select(API_KEYS).where(API_KEYS.c.key_id == sa.bindparam("this_key"))
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
                msg = f"an API key {key.key_id} exists; make a new id"
                raise Conflict(msg)

        await self._database.write(work)

    async def get(self, key_id: str) -> ApiKey | None:
        def work(session: Session) -> ApiKey | None:
            row = session.row(_GET, {"this_key": key_id})
            if row is None:
                return None
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

        return await self._database.read(work)

    async def count(self) -> int:
        return await self._database.read(lambda session: session.rows(_COUNT, {})[0]["count"])
