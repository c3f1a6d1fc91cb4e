"""The header `Idempotency-Key` of a POST: what was answered once is answered again, and no run is started twice.

A record in the store has, per principal and key, what was asked, the run that was begun for it, and the answer. The id
of the run is in the record before the run is: a request that is sent again after a crash finds its run, and waits for
it. Decision: docs/decisions/0052.
"""

import base64
import hashlib
import json
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from fastapi import Request, Response

from toolcrib.contracts import (
    IdempotencyConflict,
    IdempotencyMismatch,
    InvalidInput,
    JsonObject,
    NotFound,
    Principal,
    Unavailable,
)
from toolcrib.crib import Crib

HEADER: Final = "idempotency-key"
REPLAYED: Final = "Idempotency-Replayed"
"""The header of an answer that was given before."""
KEPT_S: Final = 24 * 3600
"""Seconds for which an answer is given again."""
HELD_S: Final = 60
"""Seconds for which a request without a run keeps others with its key from being carried out."""
_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")
_KEPT_HEADERS: Final = ("content-type", "etag", "location")
_NO_STORE: Final = "no-store"


@dataclass(slots=True)
class KeyedRequest:
    """A request with a key: `StartRecord` of the crib, and the record of its answer.

    Args:
        crib: Has the store and the clock.
        principal: Who sends the request.
        key: Of the header.
        fingerprint: Of what is asked.
    """

    crib: Crib
    principal: Principal
    key: str
    fingerprint: str
    run_id: str | None = None
    """The run that an earlier request with this key has begun, or that this one has."""

    async def earlier(self) -> str | None:
        """The run that a request with this key has begun already; null if there is none."""
        if self.run_id is None:
            return None
        try:
            await self.crib.store.journal.run(self.run_id)
        except NotFound:  # the process died between the record and the run
            return None
        return self.run_id

    async def begin(self, run_id: str) -> None:
        """Record the run that is about to be created."""
        self.run_id = run_id
        await self._put({"run_id": run_id})

    async def known(self) -> Response | None:
        """The answer that was given before; null for the first request with this key.

        Raises:
            IdempotencyMismatch: The key was sent with another request.
            IdempotencyConflict: A request with this key is being carried out, and has no run to wait for.
        """
        cache, now = self.crib.store.cache, self.crib.clock.now()
        if not await cache.add(
            self._name("record"),
            {"fingerprint": self.fingerprint},
            now=now,
            realm=self.principal.realm,
            made_by=self.principal.id,
            expires_at=now + timedelta(seconds=KEPT_S),
        ):
            record = await cache.get(self._name("record"), now=now) or {}
            if record.get("fingerprint", self.fingerprint) != self.fingerprint:
                msg = f"the Idempotency-Key {self.key!r} was sent with another request; take a new key for this one"
                raise IdempotencyMismatch(msg)
            if "answer" in record:
                return _response_of(record["answer"])
            self.run_id = record.get("run_id")
            if await self.earlier() is not None:
                return None
        if not await cache.add(
            self._name("lock"),
            {},
            now=now,
            realm=self.principal.realm,
            made_by=self.principal.id,
            expires_at=now + timedelta(seconds=HELD_S),
        ):
            msg = f"a request with the Idempotency-Key {self.key!r} is being carried out; send it again in a second"
            raise IdempotencyConflict(msg)
        return None

    async def answered(self, response: Response) -> None:
        """Record an answer; a refusal and a stream are not kept, and the request may be sent again."""
        body = getattr(response, "body", None)
        is_private = "set-cookie" in response.headers or _NO_STORE in response.headers.get("cache-control", "")
        if response.status_code >= 400 or body is None or is_private:
            await self.forget()
            return
        kept = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
        answer = {"status": response.status_code, "headers": kept, "body": base64.b64encode(body).decode()}
        await self._put({"run_id": self.run_id, "answer": answer})

    async def forget(self) -> None:
        """Let the request be sent again: as another one too, if no run was begun for it."""
        now, cache = self.crib.clock.now(), self.crib.store.cache
        names = ("lock",) if self.run_id is not None else ("record", "lock")
        for name in names:
            await cache.put(self._name(name), {}, realm=self.principal.realm, made_by=self.principal.id, expires_at=now)

    async def _put(self, more: JsonObject) -> None:
        until = self.crib.clock.now() + timedelta(seconds=KEPT_S)
        value = {"fingerprint": self.fingerprint, **more}
        await self.crib.store.cache.put(
            self._name("record"), value, realm=self.principal.realm, made_by=self.principal.id, expires_at=until
        )

    def _name(self, what: str) -> str:
        named = "\0".join((self.principal.realm, self.principal.id, self.key))
        return f"idempotency/{what}/{hashlib.sha256(named.encode()).hexdigest()}"


async def carry_out(request: Request, handle: Callable[[Request], Awaitable[Response]]) -> Response:
    """Answer a request once per key.

    Args:
        request: A POST with the header.
        handle: Carries it out.

    Raises:
        InvalidInput: The key is none.
        IdempotencyMismatch: It was sent with another request.
        IdempotencyConflict: A request with this key is being carried out, and has no run to wait for.
    """
    key = request.headers[HEADER]
    if not _KEY.fullmatch(key):
        msg = f"the header Idempotency-Key is {key[:100]!r}; send 1 to 255 visible ASCII characters, such as a UUID"
        raise InvalidInput(msg)
    crib: Crib = request.app.state.crib
    await crib.acting_as(request.state.principal).authorize()
    keyed = KeyedRequest(crib, request.state.principal, key, await _fingerprint(request))
    found = await keyed.known()
    if found is not None:
        return found
    request.state.keyed = keyed
    try:
        response = await handle(request)
    except BaseException:
        with suppress(Unavailable):
            await keyed.forget()
        raise
    await keyed.answered(response)
    return response


async def _fingerprint(request: Request) -> str:
    """Of method, path, query and body; a body of JSON is the same in any order of its members."""
    body = await request.body()
    with suppress(ValueError):  # the route refuses a body that cannot be read as JSON
        body = json.dumps(await request.json(), sort_keys=True).encode()
    asked = f"{request.method} {request.url.path}?{request.url.query}\0".encode()
    return hashlib.sha256(asked + body).hexdigest()


def _response_of(answer: JsonObject) -> Response:
    headers = {**answer["headers"], REPLAYED: "true"}
    return Response(base64.b64decode(answer["body"]), answer["status"], headers=headers)
