"""Do a write once, however often it is sent.

The reply to a write with an `Idempotency-Key` is stored in the transaction of its effect, so there is no moment in
which one exists without the other. Only successful replies are stored: a refused request changed nothing and may be
sent again with the same key. Keys belong to the CRM account, not to a token, and do not expire.
"""

import hashlib
import json
import sqlite3
from collections.abc import Callable
from typing import Final

from examples.crm.errors import InvalidRequestError, KeyReusedError
from examples.crm.exchange import Call, Reply

MAX_KEY: Final = 255

Operation = Callable[[sqlite3.Connection, Call], Reply]
"""What an admitted call does; see `exchange.py`."""


def once(connection: sqlite3.Connection, call: Call, operation: Operation) -> Reply:
    """Run the operation, or return the stored reply to the same request; the caller holds a transaction.

    Raises:
        InvalidRequestError: the key is empty, too long, or not printable ASCII.
        KeyReusedError: the key came before with another request.
        CrmError: the operation refused.
    """
    key = call.idempotency_key
    if key is None:
        return operation(connection, call)
    if not (1 <= len(key) <= MAX_KEY and key.isascii() and key.isprintable()):
        raise InvalidRequestError(
            f"Idempotency-Key has {len(key)} characters; 1 to {MAX_KEY} of printable ASCII are wanted"
        )
    fingerprint = _fingerprint(call)
    stored = _stored(connection, key, fingerprint)
    if stored is not None:
        return stored
    reply = operation(connection, call)
    connection.execute(
        "INSERT INTO idempotency_keys (key, fingerprint, status, body, at) VALUES (?, ?, ?, ?, ?)",
        (key, fingerprint, reply.status, json.dumps([reply.body, reply.revision]), call.now),
    )
    return reply


def _stored(connection: sqlite3.Connection, key: str, fingerprint: str) -> Reply | None:
    sql = "SELECT fingerprint, status, body, at FROM idempotency_keys WHERE key = ?"
    row = connection.execute(sql, (key,)).fetchone()
    if row is None:
        return None
    if row[0] != fingerprint:
        raise KeyReusedError(
            f"the idempotency key {key!r} was used at {row[3]} for another request; use a new key for a new request"
        )
    body, revision = json.loads(row[2])
    return Reply(status=row[1], body=body, revision=revision, replayed=True)


def _fingerprint(call: Call) -> str:
    """Two requests are the same if method, path and the meaning of the body agree; member order does not count."""
    canonical = json.dumps([call.method, call.path, call.body], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
