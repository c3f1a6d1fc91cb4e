"""What the status of a response means for a call, as one of the nine error codes.

| other side | code | why |
|---|---|---|
| 401, 403 | AUTH_REQUIRED | the credentials are wrong or not enough |
| 408, 504 | TIMEOUT | the effect is unknown, as after our own time-out |
| 409 to a keyed call that was sent before | PROVIDER_ERROR | its first request is still being worked on |
| 429 | RATE_LIMIT | with the seconds to wait |
| other 4xx | VALIDATION_ERROR | it refused this request; the same one cannot work later |
| 5xx | PROVIDER_ERROR | its own fault; the same request may work later |
| 1xx, 3xx | PROVIDER_ERROR | no answer to what was asked |
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from http import HTTPStatus
from itertools import chain, islice
from typing import Final, cast

import orjson

from toolcrib.contracts import ErrorCode, Json, JsonObject, Reason, ToolDefinition
from toolcrib.core.executor import CallFailed, error
from toolcrib.core.providers.request_errors import retry_after
from toolcrib.infrastructure.net import HttpResponse
from toolcrib.kinds.http.runtime.response_bodies import BadBody, content_type, read_body, visible_headers

MAX_EXPLANATION: Final = 4_096
"""Bytes of the other side's own words."""

_MAX_PROBLEMS: Final = 5
_MESSAGES: Final = ("message", "detail", "error_description", "title", "msg", "problem", "error", "reason")
_LISTS: Final = ("details", "errors", "detail", "problems")
_PLACES: Final = ("path", "field", "pointer", "loc", "name")
_REMEDIES: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.AUTH_REQUIRED: "check the provider's credentials and what they may do",
    ErrorCode.VALIDATION_ERROR: "correct the arguments; the same call cannot work later",
    ErrorCode.RATE_LIMIT: "wait before calling again",
}

_MAY_WORK_LATER: Final = frozenset({ErrorCode.RATE_LIMIT, ErrorCode.PROVIDER_ERROR, ErrorCode.TIMEOUT})


def status_failure(tool: ToolDefinition, response: HttpResponse, now: datetime, *, again: bool = False) -> CallFailed:
    """The failure that a status outside of 2xx means.

    Args:
        tool: The tool.
        response: The response.
        now: The current moment.
        again: The call was sent before. Of one with a key, 409 says then that the first request is still being worked
            on (draft-ietf-httpapi-idempotency-key-header, section 2.7).
    """
    is_under_way = again and response.status == 409 and tool.idempotency_key is not None
    code, reason = (ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED) if is_under_way else _meaning(response.status)
    explanation = _explanation(response)
    status = f"tool {tool.name!r} got {response.status} {_phrase(response.status)}".rstrip()
    remedy = "its first request is still being worked on; wait" if is_under_way else _REMEDIES.get(code)
    message = "; ".join(filter(None, [": ".join(filter(None, [status, _words(explanation)])), remedy]))
    failure = error(code, reason, message, explanation=explanation)
    wait = retry_after(response.headers, now) if code in _MAY_WORK_LATER else None
    return CallFailed(
        failure.model_copy(update={"retry_after_s": wait}),
        http_status=response.status,
        metadata={"headers": visible_headers(response)},
    )


def bad_response(tool: ToolDefinition, response: HttpResponse, problem: str, *, explained: bool = False) -> CallFailed:
    """An answer of 2xx that cannot be used.

    Args:
        tool: The tool.
        response: The response.
        problem: Why not.
        explained: Whether the answer itself may say what went wrong, as some do with a status of success.
    """
    explanation = {"explanation": _explanation(response)} if explained else {}
    words = _words(explanation.get("explanation"))
    message = ": ".join(filter(None, [f"tool {tool.name!r}: {problem}", words]))
    failure = error(ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, message, **explanation)
    return CallFailed(
        failure,
        http_status=response.status,
        metadata={"headers": visible_headers(response)},
        effect="done",
    )


def _meaning(status: int) -> tuple[ErrorCode, Reason]:
    if status in {401, 403}:
        return ErrorCode.AUTH_REQUIRED, Reason.REQUEST_REFUSED
    if status in {408, 504}:
        return ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT
    if status == 429:
        return ErrorCode.RATE_LIMIT, Reason.RATE_LIMITED
    if 400 <= status < 500:
        return ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED
    return ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED if status >= 500 else Reason.BAD_RESPONSE


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _explanation(response: HttpResponse) -> Json:
    """The body if it is readable and small; beyond the limit, the beginning of its text."""
    try:
        body = read_body(response)
    except BadBody:
        body = response.body.decode(errors="replace")
    if isinstance(body, bytes):
        return f"({len(body)} bytes of {content_type(response)})"
    if isinstance(body, str):
        return body[:MAX_EXPLANATION]
    written = orjson.dumps(body)
    return body if len(written) <= MAX_EXPLANATION else written[:MAX_EXPLANATION].decode(errors="ignore")


def _words(explanation: Json) -> str:
    """The message and the first problems in an error document, wherever APIs customarily put them."""
    if isinstance(explanation, str):
        return " ".join(explanation.split())[:500]
    if not isinstance(explanation, dict):
        return ""
    document = cast("JsonObject", explanation)
    nested = document.get("error")
    source = cast("JsonObject", nested) if isinstance(nested, dict) else document
    message = next((source[name] for name in _MESSAGES if isinstance(source.get(name), str)), "")
    return "; ".join(filter(None, [message, *_problems(source)]))[:MAX_EXPLANATION]


def _problems(source: JsonObject) -> Iterator[str]:
    lists = [cast("list[Json]", source[name]) for name in _LISTS if isinstance(source.get(name), list)]
    for entry in islice(chain.from_iterable(lists), _MAX_PROBLEMS):
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, dict):
            problem = cast("JsonObject", entry)
            place = next((str(problem[name]) for name in _PLACES if problem.get(name)), "")
            words = next((problem[name] for name in _MESSAGES if isinstance(problem.get(name), str)), "")
            yield ": ".join(filter(None, [place, words]))
