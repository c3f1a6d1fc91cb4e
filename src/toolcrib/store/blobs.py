"""Blobs: bytes in a folder or a bucket, with a row each in the database for what is known of them.

A blob's path is `REALM/aa/bb/DIGEST`: the realm by its hash, so that no name of a tenant becomes a path, and the first
two bytes of the digest as folders. The bytes are durable before the row is written, and never written again. What is
read is checked against its digest; what has a row and no bytes is said to be missing, not unknown.
"""

import asyncio
import re
from typing import Final

import sqlalchemy as sa

from toolcrib.contracts import NotFound, Unavailable
from toolcrib.contracts import digest as digest_of
from toolcrib.store._database import Database, Session
from toolcrib.store._dialect import insert_new
from toolcrib.store._tables import BLOBS
from toolcrib.store.objects import Objects

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_REALM_CHARACTERS: Final = 32
_REMEMBERED: Final = 4096
_LARGE: Final = 2**20
"""Bytes from which a digest is computed aside, so that the event loop goes on."""
_INSERT: Final = insert_new(BLOBS)
_ROW: Final = sa.select(BLOBS.c.size).where(
    BLOBS.c.realm == sa.bindparam("this_realm"), BLOBS.c.digest == sa.bindparam("this_digest")
)


class ObjectBlobs:
    """Blobs by realm and SHA-256 digest.

    Args:
        objects: Has the bytes.
        database: Has the rows.
    """

    def __init__(self, objects: Objects, database: Database) -> None:
        self._objects = objects
        self._database = database
        self._known: dict[tuple[str, str], None] = {}
        """Some blobs that are stored, oldest first."""

    async def put(self, data: bytes, *, realm: str, made_by: str, content_type: str = "application/json") -> str:
        """Store bytes; returns the digest (64 hex characters). Durable on return.

        Raises:
            Unavailable: The folder or bucket cannot be written.
        """
        name = await _digest(data)
        if (realm, name) in self._known:
            return name
        row = {"realm": realm, "digest": name, "made_by": made_by, "content_type": content_type, "size": len(data)}

        def work(session: Session) -> None:
            session.run(_INSERT, row)

        await self._objects.put(_path(realm, name), data)
        await self._database.write(work)
        self._remember(realm, name)
        return name

    async def get(self, realm: str, digest: str) -> bytes:
        """The bytes.

        Raises:
            NotFound: This realm has no such blob.
            Unavailable: The bytes are damaged or missing, or the folder or bucket cannot be read.
        """
        if _DIGEST.fullmatch(digest) is None:
            raise _no_blob(realm, digest)
        path = _path(realm, digest)
        data = await self._objects.get(path)
        if data is None:
            raise await self._absent(realm, digest, self._objects.where(path))
        if await _digest(data) != digest:
            msg = (
                f"blob {digest} of realm {realm!r} is damaged: {self._objects.where(path)} has other bytes; "
                "restore it from a backup"
            )
            raise Unavailable(msg)
        return data

    async def _absent(self, realm: str, digest: str, where: str) -> NotFound | Unavailable:
        parameters = {"this_realm": realm, "this_digest": digest}
        if await self._database.read(lambda session: session.row(_ROW, parameters)) is None:
            return _no_blob(realm, digest)
        msg = (
            f"blob {digest} of realm {realm!r} is missing: nothing is at {where}; restore it from a backup, or copy "
            "all blobs if their place was changed"
        )
        return Unavailable(msg)

    def _remember(self, realm: str, name: str) -> None:
        self._known[realm, name] = None
        if len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]


async def _digest(data: bytes) -> str:
    return digest_of(data) if len(data) < _LARGE else await asyncio.to_thread(digest_of, data)


def _path(realm: str, digest: str) -> str:
    owner = digest_of(realm.encode())[:_REALM_CHARACTERS]
    return f"{owner}/{digest[:2]}/{digest[2:4]}/{digest}"


def _no_blob(realm: str, digest: str) -> NotFound:
    return NotFound(f"realm {realm!r} has no blob {digest}")
