"""Errors in OpenAI's shape: `{"error": {"message", "type", "param", "code"}}`.

The status is that of the error, except that requests that are not valid are 400, as OpenAI's clients expect. The
header `x-should-retry: false` keeps those clients from repeating a request whose run has begun, or that would conflict
again.
"""

from collections.abc import Mapping
from typing import Final

import orjson
from fastapi.responses import Response

from toolcrib.contracts import AgentResponse, ErrorCode, JsonObject, NotFound
from toolcrib.interfaces.server.http.errors import ErrorDetail

RUN_HEADER: Final = "X-Toolcrib-Run-Id"
"""Names the run of a request."""

_TYPES: Final[Mapping[int, str]] = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_STATUSES: Final[Mapping[ErrorCode, int]] = {
    ErrorCode.VALIDATION_ERROR: 400,
    ErrorCode.POLICY_DENIED: 403,
    ErrorCode.AUTH_REQUIRED: 424,
    ErrorCode.RATE_LIMIT: 429,
    ErrorCode.PROVIDER_ERROR: 502,
    ErrorCode.NETWORK_ERROR: 502,
    ErrorCode.TIMEOUT: 504,
}
"""Of runs that failed; 500 for other codes."""


class UnknownModel(NotFound):
    """No agent that the key may execute has this name."""

    code = "model_not_found"


class UnknownResponse(NotFound):
    """There is no such response, or it is another principal's."""

    code = "previous_response_not_found"


def openai_error(status: int, detail: ErrorDetail, headers: Mapping[str, str]) -> Response:
    """An error of the server in OpenAI's shape.

    Args:
        status: Of the response.
        detail: What went wrong.
        headers: Of the response.
    """
    status = 400 if status == 422 else status
    kept = {name: value for name, value in headers.items() if name.lower() not in {"content-length", "content-type"}}
    if status == 409:
        kept["x-should-retry"] = "false"
    return _response(status, error_object(status, detail.message, detail.code, _param_of(detail)), kept)


def failed_run(state: AgentResponse) -> Response:
    """The response to a chat completion whose run ended without an answer."""
    status, error = error_of_run(state)
    headers = {RUN_HEADER: state.run_id, "x-should-retry": "false"}
    if state.error is not None and state.error.retry_after_s is not None:
        headers["Retry-After"] = str(max(1, round(state.error.retry_after_s)))
    return _response(status, error, headers)


def error_of_run(state: AgentResponse) -> tuple[int, JsonObject]:
    """Status and error of a run that ended without an answer."""
    if state.error is None or state.status == "cancelled":
        return 409, error_object(409, f"run {state.run_id} was cancelled; send the message again", "cancelled")
    error = state.error
    status = _STATUSES.get(error.code, 500)
    return status, error_object(status, f"run {state.run_id}: {error.message}", error.reason or error.code)


def error_object(status: int, message: str, code: str | None, param: str | None = None) -> JsonObject:
    """An error as OpenAI shows it."""
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"message": message, "type": kind, "param": param, "code": code}


def _response(status: int, error: JsonObject, headers: Mapping[str, str]) -> Response:
    return Response(orjson.dumps({"error": error}), status, headers=dict(headers), media_type="application/json")


_PARAMS: Final = {UnknownModel.code: "model", UnknownResponse.code: "previous_response_id"}


def _param_of(detail: ErrorDetail) -> str | None:
    if detail.code in _PARAMS:
        return _PARAMS[detail.code]
    problems = (detail.details or {}).get("problems")
    if not problems:
        return None
    return str(problems[0].get("path", "")).removeprefix("body.") or None
