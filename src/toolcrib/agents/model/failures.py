"""A model's failure as the error of a run."""

from collections.abc import Mapping

from toolcrib.agents.model.json_answers import UnusableAnswer
from toolcrib.contracts import ErrorCode, ModelError, ModelErrorKind, Reason, ToolError
from toolcrib.core.executor import error

_MEANINGS: Mapping[ModelErrorKind, tuple[ErrorCode, Reason]] = {
    "rate_limit": (ErrorCode.RATE_LIMIT, Reason.RATE_LIMITED),
    "quota": (ErrorCode.RATE_LIMIT, Reason.RATE_LIMITED),
    "auth": (ErrorCode.AUTH_REQUIRED, Reason.REQUEST_REFUSED),
    "not_found": (ErrorCode.PROVIDER_ERROR, Reason.REQUEST_REFUSED),
    "context_length": (ErrorCode.PROVIDER_ERROR, Reason.REQUEST_REFUSED),
    "content_filter": (ErrorCode.PROVIDER_ERROR, Reason.REQUEST_REFUSED),
    "bad_request": (ErrorCode.PROVIDER_ERROR, Reason.REQUEST_REFUSED),
    "overloaded": (ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED),
    "server": (ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED),
    "timeout": (ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT),
    "connection": (ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED),
    "stream_cut": (ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED),
    "bad_response": (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE),
}


def model_failure(failure: ModelError | UnusableAnswer) -> ToolError:
    """The stable code, the provider's message, and how the provider failed in `details["kind"]`."""
    if isinstance(failure, UnusableAnswer):
        return error(ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, str(failure))
    code, reason = _MEANINGS[failure.kind]
    told = error(code, reason, str(failure), kind=failure.kind, status=failure.status)
    return told.model_copy(update={"retry_after_s": failure.retry_after_s})
