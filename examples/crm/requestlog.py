"""The CRM's own record of what was sent to it, by which tests judge a client.

A row is written when the request has arrived and completed when it was answered; a row without a status is a request
that the server did not live to answer.
"""

import hashlib
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

_ARRIVED = """
    INSERT INTO request_log (method, path, operation, idempotency_key, body_sha256) VALUES (?, ?, ?, ?, ?)
"""
_ANSWERED = "UPDATE request_log SET status = ?, replayed = ? WHERE seq = ?"


@dataclass(slots=True, kw_only=True)
class Outcome:
    """How a request ended; filled in by whoever answers it."""

    status: int | None = None
    replayed: bool = False


@contextmanager
def logged(
    connection: sqlite3.Connection,
    *,
    method: str,
    path: str,
    operation: str | None,
    idempotency_key: str | None,
    body: bytes | None,
) -> Generator[Outcome]:
    """Log one request around its handling; `body` is None if it was too large to be read."""
    digest = None if body is None else hashlib.sha256(body).hexdigest()
    seq = connection.execute(_ARRIVED, (method, path, operation, _storable(idempotency_key), digest)).lastrowid
    outcome = Outcome()
    yield outcome
    connection.execute(_ANSWERED, (outcome.status, int(outcome.replayed), seq))


def _storable(header: str | None) -> str | None:
    """A header as text that SQLite takes, even if it was sent in broken UTF-8."""
    return None if header is None else header.encode(errors="backslashreplace").decode()
