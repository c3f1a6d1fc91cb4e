"""Blobs as files in a folder, with a row each for what is known of them.

A blob's path is `REALM/aa/bb/DIGEST`: the realm by its hash, so that no name of a tenant becomes a path, and the first
two bytes of the digest as folders. A file is written aside, put in its place in one step and synced before its row is
written; it is never written again. What is read is checked against its digest.
"""

import asyncio
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from toolcrib.contracts import NotFound, Unavailable
from toolcrib.contracts import digest as digest_of
from toolcrib.store._database import Database, Session
from toolcrib.store._dialect import insert_new
from toolcrib.store._tables import BLOBS

if TYPE_CHECKING:
    from obstore.store import LocalStore

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_REALM_CHARACTERS: Final = 32
_REMEMBERED: Final = 4096
_INSERT: Final = insert_new(BLOBS)


class FolderBlobs:
    """Blobs by realm and SHA-256 digest.

    Args:
        folder: Made when the first blob is stored.
        database: Has the rows.
    """

    def __init__(self, folder: Path, database: Database) -> None:
        self._folder = folder
        self._database = database
        self._known: dict[tuple[str, str], None] = {}
        """Some blobs that are stored, oldest first."""

    async def put(self, data: bytes, *, realm: str, made_by: str, content_type: str = "application/json") -> str:
        """Store bytes; returns the digest (64 hex characters). Durable on return.

        Raises:
            Unavailable: The folder cannot be written.
        """
        name = digest_of(data)
        if (realm, name) in self._known:
            return name
        row = {"realm": realm, "digest": name, "made_by": made_by, "content_type": content_type, "size": len(data)}

        def work(session: Session) -> None:
            session.run(_INSERT, row)

        await asyncio.to_thread(self._write, _path(realm, name), data)
        await self._database.write(work)
        self._remember(realm, name)
        return name

    async def get(self, realm: str, digest: str) -> bytes:
        """The bytes.

        Raises:
            NotFound: This realm has no such blob.
            Unavailable: The file is damaged.
        """
        if _DIGEST.fullmatch(digest) is None:
            raise _no_blob(realm, digest)
        data = await asyncio.to_thread(self._read, realm, digest)
        if digest_of(data) != digest:
            msg = (
                f"blob {digest} of realm {realm!r} is damaged: its bytes have another digest; restore it from a backup"
            )
            raise Unavailable(msg)
        return data

    def _write(self, path: str, data: bytes) -> None:
        import obstore  # noqa: PLC0415 - a binary module, needed with the first blob
        from obstore.exceptions import AlreadyExistsError, BaseError  # noqa: PLC0415 - as above

        try:
            with suppress(AlreadyExistsError):
                obstore.put(self._files(), path, data, mode="create")
            self._sync(path)
        except (BaseError, OSError) as error:
            msg = f"cannot write to the blobs' folder {self._folder}: {error}"
            raise Unavailable(msg) from error

    def _read(self, realm: str, digest: str) -> bytes:
        import obstore  # noqa: PLC0415 - a binary module, needed with the first blob
        from obstore.exceptions import BaseError  # noqa: PLC0415 - as above

        try:
            return bytes(obstore.get(self._files(), _path(realm, digest)).bytes())
        except FileNotFoundError:
            raise _no_blob(realm, digest) from None
        except (BaseError, OSError) as error:
            msg = f"cannot read from the blobs' folder {self._folder}: {error}"
            raise Unavailable(msg) from error

    def _files(self) -> "LocalStore":
        from obstore.store import LocalStore  # noqa: PLC0415 - a binary module, needed with the first blob

        return LocalStore(self._folder, mkdir=True)

    def _sync(self, path: str) -> None:
        """Make the file and the names that lead to it survive a loss of power, which obstore leaves to us."""
        file = self._folder / path
        for place in (file, *file.parents[: path.count("/") + 1]):
            descriptor = os.open(place, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _remember(self, realm: str, name: str) -> None:
        self._known[realm, name] = None
        if len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]


def _path(realm: str, digest: str) -> str:
    owner = digest_of(realm.encode())[:_REALM_CHARACTERS]
    return f"{owner}/{digest[:2]}/{digest[2:4]}/{digest}"


def _no_blob(realm: str, digest: str) -> NotFound:
    return NotFound(f"realm {realm!r} has no blob {digest}")
