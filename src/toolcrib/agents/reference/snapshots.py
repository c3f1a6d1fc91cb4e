"""Snapshots of reference lists: the results of readings, the one in use, and the last failure.

A snapshot is a blob, named by the hash of its content. The state of a source is in the result cache, under one key per
realm. This module decides whether a reading can be trusted, not how a list is read or used.
"""

from datetime import UTC, datetime

import orjson
from msgspec import Struct

from toolcrib.contracts import (
    JsonObject,
    Principal,
    ReferenceReading,
    ReferenceSource,
    ToolcribError,
    content_hash,
    format_timestamp,
)
from toolcrib.core.executor import Clock
from toolcrib.core.providers import ReferenceItem, ReferenceList
from toolcrib.infrastructure.store import Store

_FEW = 5
"""Values of a list that may lose any of them, but not all."""
_NOTHING: JsonObject = {"id": None, "readings": [], "failure": None}


class ReferenceUnavailable(ToolcribError):
    """A reference list could not be read, so nothing that depends on it may be written."""

    code = "reference_unavailable"


class Snapshot(Struct, frozen=True):
    """The reading of a source that counts."""

    id: str
    """Content hash of the values, and the digest of the blob that has them."""
    fetched_at: datetime
    size: int


class Failure(Struct, frozen=True):
    """Why the last reading brought nothing that counts."""

    at: datetime
    error: str


class Snapshots:
    """Keeps the snapshots of a crib.

    Args:
        store: Its cache has what is known of each source, its blobs have the values.
        clock: Time.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._cache = store.cache
        self._blobs = store.blobs
        self._clock = clock
        self._last_spans: dict[str, int] = {}
        """The last span of a schedule in which this process has asked for a turn, by source."""

    async def newest(self, realm: str, source: ReferenceSource) -> Snapshot | None:
        """The snapshot in use, however old."""
        known = await self._load_state(realm, source)
        return None if known["id"] is None else Snapshot(known["id"], _moment(known["fetched_at"]), known["size"])

    async def failure(self, realm: str, source: ReferenceSource) -> Failure | None:
        """Why the last reading failed; null if it did not."""
        failure = (await self._load_state(realm, source))["failure"]
        return None if failure is None else Failure(_moment(failure["at"]), failure["error"])

    async def readings(self, realm: str, source: ReferenceSource) -> list[ReferenceReading]:
        """The last readings, newest first; one that brought what the one before it had is the same reading."""
        return [ReferenceReading.model_validate(one) for one in (await self._load_state(realm, source))["readings"]]

    async def keep(
        self, principal: Principal, source: ReferenceSource, found: ReferenceList, *, accept: bool
    ) -> Snapshot:
        """Keep what a reading brought, and use it from now on.

        Args:
            principal: Who read it.
            source: What was read.
            found: The list.
            accept: Believe a list that has lost most of its values.

        Raises:
            ReferenceUnavailable: It cannot be believed: it is kept as a reading, and the snapshot before stays in use.
        """
        items = [[item.value, item.label, item.extra] for item in found.items]
        digest = await self._blobs.put(orjson.dumps(items), realm=principal.realm, made_by=principal.id)
        known = await self._load_state(principal.realm, source)
        doubt = None if accept else _doubt(source, known, len(items))
        reading = {"id": digest, "size": len(items), "fetched_at": format_timestamp(found.fetched_at), "refused": doubt}
        state: JsonObject = {
            **known,
            "readings": _add_reading(known["readings"], reading, source.keep),
            "failure": None,
        }
        if doubt is not None:
            await self._save(principal, source, {**state, "failure": self._failure(doubt)})
            raise ReferenceUnavailable(doubt)
        used = {name: reading[name] for name in ("id", "size", "fetched_at")}
        await self._save(principal, source, {**state, **used})
        return Snapshot(digest, found.fetched_at, len(items))

    async def fail(self, principal: Principal, source: ReferenceSource, error: str) -> None:
        """Write down that a reading failed; what is in use stays in use."""
        known = await self._load_state(principal.realm, source)
        await self._save(principal, source, {**known, "failure": self._failure(error)})

    async def items(self, realm: str, snapshot_id: str) -> tuple[ReferenceItem, ...]:
        """The values of a snapshot, also of one that is in use no more.

        Raises:
            NotFound: The realm has no such snapshot.
        """
        stored = orjson.loads(await self._blobs.get(realm, snapshot_id))
        return tuple(ReferenceItem(value, label, extra) for value, label, extra in stored)

    async def take_turn(self, principal: Principal, source: ReferenceSource, every_s: float) -> bool:
        """Whether this process is the one that reads a source in the present span of its schedule.

        The spans are the same for everybody, and the first process that asks in one of them has it. One that dies in
        its turn leaves the list as it is until the next.
        """
        now = self._clock.now()
        span = int(now.timestamp() // every_s)
        turns = f"{source_key(principal.realm, source)}:turn:{every_s:g}"
        if self._last_spans.get(turns) == span:
            return False
        self._last_spans[turns] = span
        ends = datetime.fromtimestamp((span + 1) * every_s, UTC)
        return await self._cache.add(
            f"{turns}:{span}", {}, realm=principal.realm, made_by=principal.id, now=now, expires_at=ends
        )

    async def _load_state(self, realm: str, source: ReferenceSource) -> JsonObject:
        stored = await self._cache.get(source_key(realm, source), now=self._clock.now())
        return {**_NOTHING, **(stored or {})}

    async def _save(self, principal: Principal, source: ReferenceSource, state: JsonObject) -> None:
        key = source_key(principal.realm, source)
        await self._cache.put(key, state, realm=principal.realm, made_by=principal.id, expires_at=None)

    def _failure(self, error: str) -> JsonObject:
        return {"at": format_timestamp(self._clock.now()), "error": error}


def source_key(realm: str, source: ReferenceSource) -> str:
    """Names a source in its realm by what it lists; what the list is used for and when it is read is no part of it."""
    listed = source.model_dump(mode="json", include={"name", "tool", "input", "values", "items", "value", "label"})
    return f"reference:{content_hash({'realm': realm, 'source': listed})}"


def _doubt(source: ReferenceSource, known: JsonObject, size: int) -> str | None:
    """Why a list cannot be believed: a system that refuses its caller often answers with few values, or with none."""
    before = known["size"] if known["id"] is not None else 0
    lost = before - size
    if lost <= 0 or (size and (before < _FEW or lost <= before * source.max_loss)):
        return None
    return (
        f"reference data {source.name!r} was read with {size} values, and the snapshot in use has {before}; that one "
        "stays in use until the list is read again with more, or accepted: `toolcrib reference sync --accept`"
    )


def _add_reading(readings: list[JsonObject], reading: JsonObject, most: int) -> list[JsonObject]:
    """The readings with one more, which is the newest one again if it brought the same."""
    newest = readings[0] if readings else None
    again = newest is not None and (newest["id"], newest["refused"]) == (reading["id"], reading["refused"])
    first = newest["first_at"] if newest is not None and again else reading["fetched_at"]
    return [{**reading, "first_at": first}, *readings[1 if again else 0 :]][:most]


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
