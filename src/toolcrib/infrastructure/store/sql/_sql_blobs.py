"""Blobs in the database itself: their bytes in one table, what is known of them in another, both in one transaction.

So every machine that shares the database has them, and a backup of it is whole. For many or large ones a bucket is the
better place; see `blobs`.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

import sqlalchemy as sa

from toolcrib.contracts import Unavailable
from toolcrib.infrastructure.store.database.database import Database
from toolcrib.infrastructure.store.database.dialect import insert_new
from toolcrib.infrastructure.store.database.session import Session
from toolcrib.infrastructure.store.database.tables import BLOB_BYTES, BLOBS
from toolcrib.infrastructure.store.sql.blobs import digest_aside, no_blob
from toolcrib.infrastructure.store.sql.rows import to_micros


def _this(table: sa.Table) -> tuple[sa.ColumnElement[bool], ...]:
    return tuple(table.c[name] == sa.bindparam(f"this_{name}") for name in ("realm", "digest"))


_TOUCH: Final = sa.update(BLOBS).where(*_this(BLOBS)).values(touched_at=sa.bindparam("now"))
_INSERT: Final = insert_new(BLOBS)
_INSERT_BYTES: Final = insert_new(BLOB_BYTES)
_BYTES: Final = sa.select(BLOB_BYTES.c.data).where(*_this(BLOB_BYTES))
_DELETE_OLD: Final = sa.delete(BLOBS).where(*_this(BLOBS), BLOBS.c.touched_at < sa.bindparam("since"))
_DELETE_BYTES: Final = sa.delete(BLOB_BYTES).where(*_this(BLOB_BYTES))


def _utc_now() -> datetime:
    return datetime.now(UTC)


class SqlBlobs:
    """Blobs by realm and SHA-256 digest, in the tables `blobs` and `blob_bytes`.

    Args:
        database: Has them.
        now: Tells the time.
    """

    def __init__(self, database: Database, *, now: Callable[[], datetime] = _utc_now) -> None:
        self._database = database
        self._now = now

    async def put(self, data: bytes, *, realm: str, made_by: str, content_type: str = "application/json") -> str:
        name = await digest_aside(data)
        row = {
            "realm": realm,
            "digest": name,
            "made_by": made_by,
            "content_type": content_type,
            "size": len(data),
            "touched_at": to_micros(self._now()),
        }

        def work(session: Session) -> None:
            if not session.run(_TOUCH, {**_key(realm, name), "now": row["touched_at"]}):
                session.run(_INSERT, row)
                session.run(_INSERT_BYTES, {"realm": realm, "digest": name, "made_by": made_by, "data": data})

        await self._database.write(work)
        return name

    async def remove(self, realm: str, digests: Sequence[str], *, untouched_since: datetime) -> Sequence[str]:
        since = to_micros(untouched_since)

        def work(session: Session) -> list[str]:
            keys = {digest: _key(realm, digest) for digest in digests}
            gone = [digest for digest, key in keys.items() if session.run(_DELETE_OLD, {**key, "since": since})]
            for digest in gone:
                session.run(_DELETE_BYTES, keys[digest])
            return gone

        return await self._database.write(work)

    async def get(self, realm: str, digest: str) -> bytes:
        row = await self._database.read(lambda session: session.row(_BYTES, _key(realm, digest)))
        if row is None:
            raise no_blob(realm, digest)
        data = bytes(row["data"])
        if await digest_aside(data) != digest:
            msg = f"blob {digest} of realm {realm!r} is damaged: the database has other bytes; restore a backup"
            raise Unavailable(msg)
        return data


def _key(realm: str, digest: str) -> dict[str, str]:
    return {"this_realm": realm, "this_digest": digest}
