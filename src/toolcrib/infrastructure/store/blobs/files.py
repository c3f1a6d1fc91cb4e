"""The port of blob storage, its implementation with files in a folder, and the choice of a storage by URL.

A storage keeps bytes under paths and never overwrites them. It knows no realm and no digest, and verifies nothing.
"""

import asyncio
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from toolcrib.contracts import InvalidSettings
from toolcrib.contracts.base.errors import StoreUnavailable, missing_extra

_CHOICES = "use file:///path/to/folder or s3://bucket/prefix?region=…&endpoint=…"


class Objects(Protocol):
    """Bytes by path."""

    async def put(self, path: str, data: bytes) -> None:
        """Store bytes, unless something has this path; durable on return.

        Raises:
            StoreUnavailable: The place cannot be written.
        """
        ...

    async def get(self, path: str) -> bytes | None:
        """The bytes; null if nothing has this path.

        Raises:
            StoreUnavailable: The place cannot be read.
        """
        ...

    def discard(self, paths: Sequence[str]) -> None:
        """Remove what has these paths, some of which may be gone; returns when it is, and blocks its thread meanwhile.

        Raises:
            StoreUnavailable: The place cannot be written.
        """
        ...

    def where(self, path: str) -> str:
        """The path as people know it, to say where something is."""
        ...


class FolderObjects:
    """Files in a folder. One is written aside, put in its place in one step, and synced.

    Args:
        folder: Made when the first file is written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, path: str, data: bytes) -> None:
        """Write a file, unless there is one; it survives a loss of power on return.

        Raises:
            StoreUnavailable: The folder cannot be written.
        """
        await asyncio.to_thread(self._write, path, data)

    async def get(self, path: str) -> bytes | None:
        """What a file has; null if there is none.

        Raises:
            StoreUnavailable: The folder cannot be read.
        """
        try:
            return await asyncio.to_thread((self._folder / path).read_bytes)
        except FileNotFoundError:
            return None
        except OSError as error:
            msg = f"cannot read from the blobs' folder {self._folder}: {error}"
            raise StoreUnavailable(msg) from error

    def discard(self, paths: Sequence[str]) -> None:
        """Remove files, some of which may be gone.

        Raises:
            StoreUnavailable: The folder cannot be written.
        """
        try:
            for path in paths:
                (self._folder / path).unlink(missing_ok=True)
        except OSError as error:
            msg = f"cannot write to the blobs' folder {self._folder}: {error}"
            raise StoreUnavailable(msg) from error

    def where(self, path: str) -> str:
        """The file."""
        return str(self._folder / path)

    def _write(self, path: str, data: bytes) -> None:
        file = self._folder / path
        try:
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            self._folder.mkdir(mode=0o700, exist_ok=True)  # no one else reads what is in it
            file.parent.mkdir(parents=True, exist_ok=True)
            if not file.exists():
                _put(file, data)
            self._sync(path)
        except OSError as error:
            msg = f"cannot write to the blobs' folder {self._folder}: {error}"
            raise StoreUnavailable(msg) from error

    def _sync(self, path: str) -> None:
        """Make the file and the names that lead to it survive a loss of power."""
        file = self._folder / path
        for place in (file, *file.parents[: path.count("/") + 1]):
            descriptor = os.open(place, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _put(file: Path, data: bytes) -> None:
    """Write a file in one step, unless there is one: a link fails if its name is taken."""
    descriptor, aside = tempfile.mkstemp(prefix=f"{file.name}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as written:
            written.write(data)
        with suppress(FileExistsError):
            os.link(aside, file)
    finally:
        Path(aside).unlink()


def open_objects(url: str) -> Objects:
    """The place that a URL names; nothing is connected or made yet.

    Args:
        url: `file:///absolute/folder`, or `s3://bucket/prefix` with the parameters that `buckets` knows.

    Raises:
        InvalidSettings: No place has such a URL. The message does not repeat it, for what may stand before its host.
    """
    try:
        parts = urlsplit(url)
    except ValueError:  # a bracket of an IPv6 address is missing
        msg = f"a URL of blobs has an invalid address; {_CHOICES}"
        raise InvalidSettings(msg) from None
    if parts.scheme == "file" and parts.hostname is None and parts.path.strip("/"):
        return FolderObjects(Path(unquote(parts.path)))
    if parts.scheme == "s3":
        from toolcrib.infrastructure.store.blobs.buckets import bucket_of  # noqa: PLC0415 - only who asks for a bucket loads it

        if find_spec("obstore") is None:
            raise InvalidSettings(missing_extra("a bucket for blobs", "obstore", "s3"))
        return bucket_of(parts)
    msg = f"URL of blobs with scheme {parts.scheme!r} that names no folder or bucket; {_CHOICES}"
    raise InvalidSettings(msg)
