"""Every way in which the CRM refuses a request.

CrmError
|-- InvalidRequestError    400  invalid_request
|-- UnauthorizedError      401  unauthorized
|-- NotFoundError          404  not_found
|-- MethodNotAllowedError  405  method_not_allowed
|-- StaleRevisionError     409  stale_revision
|-- TooLargeError          413  too_large
|-- KeyReusedError         422  idempotency_key_reused
|-- RateLimitedError       429  rate_limited
`-- InternalError          500  internal_error
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from examples.crm.values import Json


@dataclass(frozen=True, slots=True)
class Choice:
    """A value that would have been accepted; `label` is its name for people, if it has one."""

    value: str
    label: str | None = None

    def as_json(self) -> Json:
        """The choice as an error's `allowed` shows it."""
        return {"value": self.value} if self.label is None else {"value": self.value, "label": self.label}


@dataclass(frozen=True, slots=True)
class Detail:
    """One problem: where in the request it stands, what it is, and what would be accepted instead."""

    path: str
    problem: str
    allowed: Sequence[Choice] = ()

    def as_json(self) -> Json:
        """The detail as the error document declares it; `allowed` is absent when nothing can be listed."""
        found: dict[str, Json] = {"path": self.path, "problem": self.problem}
        if self.allowed:
            found["allowed"] = [choice.as_json() for choice in self.allowed]
        return found


class CrmError(Exception):
    """A refusal with its HTTP status and stable code."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"

    def __init__(self, message: str, details: Sequence[Detail] = (), headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = tuple(details)
        self.headers = dict(headers or {})

    def as_json(self) -> Json:
        """The body of the response."""
        details: list[Json] = [detail.as_json() for detail in self.details]
        return {"error": {"code": self.code, "message": self.message, "details": details}}


class InvalidRequestError(CrmError):
    """The request is malformed or names something that does not exist; sending it again cannot help."""

    status = 400
    code = "invalid_request"


class UnauthorizedError(CrmError):
    """No bearer token, or one that this CRM never issued."""

    status = 401
    code = "unauthorized"

    def __init__(self) -> None:
        super().__init__(
            "send `Authorization: Bearer TOKEN` with the token that the server printed when it started",
            headers={"WWW-Authenticate": "Bearer"},
        )


class NotFoundError(CrmError):
    """The object or the route does not exist."""

    status = 404
    code = "not_found"


class MethodNotAllowedError(CrmError):
    """The route exists, but not for this method."""

    status = 405
    code = "method_not_allowed"


class StaleRevisionError(CrmError):
    """`If-Match` names a revision that is no longer current."""

    status = 409
    code = "stale_revision"


class TooLargeError(CrmError):
    """The body is over the cap."""

    status = 413
    code = "too_large"


class KeyReusedError(CrmError):
    """An idempotency key came again with another request."""

    status = 422
    code = "idempotency_key_reused"


class RateLimitedError(CrmError):
    """The token's bucket is empty for now."""

    status = 429
    code = "rate_limited"


class InternalError(CrmError):
    """A fault of the CRM itself; nothing was changed."""

    def __init__(self) -> None:
        super().__init__("the CRM failed to handle this request; nothing was changed")
