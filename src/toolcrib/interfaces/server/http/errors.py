"""The error response, a problem document (RFC 9457), with the status of each error; and JSON Merge Patch.

A merge patch (RFC 7396) removes fields that are null, replaces other fields, and merges objects.
"""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, Self, TypeAlias, TypeVar, cast
from urllib.parse import quote

from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from toolcrib.contracts import (
    Contract,
    EgressDenied,
    InvalidInput,
    JsonObject,
    ModelError,
    Reason,
    ReconnectRequired,
    RunNotCompleted,
    ToolcribError,
)
from toolcrib.contracts.base.errors import UnknownName
from toolcrib.interfaces.server.http.caller_rights import sees_names

PROBLEM_TYPE: Final = "application/problem+json"
"""The media type of errors."""


class ErrorDetail(Contract):
    """What went wrong and what to do, before it has the shape of a protocol."""

    code: str
    """Stable; of the error tree, or the name of the HTTP status."""
    message: str
    details: JsonObject | None = None
    reason: str | None = None


class ProblemDocument(Contract):
    """The body of each response with a status of 400 or more (RFC 9457)."""

    type: str
    """The place in the documentation of Toolcrib that says what to do: `troubleshooting.html#not_found`."""
    title: str
    """The code in words; the same for each occurrence."""
    status: int
    """The HTTP status."""
    detail: str
    """What went wrong here, and the next step."""
    instance: str
    """The path of the request."""
    code: str
    """Stable; of the error tree, or the name of the HTTP status."""
    reason: str | None = None
    """The finer cause, of the vocabulary of failed calls; missing if there is none."""
    details: JsonObject | None = None
    """`problems`: a list of `{path, problem}` for a request that is not valid. `incident`: the id in the log."""

    @classmethod
    def of(cls, status: int, error: ErrorDetail, path: str) -> Self:
        """The document of an error.

        Args:
            status: Of the response.
            error: What went wrong.
            path: Of the request.
        """
        return cls(
            type=f"troubleshooting.html#{error.code}",
            title=error.code.replace("_", " ").capitalize(),
            status=status,
            detail=error.message,
            instance=quote(path),
            code=error.code,
            reason=error.reason,
            details=error.details,
        )


_ADVICE: Final[Mapping[int, str]] = {
    404: "there is nothing at this path; GET /openapi.json lists all paths",
    405: "this path does not take this method; the header Allow and GET /openapi.json say which it takes",
}


ErrorDialect: TypeAlias = Callable[[int, ErrorDetail, Mapping[str, str]], Response]
"""Makes the response of an error, with a status and headers, for clients that expect another body."""


class ErrorResponse(Response):
    """An error, in the dialect of the path: `app.state.error_dialects` has the dialects by the beginnings of paths.

    Args:
        status: Of the response.
        detail: What went wrong.
        headers: Further headers.
    """

    def __init__(self, status: int, detail: ErrorDetail, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status_code=status, media_type=PROBLEM_TYPE, headers=headers)
        self._detail = detail

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        application = scope.get("app")
        dialects = {} if application is None else getattr(application.state, "error_dialects", {})
        path = scope["path"].removeprefix(scope.get("root_path", ""))  # where the application is mounted
        found = next((dialects[start] for start in dialects if path.startswith(start)), None)
        if found is not None:
            await found(self.status_code, self._detail, self.headers)(scope, receive, send)
            return
        problem = ProblemDocument.of(self.status_code, self._detail, scope["path"])
        self.body = problem.model_dump_json(exclude_none=True).encode()
        self.headers["content-length"] = str(len(self.body))
        await super().__call__(scope, receive, send)


def error_response(
    status: int, code: str, message: str, details: JsonObject | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """An error response."""
    return ErrorResponse(status, ErrorDetail(code=code, message=message, details=details), headers)


def explain(error: ToolcribError, challenge: str | None = None) -> Response:
    """The response to an error of the library.

    Args:
        error: What was refused.
        challenge: What credentials are wanted; that of API keys if null and the caller is unknown.
    """
    if challenge is None and error.http_status == 401:
        challenge = 'Bearer realm="toolcrib"'
    headers = None if challenge is None else {"WWW-Authenticate": challenge}
    detail = ErrorDetail(code=error.code, message=str(error), details=_details(error), reason=_reason(error))
    return ErrorResponse(error.http_status, detail, headers)


def _details(error: ToolcribError) -> JsonObject | None:
    match error:
        case ModelError():
            return {"kind": error.kind}
        case InvalidInput() if error.problems:
            return {"problems": list(error.problems)}
        case _:
            return None


def _reason(error: ToolcribError) -> str | None:
    match error:
        case RunNotCompleted() if error.error is not None:
            return error.error.reason
        case ReconnectRequired():
            return Reason.RECONNECT_REQUIRED
        case EgressDenied():
            return Reason.SSRF_BLOCKED
        case _:
            return None


async def on_toolcrib_error(request: Request, error: Exception) -> Response:
    """Handler for `ToolcribError`."""
    if isinstance(error, UnknownName) and not sees_names(request, error):
        return error_response(error.http_status, error.code, f"{error.missing}, or you may not see it")
    return explain(cast("ToolcribError", error))


async def on_http_error(_request: Request, error: Exception) -> Response:
    """Handler for what the framework itself refuses: unknown paths and methods, bodies that are too large."""
    refusal = cast("HTTPException", error)
    status = HTTPStatus(refusal.status_code)
    code = "content_too_large" if status == 413 else status.name.lower()  # HTTPStatus renamed it in Python 3.13
    message = refusal.detail if refusal.detail != status.phrase else _ADVICE.get(status, status.description)
    return error_response(status, code, message, headers=refusal.headers)


async def on_invalid_request(_request: Request, error: Exception) -> Response:
    """Handler for requests that do not fit the contracts. What was sent is not repeated: it may hold secrets."""
    problems = [_problem(found) for found in cast("RequestValidationError", error).errors()]
    listed = "; ".join(f"{found['path']}: {found['problem']}" for found in problems[:5])
    message = f"the request is not valid: {listed}. Correct it and send it again"
    return error_response(422, "invalid_input", message, {"problems": problems})


def to_request_error(problem: ValidationError) -> RequestValidationError:
    """Problems of a contract as problems of the request's body; what was sent is not repeated."""
    errors = problem.errors(include_url=False, include_input=False)
    return RequestValidationError([{**found, "loc": ("body", *found["loc"])} for found in errors])


def _problem(found: Mapping[str, Any]) -> JsonObject:
    if found["type"] == "json_invalid":  # its place is a number of characters, which the cause says better
        return {"path": "body", "problem": f"{found['msg']}: {found['ctx']['error']}"}
    return {"path": ".".join(str(part) for part in found["loc"]), "problem": found["msg"]}


ContractT = TypeVar("ContractT", bound=Contract)


def apply_patch(contract: type[ContractT], before: JsonObject, patch: JsonObject) -> ContractT:
    """A contract as a patch makes it.

    Raises:
        InvalidInput: It is not valid; each problem is named with its place.
    """
    try:
        return contract.model_validate(merge_patch(before, patch))
    except ValidationError as problem:
        raise to_request_error(problem) from problem


def merge_patch(target: Any, patch: Any) -> Any:
    """The target as the patch makes it."""
    if not isinstance(patch, dict):
        return patch
    changes = cast("JsonObject", patch)
    result: JsonObject = dict(cast("JsonObject", target)) if isinstance(target, dict) else {}
    for name, value in changes.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result
