"""Operations over HTTP: what is sent, and whether what came back is an answer of a GraphQL server.

As GraphQL over HTTP has it: a POST of JSON, answered as `application/graphql-response+json` with any status or as
`application/json`. An answer of JSON with `data` or a list of `errors` counts as one of GraphQL under both types, and
with a status of failure if it has errors, because servers disagree about both.
"""

import re
from collections.abc import Mapping
from math import isfinite
from typing import Any, Final, NamedTuple, cast
from urllib.parse import quote

import orjson

from toolcrib.contracts import Json, JsonObject, ProviderDefinition
from toolcrib.core.providers import Credentials
from toolcrib.infrastructure.net import HttpResponse, HttpSession, Timeouts

MAX_ERRORS: Final = 20
"""Errors of one answer that are told."""
MAX_WORDS: Final = 500
"""Characters of the message of an error."""
MAX_PATH: Final = 20
"""Parts of the path of an error, of 100 characters each."""

_CONNECT_S: Final = 30.0
_TYPE: Final = "application/graphql-response+json"
_ACCEPT: Final = f"{_TYPE}, application/json;q=0.9"
_FORBIDDEN: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_NO_HEADERS: Final[Mapping[str, str]] = {}


class UnsendableOperation(ValueError):
    """The variables or a header cannot be written."""


class GraphqlError(NamedTuple):
    """An error of an answer, without what only its authors need: stack traces, places in the document."""

    message: str
    path: tuple[str | int, ...] | None
    """Where in `data` it happened; null if the server does not say."""
    code: str | None
    """What kind of error it is, in capitals: `BAD_USER_INPUT`."""
    retry_after_s: float | None = None
    """Seconds to wait, where the error says so."""

    @property
    def place(self) -> str:
        """The path as text: `deals.0.owner`."""
        return ".".join(map(str, self.path or ()))

    def as_json(self) -> JsonObject:
        """As an envelope shows it."""
        found: JsonObject = {"message": self.message}
        if self.path is not None:
            found["path"] = list(self.path)
        return found | ({} if self.code is None else {"code": self.code})

    def __str__(self) -> str:
        return self.message + (f" (at {self.place})" if self.path else "")


class Answer(NamedTuple):
    """What a GraphQL server answers."""

    data: JsonObject | None
    """Null if there is none, or nothing came of it."""
    has_data: bool
    """Whether it has `data`, be it null: then the operation was executed."""
    errors: tuple[GraphqlError, ...]
    """The first of them."""
    error_count: int


def write_operation(document: str, operation_name: str, variables: JsonObject) -> bytes:
    """The body of a request.

    Raises:
        UnsendableOperation: A variable is no JSON.
    """
    try:
        return orjson.dumps({"query": document, "operationName": operation_name, "variables": variables})
    except (orjson.JSONEncodeError, UnicodeEncodeError):
        raise UnsendableOperation("a variable holds a lone surrogate, or a number that JSON cannot hold") from None


async def post(
    session: HttpSession,
    provider: ProviderDefinition,
    credentials: Credentials,
    body: bytes,
    *,
    within_s: float,
    headers: Mapping[str, str] = _NO_HEADERS,
) -> HttpResponse:
    """Send an operation to a provider. Redirects are not followed: an operation would arrive as something else.

    Args:
        session: The way out.
        provider: Its address is where operations go.
        credentials: Of the provider; a header never replaces them.
        body: As `write_operation` makes it.
        within_s: Seconds for all of it.
        headers: Further ones, names in lower case.

    Raises:
        UnsendableOperation: A header would break.
        EgressDenied: The policy forbids the address.
        NetworkError: The server was not reached, did not answer in time, or answers too much.
        InvalidInput: The certificate of the credentials cannot be used.
    """
    sent = {name.lower(): value for name, value in provider.headers.items()}
    sent |= {"accept": _ACCEPT, "content-type": "application/json", **headers, **credentials.headers}
    if credentials.cookies:
        sent["cookie"] = "; ".join(f"{name}={value}" for name, value in credentials.cookies.items())
    broken = next((name for name, value in sent.items() if _FORBIDDEN.search(value)), None)
    if broken is not None:
        raise UnsendableOperation(f"header {broken!r} would hold a line break or another control character")
    return await session.request(
        "POST",
        _with_query(provider.address, credentials),
        headers=sent,
        body=body,
        timeout=Timeouts(connect_s=min(within_s, _CONNECT_S), read_idle_s=within_s, total_s=within_s),
        follow_redirects=False,
        tls=credentials.tls,
    )


def read_answer(response: HttpResponse) -> Answer | None:
    """What a GraphQL server says; null if it is none that answers."""
    try:
        found: Json = orjson.loads(response.body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(found, dict):
        return None
    answer = cast("JsonObject", found)
    data, errors = answer.get("data"), answer.get("errors")
    if data is not None and not isinstance(data, dict):
        return None
    listed = cast("list[Json]", errors) if isinstance(errors, list) else []
    given = [cast("JsonObject", each) for each in listed if isinstance(each, dict)]
    is_success = 200 <= response.status < 300 or response.headers.get("content-type", "").startswith(_TYPE)
    if not given and (data is None or not is_success):
        return None
    told = tuple(_error(each) for each in given[:MAX_ERRORS])
    return Answer(cast("JsonObject | None", data), "data" in answer, told, len(given))


def _with_query(address: str, credentials: Credentials) -> str:
    """The address with the credentials that stand in its query."""
    if not credentials.query:
        return address
    head, _, query = address.partition("#")[0].partition("?")
    pairs = [f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in credentials.query.items()]
    return f"{head}?{'&'.join([*filter(None, [query]), *pairs])}"


def _error(given: JsonObject) -> GraphqlError:
    message, path = given.get("message"), given.get("path")
    words = " ".join(message.split())[:MAX_WORDS] if isinstance(message, str) else ""
    extensions: Any = given.get("extensions")
    told = cast("JsonObject", extensions) if isinstance(extensions, dict) else {}
    kinds = (told.get("code"), told.get("classification"), told.get("type"), given.get("type"), given.get("code"))
    code = next((_capitals(kind) for kind in kinds if isinstance(kind, str) and kind), None)
    waits = (told.get("retryAfter"), told.get("retry_after"))
    wait = next((float(said) for said in waits if isinstance(said, int | float) and isfinite(said)), None)
    parts = cast("list[Json]", path)[:MAX_PATH] if isinstance(path, list) else None
    kept = None if parts is None else tuple(part if isinstance(part, int) else str(part)[:100] for part in parts)
    return GraphqlError(words or "an error without a message", kept, code, None if wait is None else max(0.0, wait))


def _capitals(kind: str) -> str:
    """`validation-failed` and `ValidationFailed` as `VALIDATION_FAILED`."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind[:80])
    return re.sub(r"[^A-Za-z0-9]+", "_", parted).strip("_").upper()
