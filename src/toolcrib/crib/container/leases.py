"""Leases in the store, by which one process at a time does a piece of work that several could do."""

import contextlib
import secrets
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Final

from toolcrib.contracts import JsonObject
from toolcrib.core.executor import Clock
from toolcrib.infrastructure.store import ResultCache

_LOOK_S: Final = 0.05


@contextlib.asynccontextmanager
async def hold_lease(
    cache: ResultCache, clock: Clock, key: str, *, realm: str, made_by: str, lease_s: float, wait_s: float = 0.0
) -> AsyncGenerator[bool]:
    """Be the one process that does some work; yields whether this one is.

    Args:
        cache: Of the store that the processes share.
        clock: Time.
        key: Names the work.
        realm: Whose work it is.
        made_by: Who does it.
        lease_s: Seconds after which another process takes it over from one that died.
        wait_s: Seconds to wait for another process to end it.
    """
    mark: JsonObject = {"of": secrets.token_hex(8)}
    until = clock.monotonic() + wait_s
    while not await _take(cache, clock, key, mark, realm=realm, made_by=made_by, lease_s=lease_s):
        if clock.monotonic() >= until:
            yield False
            return
        await clock.sleep(_LOOK_S)
    try:
        yield True
    finally:
        await cache.put(key, mark, realm=realm, made_by=made_by, expires_at=clock.now())


async def _take(
    cache: ResultCache, clock: Clock, key: str, mark: JsonObject, *, realm: str, made_by: str, lease_s: float
) -> bool:
    now = clock.now()
    return await cache.add(
        key, mark, realm=realm, made_by=made_by, now=now, expires_at=now + timedelta(seconds=lease_s)
    )
