"""Blobs in SQL: a row for each blob, with its bytes in the database, in a folder or in a bucket.

A path is `REALM/aa/bb/DIGEST`: a hash of the realm, and two bytes of the digest as folders. Bytes are never
overwritten, and are checked against their digest when read. A blob with a row but no bytes is reported as missing. The
row is written first, with the time of the last write; a blob is deleted in the transaction that removes its row, if
that time is old. Bytes in the database are shared by all machines and part of its backup; for many or large blobs, use
a bucket.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import sqlalchemy as sa

from toolcrib.contracts import NotFound, Unavailable
from toolcrib.contracts import digest as digest_of
from toolcrib.infrastructure.store.blobs.files import Objects
from toolcrib.infrastructure.store.database.database import Database
from toolcrib.infrastructure.store.database.dialect import insert_new
from toolcrib.infrastructure.store.database.session import Session
from toolcrib.infrastructure.store.database.tables import BLOB_BYTES, BLOBS
from toolcrib.infrastructure.store.sql.rows import to_micros

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_REALM_CHARACTERS: Final = 32
_REMEMBERED: Final = 4096
_LARGE: Final = 2**20
"""Bytes from which a digest is computed aside, so that the event loop goes on."""
_TOUCH_AGAIN: Final = timedelta(hours=1)
"""How long a blob that was put is taken to be there; less than anybody lets pass before removing it."""
_THIS: Final = (BLOBS.c.realm == sa.bindparam("this_realm"), BLOBS.c.digest == sa.bindparam("this_digest"))
_INSERT: Final = insert_new(BLOBS)
_TOUCH: Final = sa.update(BLOBS).where(*_THIS).values(touched_at=sa.bindparam("now"))
_ROW: Final = sa.select(BLOBS.c.size).where(*_THIS)
_OLD_ROW: Final = _ROW.where(BLOBS.c.touched_at < sa.bindparam("since")).with_for_update()
_DELETE: Final = sa.delete(BLOBS).where(*_THIS)


def _utc_now() -> datetime:
    return datetime.now(UTC)


class ObjectBlobs:
    """Blobs by realm and SHA-256 digest.

    Args:
        objects: Has the bytes.
        database: Has the rows.
        now: Tells the time.
    """

    def __init__(self, objects: Objects, database: Database, *, now: Callable[[], datetime] = _utc_now) -> None:
        self._objects = objects
        self._database = database
        self._now = now
        self._known: dict[tuple[str, str], datetime] = {}
        """When some blobs were put, oldest first."""

    async def put(self, data: bytes, *, realm: str, made_by: str, content_type: str = "application/json") -> str:
        """Store bytes; returns the digest (64 hex characters). Durable on return.

        Raises:
            Unavailable: The folder or bucket cannot be written.
        """
        name = await digest_aside(data)
        now = self._now()
        if now - self._known.get((realm, name), now - _TOUCH_AGAIN) < _TOUCH_AGAIN:
            return name
        row = {
            "realm": realm,
            "digest": name,
            "made_by": made_by,
            "content_type": content_type,
            "size": len(data),
            "touched_at": to_micros(now),
        }

        def work(session: Session) -> None:
            if not session.run(_INSERT, row):
                session.run(_TOUCH, {"this_realm": realm, "this_digest": name, "now": row["touched_at"]})

        await self._database.write(work)
        await self._objects.put(_path(realm, name), data)
        self._remember(realm, name, now)
        return name

    async def remove(self, realm: str, digests: Sequence[str], *, untouched_since: datetime) -> Sequence[str]:
        """Remove those of the blobs that were not put since a moment; returns which.

        Raises:
            Unavailable: The folder or bucket cannot be written.
        """
        since = to_micros(untouched_since)

        def work(session: Session) -> list[str]:
            keys = {digest: {"this_realm": realm, "this_digest": digest} for digest in digests}
            removed = [digest for digest, key in keys.items() if session.row(_OLD_ROW, {**key, "since": since})]
            self._objects.discard([_path(realm, digest) for digest in removed])
            for digest in removed:
                session.run(_DELETE, keys[digest])
            return removed

        removed = await self._database.write(work)
        for digest in removed:
            self._known.pop((realm, digest), None)
        return removed

    async def get(self, realm: str, digest: str) -> bytes:
        """The bytes.

        Raises:
            NotFound: This realm has no such blob.
            Unavailable: The bytes are damaged or missing, or the folder or bucket cannot be read.
        """
        if _DIGEST.fullmatch(digest) is None:
            raise no_blob(realm, digest)
        path = _path(realm, digest)
        data = await self._objects.get(path)
        if data is None:
            raise await self._absent(realm, digest, self._objects.where(path))
        if await digest_aside(data) != digest:
            msg = (
                f"blob {digest} of realm {realm!r} is damaged: {self._objects.where(path)} has other bytes; "
                "restore it from a backup"
            )
            raise Unavailable(msg)
        return data

    async def _absent(self, realm: str, digest: str, where: str) -> NotFound | Unavailable:
        parameters = {"this_realm": realm, "this_digest": digest}
        if await self._database.read(lambda session: session.row(_ROW, parameters)) is None:
            return no_blob(realm, digest)
        msg = (
            f"blob {digest} of realm {realm!r} is missing: nothing is at {where}; restore it from a backup, or copy "
            "all blobs if their place was changed"
        )
        return Unavailable(msg)

    def _remember(self, realm: str, name: str, now: datetime) -> None:
        self._known.pop((realm, name), None)  # so that the latest comes last
        self._known[realm, name] = now
        if len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]


async def digest_aside(data: bytes) -> str:
    """The SHA-256 digest; of much data in a thread of its own."""
    return digest_of(data) if len(data) < _LARGE else await asyncio.to_thread(digest_of, data)


def _path(realm: str, digest: str) -> str:
    owner = digest_of(realm.encode())[:_REALM_CHARACTERS]
    return f"{owner}/{digest[:2]}/{digest[2:4]}/{digest}"


def no_blob(realm: str, digest: str) -> NotFound:
    """The error for a digest that names no blob of a realm."""
    return NotFound(f"realm {realm!r} has no blob {digest}")


def _this(table: sa.Table) -> tuple[sa.ColumnElement[bool], ...]:
    return tuple(table.c[name] == sa.bindparam(f"this_{name}") for name in ("realm", "digest"))


_BLOBS_TOUCH: Final = sa.update(BLOBS).where(*_this(BLOBS)).values(touched_at=sa.bindparam("now"))
_INSERT_BYTES: Final = insert_new(BLOB_BYTES)
_BYTES: Final = sa.select(BLOB_BYTES.c.data).where(*_this(BLOB_BYTES))
_DELETE_OLD: Final = sa.delete(BLOBS).where(*_this(BLOBS), BLOBS.c.touched_at < sa.bindparam("since"))
_DELETE_BYTES: Final = sa.delete(BLOB_BYTES).where(*_this(BLOB_BYTES))


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
            if not session.run(_BLOBS_TOUCH, {**_key(realm, name), "now": row["touched_at"]}):
                session.run(_INSERT, row)
                session.run(_INSERT_BYTES, {"realm": realm, "digest": name, "made_by": made_by, "data": data})

        await self._database.write(work)
        return name

    async def remove(self, realm: str, digests: Sequence[str], *, untouched_since: datetime) -> Sequence[str]:
        since = to_micros(untouched_since)

        def work(session: Session) -> list[str]:
            keys = {digest: _key(realm, digest) for digest in digests}
            removed = [digest for digest, key in keys.items() if session.run(_DELETE_OLD, {**key, "since": since})]
            for digest in removed:
                session.run(_DELETE_BYTES, keys[digest])
            return removed

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
