"""What an error of a database means, as one of the nine error codes.

| the database says | code | why |
|---|---|---|
| a constraint is violated, a value does not fit | VALIDATION_ERROR | the same call cannot work later |
| wrong credentials, or they may not do this | AUTH_REQUIRED | |
| no connection, or it broke | NETWORK_ERROR | the effect is unknown |
| a deadlock, a lock, a conflict of transactions | PROVIDER_ERROR | rolled back; the same call may work later |
| stopped for its time | TIMEOUT | rolled back |
| no such table or column | PROVIDER_ERROR | the database has changed since its tools were made |
| anything else | PROVIDER_ERROR | its own fault |

PostgreSQL errors are recognized by SQLSTATE (PostgreSQL 18, appendix A), SQLite errors by the name of the result code,
others by the driver's exception class (PEP 249). No message contains a statement, a parameter or a URL.
"""

import re
import sqlite3
from typing import Any, Final, NamedTuple

from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    NoSuchTableError,
    OperationalError,
    SQLAlchemyError,
    StatementError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout

from toolcrib.contracts import ErrorCode, Reason

_CHANGED: Final = "the database has changed since the tool was made; import it again"
_BUSY: Final = "another transaction was in the way, and this one was rolled back; call again"
_REFUSED: Final = (ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED)
_FAULT: Final = (ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED)
_LATE: Final = (ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT)
_AWAY: Final = (ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED)
_OTHER: Final = (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE)
_SHUT: Final = (ErrorCode.AUTH_REQUIRED, Reason.REQUEST_REFUSED)

_UNIQUE: Final = "a row with the same {name} exists; read that one, or give another value"
_REFERENCE: Final = "the reference {name} leads to no row, or this row is still referred to; correct it"
_MISSING: Final = "{name} must have a value; give one"
_CHECK: Final = "the constraint {name} does not allow these values; correct them"
_TOO_LARGE: Final = "a value is too long, too large or not of its column's type; correct it"

# The longest beginning of a SQLSTATE decides.
_STATES: Final[dict[str, tuple[tuple[ErrorCode, Reason], str]]] = {
    "08": (_AWAY, "the connection broke; the effect of a write is unknown"),
    "22": (_REFUSED, _TOO_LARGE),
    "23": (_REFUSED, _CHECK),
    "23502": (_REFUSED, _MISSING),
    "23503": (_REFUSED, _REFERENCE),
    "23505": (_REFUSED, _UNIQUE),
    "28": (_SHUT, "the credentials are wrong; correct the URL that the provider refers to"),
    "40": (_FAULT, _BUSY),
    "42": (_OTHER, _CHANGED),
    "42501": (_SHUT, "the database's user may not do this; grant it, or use another user"),
    "53": (_FAULT, "the server is out of resources or connections; call again later"),
    "55P03": (_FAULT, _BUSY),
    "57014": (_LATE, "it did not end in time and was rolled back; narrow the call, or give it more time"),
    "57P": (_AWAY, "the server was stopped or is starting; the effect of a write is unknown"),
}
# By the beginning of the name of SQLite's extended result code (sqlite.org/rescode.html).
_RESULTS: Final[dict[str, tuple[tuple[ErrorCode, Reason], str]]] = {
    "SQLITE_AUTH": (_SHUT, "the database does not allow this"),
    "SQLITE_BUSY": (_FAULT, _BUSY),
    "SQLITE_CONSTRAINT": (_REFUSED, _CHECK),
    "SQLITE_CONSTRAINT_DATATYPE": (_REFUSED, _TOO_LARGE),
    "SQLITE_CONSTRAINT_FOREIGNKEY": (_REFUSED, _REFERENCE),
    "SQLITE_CONSTRAINT_NOTNULL": (_REFUSED, _MISSING),
    "SQLITE_CONSTRAINT_PRIMARYKEY": (_REFUSED, _UNIQUE),
    "SQLITE_CONSTRAINT_UNIQUE": (_REFUSED, _UNIQUE),
    "SQLITE_ERROR": (_OTHER, _CHANGED),
    "SQLITE_INTERRUPT": (_LATE, "it did not end in time and was rolled back; narrow the call, or give it more time"),
    "SQLITE_LOCKED": (_FAULT, _BUSY),
    "SQLITE_MISMATCH": (_REFUSED, _TOO_LARGE),
    "SQLITE_SCHEMA": (_OTHER, _CHANGED),
    "SQLITE_TOOBIG": (_REFUSED, _TOO_LARGE),
}
_AUTHENTICATION: Final = re.compile(
    r"authentication|password|no pg_hba\.conf entry|role .* does not exist", re.IGNORECASE
)
_SQLITE_NAMES: Final = re.compile(r"constraint failed: ([\w., ]+)")


class Diagnosis(NamedTuple):
    """What a failure means."""

    code: ErrorCode
    reason: Reason
    words: str
    """What is wrong and what to do."""
    constraint: str | None = None
    """The constraint or the columns, as the database names them."""


def diagnose(problem: SQLAlchemyError) -> Diagnosis:
    """What an exception of SQLAlchemy means; it is the caller's to say which tool it came from."""
    match problem:
        case PoolTimeout():
            return Diagnosis(*_FAULT, "all connections to the database are in use; call again later")
        case NoSuchTableError():
            return Diagnosis(*_OTHER, _CHANGED)
        case DBAPIError() if isinstance(problem.orig, sqlite3.Error):
            return _of_sqlite(problem.orig)
        case DBAPIError():
            return _of_state(problem)
        case StatementError():
            return Diagnosis(*_REFUSED, _TOO_LARGE)
        case _:
            return Diagnosis(*_OTHER, _CHANGED)


def _of_sqlite(problem: sqlite3.Error) -> Diagnosis:
    name = getattr(problem, "sqlite_errorname", "")
    found = _RESULTS.get(name) or _RESULTS.get("_".join(name.split("_")[:2]))
    if found is None:
        return Diagnosis(*_FAULT, f"SQLite failed with {name or type(problem).__name__}; check its file")
    kind, words = found
    match = _SQLITE_NAMES.search(str(problem))
    constraint = match[1] if match else None
    named = ", ".join(part.rpartition(".")[2] for part in constraint.split(", ")) if constraint else "values"
    return Diagnosis(*kind, words.format(name=named), constraint)


def _of_state(problem: DBAPIError) -> Diagnosis:
    cause: Any = problem.orig
    state = getattr(cause, "sqlstate", None) or ""
    details: Any = getattr(cause, "diag", None)
    constraint: str | None = getattr(details, "constraint_name", None) or getattr(details, "column_name", None)
    known = next((_STATES[state[:size]] for size in (5, 3, 2) if state[:size] in _STATES), None)
    if known is not None:
        kind, words = known
        return Diagnosis(*kind, words.format(name=constraint or "value"), constraint)
    match problem:
        case IntegrityError():
            return Diagnosis(*_REFUSED, _CHECK.format(name="of the table"))
        case DataError():
            return Diagnosis(*_OTHER, "the database holds a value that cannot be read here; leave its column out")
        case OperationalError() | InterfaceError() if not state:
            return _of_words(str(cause))
        case _:
            return Diagnosis(*_FAULT, f"the database failed{f' with SQLSTATE {state}' if state else ''}; see its log")


def _of_words(text: str) -> Diagnosis:
    """A driver without a connection gives the reason as text only."""
    if _AUTHENTICATION.search(text):
        return Diagnosis(*_SHUT, _STATES["28"][1])
    return Diagnosis(*_AWAY, "the database cannot be reached; check that its server runs and that the address is right")
