"""What errors of a GraphQL server mean for a call, in the nine codes.

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

An error without `data` came before anything was executed. If a mutation was executed and only its answer failed, it has
taken effect, whatever the code: that is PROVIDER_ERROR with the effect `done`, which nothing repeats.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, TypeAlias

from toolcrib.contracts import ErrorCode, JsonObject, Reason, ToolDefinition
from toolcrib.contracts.base.errors import Effect
from toolcrib.core.executor import CallFailed, error
from toolcrib.core.providers.reach import retry_after
from toolcrib.infrastructure.net import HttpResponse
from toolcrib.kinds.graphql.exchange import Answer, GraphqlError
from toolcrib.kinds.graphql.shape import GraphqlImplementation
from toolcrib.kinds.http.runtime.answers import content_type, visible_headers
from toolcrib.kinds.http.runtime.failures import status_failure

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
"""Characters of an answer that is none, in a message."""


def errors_failure(
    tool: ToolDefinition, implementation: GraphqlImplementation, response: HttpResponse, answer: Answer, now: datetime
) -> CallFailed:
    """The failure of a call that brought errors and no output.

    Args:
        tool: The tool.
        implementation: Its operation.
        response: The answer.
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
    """The failure of a call with a status of success whose answer is none of GraphQL, or lacks the output."""
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


def errors_beside(answer: Answer) -> JsonObject:
    """What the metadata of a success say of the errors beside its data; empty if there are none."""
    if not answer.errors:
        return {}
    count = answer.error_count
    warning = f"the server reports {count} error{'s' * (count > 1)} beside the data: {_quote(answer)}"
    told: JsonObject = {"errors": [found.as_json() for found in answer.errors], "error_count": count}
    return {"graphql": told, "warnings": [warning]}


def _effect(implementation: GraphqlImplementation, response: HttpResponse, answer: Answer) -> Effect | None:
    """What a mutation has changed, as far as its answer tells; null for what the code of the failure means."""
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
    said = [found.retry_after_s for found in errors if found.retry_after_s is not None]
    return max(said) if said else retry_after(response.headers, now)


def _quote(answer: Answer) -> str:
    more = answer.error_count - _TOLD
    return "; ".join(map(str, answer.errors[:_TOLD])) + (f"; and {more} more" if more > 0 else "")


def is_refusal(answer: Answer) -> bool:
    """Whether the credentials were refused."""
    return any(_MEANINGS.get(found.code or "") == _REFUSED for found in answer.errors)
