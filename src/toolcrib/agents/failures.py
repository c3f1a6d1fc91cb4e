"""A model's failure as the error of a run."""

from toolcrib.agents.answers import UnusableAnswer
from toolcrib.contracts import ErrorCode, JsonObject, ModelError, Reason, ToolError
from toolcrib.executor import error

_CODES: dict[str, ErrorCode] = {
    "auth": ErrorCode.AUTH_REQUIRED,
    "quota": ErrorCode.RATE_LIMIT,
    "rate_limit": ErrorCode.RATE_LIMIT,
    "timeout": ErrorCode.TIMEOUT,
    "connection": ErrorCode.NETWORK_ERROR,
    "stream_cut": ErrorCode.NETWORK_ERROR,
}


def model_failure(failure: ModelError | UnusableAnswer) -> ToolError:
    """The stable code, the provider's message, and how the provider failed in `details["kind"]`."""
    if isinstance(failure, UnusableAnswer):
        return error(ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, str(failure))
    details: JsonObject = {"kind": failure.kind, "status": failure.status}
    if failure.kind == "bad_response":
        details["reason"] = Reason.BAD_RESPONSE.value
    return ToolError(
        code=_CODES.get(failure.kind, ErrorCode.PROVIDER_ERROR),
        message=str(failure),
        details=details,
        retry_after_s=failure.retry_after_s,
    )
