"""Sends operations over HTTP, reads GraphQL responses, and maps their errors to the nine error codes.

Requests follow GraphQL over HTTP: a POST of JSON. A response is `application/graphql-response+json` with any status,
or `application/json`. Because servers differ, JSON with `data` or a list of `errors` is accepted under both types, and
with an error status if it has errors.

| code of the error | code | why |
|---|---|---|
| UNAUTHENTICATED, FORBIDDEN and their like | AUTH_REQUIRED | the credentials are wrong or not enough |
| BAD_USER_INPUT, NOT_FOUND and their like | VALIDATION_ERROR | it refused these arguments |
| GRAPHQL_VALIDATION_FAILED, GRAPHQL_PARSE_FAILED | VALIDATION_ERROR | its schema has changed: import it again |
| PERSISTED_QUERY_NOT_FOUND and their like | VALIDATION_ERROR | it takes only operations that it knows |
| RATE_LIMITED, THROTTLED | RATE_LIMIT | with the seconds to wait, where the server says so |
| TIMEOUT and its like | TIMEOUT | the effect is unknown |
| INTERNAL_SERVER_ERROR and its like | PROVIDER_ERROR | its own fault |
| none that is known | what the HTTP status means, else PROVIDER_ERROR | |

An error without `data` occurred before anything was executed. If a mutation was executed and only its result failed,
it has taken effect, whatever the code: that is PROVIDER_ERROR with the effect `done`, and is never retried.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from math import isfinite
from typing import Any, Final, NamedTuple, TypeAlias, cast
from urllib.parse import quote

import orjson

from toolcrib.contracts import ErrorCode, Json, JsonObject, ProviderDefinition, Reason, ToolDefinition
from toolcrib.contracts.base.errors import Effect
from toolcrib.core.executor import CallFailed, error
from toolcrib.core.providers import Credentials
from toolcrib.core.providers.request_errors import retry_after
from toolcrib.infrastructure.net import HttpResponse, HttpSession, Timeouts
from toolcrib.kinds.graphql.shape import GraphqlImplementation
from toolcrib.kinds.http.runtime.failures import status_failure
from toolcrib.kinds.http.runtime.response_bodies import content_type, visible_headers

MAX_ERRORS: Final = 20
"""Maximum number of errors of one response that are reported."""
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


class GraphqlAnswer(NamedTuple):
    """What a GraphQL server answers."""

    data: JsonObject | None
    """Null if there is none, or if it failed."""
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


def read_answer(response: HttpResponse) -> GraphqlAnswer | None:
    """The response of a GraphQL server; null if it is not a GraphQL response."""
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
    first_errors = tuple(_error(each) for each in given[:MAX_ERRORS])
    return GraphqlAnswer(cast("JsonObject | None", data), "data" in answer, first_errors, len(given))


def _with_query(address: str, credentials: Credentials) -> str:
    """The address with the credentials that belong in its query."""
    if not credentials.query:
        return address
    head, _, query = address.partition("#")[0].partition("?")
    pairs = [f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in credentials.query.items()]
    return f"{head}?{'&'.join([*filter(None, [query]), *pairs])}"


def _error(given: JsonObject) -> GraphqlError:
    message, path = given.get("message"), given.get("path")
    words = " ".join(message.split())[:MAX_WORDS] if isinstance(message, str) else ""
    extensions: Any = given.get("extensions")
    details = cast("JsonObject", extensions) if isinstance(extensions, dict) else {}
    kinds = (
        details.get("code"),
        details.get("classification"),
        details.get("type"),
        given.get("type"),
        given.get("code"),
    )
    code = next((_capitals(kind) for kind in kinds if isinstance(kind, str) and kind), None)
    waits = (details.get("retryAfter"), details.get("retry_after"))
    wait = next((float(seconds) for seconds in waits if isinstance(seconds, int | float) and isfinite(seconds)), None)
    parts = cast("list[Json]", path)[:MAX_PATH] if isinstance(path, list) else None
    kept = None if parts is None else tuple(part if isinstance(part, int) else str(part)[:100] for part in parts)
    return GraphqlError(words or "an error without a message", kept, code, None if wait is None else max(0.0, wait))


def _capitals(kind: str) -> str:
    """`validation-failed` and `ValidationFailed` as `VALIDATION_FAILED`."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind[:80])
    return re.sub(r"[^A-Za-z0-9]+", "_", parted).strip("_").upper()


_Meaning: TypeAlias = tuple[ErrorCode, Reason]

_REFUSED: Final[_Meaning] = (ErrorCode.AUTH_REQUIRED, Reason.REQUEST_REFUSED)
_INVALID: Final[_Meaning] = (ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED)
_MISSING: Final[_Meaning] = (ErrorCode.VALIDATION_ERROR, Reason.NOT_FOUND)
_LIMITED: Final[_Meaning] = (ErrorCode.RATE_LIMIT, Reason.RATE_LIMITED)
_LATE: Final[_Meaning] = (ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT)
_FAILED: Final[_Meaning] = (ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED)

_CODES: Final[Mapping[_Meaning, str]] = {
    _REFUSED: """
        UNAUTHENTICATED UNAUTHORIZED FORBIDDEN ACCESS_DENIED AUTHENTICATION_ERROR AUTHENTICATION_FAILED
        AUTHORIZATION_ERROR INVALID_JWT INVALID_TOKEN INSUFFICIENT_SCOPES PERMISSION_DENIED PERMISSION_ERROR
    """,
    _INVALID: """
        BAD_USER_INPUT BAD_REQUEST INVALID_INPUT INVALID_ARGUMENT INVALID_VALUE VALIDATION_ERROR
        CONSTRAINT_VIOLATION UNPROCESSABLE CONFLICT ALREADY_EXISTS MAX_COST_EXCEEDED
        GRAPHQL_VALIDATION_FAILED GRAPHQL_PARSE_FAILED VALIDATION_FAILED PARSE_FAILED INVALID_SYNTAX
        OPERATION_RESOLUTION_FAILURE UNDEFINED_FIELD
        PERSISTED_QUERY_NOT_FOUND PERSISTED_QUERY_NOT_SUPPORTED PERSISTED_QUERY_ID_REQUIRED
        PERSISTED_QUERY_REQUIRED QUERY_NOT_IN_SAFELIST OPERATION_NOT_ALLOWED
    """,
    _MISSING: "NOT_FOUND",
    _LIMITED: "RATE_LIMITED RATE_LIMIT RATE_LIMIT_EXCEEDED RATELIMITED THROTTLED TOO_MANY_REQUESTS",
    _LATE: "TIMEOUT GATEWAY_TIMEOUT REQUEST_TIMEOUT DEADLINE_EXCEEDED",
    _FAILED: """
        INTERNAL_SERVER_ERROR INTERNAL_ERROR INTERNAL SERVICE_UNAVAILABLE UNAVAILABLE DOWNSTREAM_SERVICE_ERROR
        UNEXPECTED UNKNOWN_ERROR DATA_FETCHING_EXCEPTION EXECUTION_ABORTED
    """,
}
_MEANINGS: Final[Mapping[str, _Meaning]] = {
    code: meaning for meaning, codes in _CODES.items() for code in codes.split()
}
_CHANGED: Final = frozenset(
    {
        "GRAPHQL_PARSE_FAILED",
        "GRAPHQL_VALIDATION_FAILED",
        "INVALID_SYNTAX",
        "OPERATION_RESOLUTION_FAILURE",
        "PARSE_FAILED",
        "UNDEFINED_FIELD",
        "VALIDATION_FAILED",
    }
)
"""The operation does not fit the server's schema."""
_REMEDIES: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.AUTH_REQUIRED: "check the provider's credentials and what they may do",
    ErrorCode.VALIDATION_ERROR: "correct the arguments; the same call cannot work later",
    ErrorCode.RATE_LIMIT: "wait before calling again",
}
_MAY_WORK_LATER: Final = frozenset({ErrorCode.RATE_LIMIT, ErrorCode.PROVIDER_ERROR, ErrorCode.TIMEOUT})
_TOLD: Final = 3
"""Errors that the message of a failure quotes."""
_SHOWN: Final = 200
"""Maximum number of characters of an invalid response in a message."""


def errors_failure(
    tool: ToolDefinition,
    implementation: GraphqlImplementation,
    response: HttpResponse,
    answer: GraphqlAnswer,
    now: datetime,
) -> CallFailed:
    """The failure of a call that returned errors and no output.

    Args:
        tool: The tool.
        implementation: Its operation.
        response: The response.
        answer: The same, read.
        now: The current moment.
    """
    effect = _effect(implementation, response, answer)
    first = next((found for found in answer.errors if found.code in _MEANINGS), None)
    code, reason = _FAILED if first is None else _MEANINGS[first.code or ""]
    remedy = _remedy(code, first)
    if first is None and not 200 <= response.status < 300:
        status = status_failure(tool, response, now).error
        code, reason = status.code, status.reason or reason
        remedy = _remedy(code, None)
    if effect == "done":
        code, reason, remedy = ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, "the mutation itself has taken effect"
    message = f"tool {tool.name!r} got errors: {_quote(answer)}" + (f"; {remedy}" if remedy else "")
    problems = [{"path": found.place, "problem": found.message} for found in answer.errors]
    failure = error(code, reason, message, problems=problems, errors=[found.as_json() for found in answer.errors])
    wait = _wait_s(answer.errors, response, now) if code in _MAY_WORK_LATER else None
    return CallFailed(
        failure.model_copy(update={"retry_after_s": wait}),
        http_status=response.status,
        metadata={"headers": visible_headers(response)},
        effect=effect,
    )


def no_answer(tool: ToolDefinition, implementation: GraphqlImplementation, response: HttpResponse) -> CallFailed:
    """The failure of a call with a 2xx status whose response is not GraphQL, or has no output."""
    shown = " ".join(response.body[:_SHOWN].decode(errors="replace").split())
    message = (
        f"tool {tool.name!r} got {response.status} with {len(response.body)} bytes of {content_type(response)}, which "
        f"are no answer to its operation: {shown!r}; check the provider's address, or import it again"
    )
    return CallFailed(
        error(ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, message),
        http_status=response.status,
        metadata={"headers": visible_headers(response)},
        effect="unknown" if implementation.operation == "mutation" else None,
    )


def errors_beside(answer: GraphqlAnswer) -> JsonObject:
    """The metadata of a success for the errors beside its data; empty if there are none."""
    if not answer.errors:
        return {}
    count = answer.error_count
    warning = f"the server reports {count} error{'s' * (count > 1)} beside the data: {_quote(answer)}"
    report: JsonObject = {"errors": [found.as_json() for found in answer.errors], "error_count": count}
    return {"graphql": report, "warnings": [warning]}


def _effect(implementation: GraphqlImplementation, response: HttpResponse, answer: GraphqlAnswer) -> Effect | None:
    """The effect of a mutation, if the response shows it; null to derive it from the error code."""
    if implementation.operation != "mutation":
        return None
    if not answer.has_data:  # nothing was executed, as the specification has it; a broken server is not believed
        return "none" if response.status < 500 else None
    if any(found.path is not None and len(found.path) > 1 for found in answer.errors):
        return "done"  # the field itself was executed, and something inside its answer failed
    return None


def _remedy(code: ErrorCode, first: GraphqlError | None) -> str | None:
    name = (first.code or "") if first is not None else ""
    if name in _CHANGED:
        return "the operation does not fit the server's schema; import the provider again"
    if "PERSISTED" in name or name in {"QUERY_NOT_IN_SAFELIST", "OPERATION_NOT_ALLOWED"}:
        return "the server takes only operations that it knows; have this one registered there"
    if name == "MAX_COST_EXCEEDED":
        return "ask for less, or import the provider again with a lower cost"
    return _REMEDIES.get(code)


def _wait_s(errors: Iterable[GraphqlError], response: HttpResponse, now: datetime) -> float | None:
    waits = [found.retry_after_s for found in errors if found.retry_after_s is not None]
    return max(waits) if waits else retry_after(response.headers, now)


def _quote(answer: GraphqlAnswer) -> str:
    more = answer.error_count - _TOLD
    return "; ".join(map(str, answer.errors[:_TOLD])) + (f"; and {more} more" if more > 0 else "")


def is_refusal(answer: GraphqlAnswer) -> bool:
    """Whether the credentials were refused."""
    return any(_MEANINGS.get(found.code or "") == _REFUSED for found in answer.errors)
