"""What counterparts of each kind may do when they do not do what they were asked, by chance and repeatably."""

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import grpc
import orjson
import sqlalchemy.exc as sa

from toolcrib.contracts import MODEL_ERROR_KINDS, EgressDenied, ModelError, ModelErrorKind, NotFound, Unavailable
from toolcrib.infrastructure.net import NetworkError

_WORDS = (
    "",
    "no",
    "x" * 5_000,
    "\ud800",
    "\x00",
    "Ünïcode ✓",
    '{"error": {"message": "no"}}',
    "[" * 300,
    "NaN",
    "<p>no",
)
_TYPES = (
    "application/json",
    "text/html",
    "text/plain; charset=klingon",
    "application/problem+json",
    "image/png",
    "???",
)
_RAISED: tuple[type[BaseException], ...] = (
    ValueError,
    KeyError,
    TimeoutError,
    RecursionError,
    MemoryError,
    OSError,
    SystemExit,
    asyncio.CancelledError,
    AssertionError,
    StopAsyncIteration,
    EgressDenied,
    NetworkError,
    NotFound,
    Unavailable,
)


def words(chance: Random) -> str:
    """Some text."""
    return chance.choice(_WORDS)


def of_function(chance: Random) -> object:
    """An exception, or something that is no JSON."""
    if chance.random() < 0.3:
        return chance.choice([object(), {1, 2}, b"bytes", float("inf"), 2**70, {"a": {"b": object()}}, "\ud800"])
    return chance.choice(_RAISED)(words(chance))


def of_http(chance: Random) -> object:
    """Any status with any body of any type, or a cut connection."""
    if chance.random() < 0.1:
        return None
    body = words(chance).encode(errors="replace")
    return (
        chance.choice([*range(200, 600, 7), 204, 401, 403, 408, 409, 429, 500, 503, 504]),
        chance.choice(_TYPES),
        body,
    )


def of_mcp(chance: Random) -> object:
    """The same, or answers that are no result."""
    if chance.random() < 0.4:
        return of_http(chance)
    return chance.choice(
        [
            {"error": {"code": chance.choice([-32700, -32600, -32601, -32602, -32603, -32000, 1]), "message": "no"}},
            {"error": "no"},
            {"result": None},
            {"result": {}},
            {"result": {"content": "no"}},
            {"result": {"content": [{"type": "smell", "data": 1}]}},
            {"result": {"content": [{"type": "text", "text": "it failed"}], "isError": True}},
            {"result": {"content": [], "structuredContent": [1]}},
            {},
        ]
    )


def of_grpc(chance: Random) -> object:
    """Any status but success, with any words."""
    codes = [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK]
    return chance.choice(codes), words(chance).encode(errors="replace").decode()


_ODD_ANSWERS: Any = (
    {"data": None},
    {"data": {}},
    {"data": {"act": None}},
    {"data": {"act": "no"}},
    {"data": {"act": {"said": None}}, "errors": [{"message": "no", "path": ["act", "said"]}]},
    {"data": [1], "errors": []},
    {"data": 1, "errors": [{}]},
    {"errors": "no"},
    {"errors": [None, 1, "no", {"message": 3, "path": "act", "extensions": [1]}]},
    {"errors": [{"message": "no", "path": [None, {"a": 1}], "extensions": {"code": 7, "retryAfter": -1}}]},
    {"errors": [{"message": "no", "extensions": {"code": "THROTTLED", "retryAfter": 10**15}}]},
)


def of_graphql(chance: Random) -> object:
    """The same as of HTTP, or answers of GraphQL that are odd in themselves."""
    if chance.random() < 0.5:
        return of_http(chance)
    status = chance.choice([200, 200, 400, 401, 403, 429, 500])
    kind = chance.choice(["application/json", "application/graphql-response+json"])
    return status, kind, orjson.dumps(chance.choice(_ODD_ANSWERS))


_ODD_TASKS: Any = (
    {"result": None},
    {"result": {}},
    {"result": {"task": {}}},
    {"result": {"task": {"id": "t", "status": {"state": "TASK_STATE_UNKNOWN_TO_US"}}}},
    {"result": {"task": {"id": "t", "status": {"state": "TASK_STATE_FAILED"}}}},
    {"result": {"task": {"id": 7, "status": "done"}}},
    {"result": {"task": {"id": "t", "status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": [{"parts": [{}]}]}}},
    {"result": {"message": {"parts": "no"}}},
    {"result": {"message": {"parts": [{"data": [1, None]}, {"raw": "not base64"}]}}},
    {"result": [1]},
    {"error": {"code": -32602, "message": "no"}},
    {"error": {"code": -32001, "message": "no", "data": [{"reason": 7}]}},
    {"error": {"code": "no"}},
    {"error": "no"},
    {},
    [],
    7,
)


def of_a2a(chance: Random) -> object:
    """The same as of HTTP, or answers of A2A that are odd in themselves."""
    if chance.random() < 0.5:
        return of_http(chance)
    return (
        chance.choice([200, 200, 400, 401, 403, 429, 500]),
        "application/json",
        orjson.dumps(chance.choice(_ODD_TASKS)),
    )


def of_database(chance: Random) -> object:
    """Any of the library's exceptions."""
    kinds: list[Any] = [sa.OperationalError, sa.IntegrityError, sa.DataError, sa.ProgrammingError, sa.InternalError]
    if chance.random() < 0.3:
        return chance.choice([sa.TimeoutError, sa.ResourceClosedError, sa.NoSuchTableError])(words(chance))
    return chance.choice(kinds)("select", {}, Exception(words(chance)))


def of_model(chance: Random) -> object:
    """Any failure of a provider, or an answer that is none."""
    final: list[ModelErrorKind] = [kind for kind in MODEL_ERROR_KINDS if kind not in ("timeout", "connection")]
    return (
        "" if chance.random() < 0.2 else ModelError(chance.choice(final), words(chance), status=chance.choice([0, 400]))
    )


def of_client(chance: Random) -> object:
    """What a client posts: an error of any code, with or without a reason of ours, or no answer to the schema."""
    codes = ["TIMEOUT", "UNKNOWN", "SANDBOX_ERROR", "POLICY_DENIED", "AUTH_REQUIRED", "VALIDATION_ERROR"]
    details = chance.choice([None, {}, {"reason": "tired"}, {"reason": "tool_failed"}, {"reason": [1]}])
    error = {
        "code": chance.choice(codes),
        "message": words(chance).encode(errors="replace").decode(),
        "details": details,
    }
    return orjson.loads(orjson.dumps({"error": error}))


MISCHIEF: Mapping[str, Callable[[Random], object]] = {
    "python": of_function,
    "http": of_http,
    "mcp": of_mcp,
    "graphql": of_graphql,
    "a2a": of_a2a,
    "grpc": of_grpc,
    "entity": of_database,
    "code": of_function,
    "composite": of_function,
    "agentic": of_model,
    "agent": of_model,
    "client": of_client,
}
