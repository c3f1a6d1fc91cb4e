"""Blobs in memory, with when each was last put."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from toolcrib.contracts import NotFound, digest


class MemoryBlobs:
    """Blobs by realm and digest, in a dictionary.

    Args:
        now: Tells the time.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._data: dict[tuple[str, str], bytes] = {}
        self._put_at: dict[tuple[str, str], datetime] = {}

    async def put(self, data: bytes, *, realm: str, made_by: str, content_type: str = "application/json") -> str:
        del made_by, content_type
        name = digest(data)
        self._data[realm, name] = data
        self._put_at[realm, name] = self._now()
        return name

    async def get(self, realm: str, digest: str) -> bytes:
        try:
            return self._data[realm, digest]
        except KeyError:
            msg = f"realm {realm!r} has no blob {digest}"
            raise NotFound(msg) from None

    async def remove(self, realm: str, digests: Sequence[str], *, untouched_since: datetime) -> Sequence[str]:
        old = {name for owner, name, _ in self.put_before(untouched_since) if owner == realm}
        gone = [digest for digest in digests if digest in old]
        for name in gone:
            del self._data[realm, name], self._put_at[realm, name]
        return gone

    def put_before(self, moment: datetime) -> Iterator[tuple[str, str, int]]:
        """Realm, digest and size of each that was last put before a moment."""
        for (realm, name), at in sorted(self._put_at.items()):
            if at < moment:
                yield realm, name, len(self._data[realm, name])
