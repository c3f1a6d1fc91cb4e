"""Maps a provider's error to a `ModelErrorKind`, and says which errors may be retried and after how many seconds.

One table of rules serves all wires. The rules check the provider's code first, then phrases of its message, then the
HTTP status. `redact_error`, which `Model` applies to every error, shortens messages and removes credentials. Pure:
nothing is retried here, because each attempt must be in the journal.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import orjson
from msgspec import Struct

from toolcrib.contracts.base.errors import ModelError, ModelErrorKind
from toolcrib.llm.base.json_values import arr, count, obj, text

MAX_MESSAGE = 800
"""Characters of a provider's message that reach our error."""

_CODES: dict[str, ModelErrorKind] = {
    "api_error": "server",
    "api_key_invalid": "auth",
    "authentication_error": "auth",
    "billing_error": "quota",
    "billing_hard_limit_reached": "quota",
    "content_filter": "content_filter",
    "content_policy_violation": "content_filter",
    "context_length_exceeded": "context_length",
    "deadline_exceeded": "timeout",
    "exceed_context_size_error": "context_length",
    "insufficient_quota": "quota",
    "internal": "server",
    "invalid_api_key": "auth",
    "model_not_found": "not_found",
    "not_found": "not_found",
    "not_found_error": "not_found",
    "overloaded_error": "overloaded",
    "permission_denied": "auth",
    "permission_error": "auth",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "resource_exhausted": "rate_limit",
    "responsibleaipolicyviolation": "content_filter",
    "server_error": "server",
    "server_overloaded": "overloaded",
    "timeout_error": "timeout",
    "unauthenticated": "auth",
    "unavailable": "overloaded",
}

_PHRASES: tuple[tuple[ModelErrorKind, tuple[str, ...]], ...] = (
    (
        "context_length",
        (
            "maximum context length",
            "context window",
            "prompt is too long",
            "context size",
            "input is too long",
            "exceeds the maximum number of tokens",
        ),
    ),
    ("quota", ("exceeded your current quota", "credit balance is too low", "insufficient credits")),
    ("content_filter", ("content filtering policy", "content management policy", "requires moderation")),
)

_STATUSES: dict[int, ModelErrorKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    404: "not_found",
    408: "timeout",
    429: "rate_limit",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}

_HINTS: dict[ModelErrorKind, str] = {
    "auth": "check the API key and what it may use",
    "bad_response": "check base_url",
    "context_length": "send less history or smaller tool results, or set max_input_tokens, to which both are shortened",
    "not_found": "check the model's name and base_url",
    "quota": "check the account's plan and billing",
}


class ErrorBody(Struct, frozen=True):
    """What an error body says."""

    message: str
    codes: tuple[str, ...] = ()
    """The provider's code and type, most specific first."""
    status: int = 0
    """A status inside the body; gateways put the upstream's there."""
    retry_after_s: float | None = None
    """Seconds to wait, where the body says it instead of a header."""
    kind: ModelErrorKind | None = None
    """What it is, where the body's shape says it."""


def fault_of(error: Any) -> ErrorBody:
    """Read the value of an `error` field: an object, as nearly all send it, or a bare text."""
    if isinstance(error, str):
        return ErrorBody(error)
    body = obj(error)
    code = body.get("code")
    metadata = obj(body.get("metadata"))
    message = text(body.get("message")) or text(metadata.get("raw"))
    upstream = text(metadata.get("raw"))
    if upstream and upstream != message:
        message = f"{message} ({upstream})"
    codes = tuple(word for word in (code, body.get("type")) if isinstance(word, str) and word)
    return ErrorBody(message, codes, code if isinstance(code, int) else count(body.get("status_code")))


def fault_in(body: bytes) -> ErrorBody:
    """Read the body of an error, in the shapes that servers of OpenAI's APIs use.

    They are `{"error": {...}}`, `{"error": "text"}`, `[{"error": ...}]`, `{"detail": ...}`, `{"message": ...}`, a page
    and nothing.
    """
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ErrorBody(body.decode("utf-8", "replace"))
    content = obj(next(iter(arr(value)), value))
    return fault_of(content.get("error") or content.get("detail") or content)


def provider_error(
    provider: str, fault: ErrorBody, *, status: int = 0, headers: Mapping[str, str] | None = None, request_id: str = ""
) -> ModelError:
    """The error that a fault means.

    Args:
        provider: The endpoint's name, for the message.
        fault: What the body said.
        status: The HTTP status, 0 inside a stream.
        headers: The response's headers.
        request_id: The provider's id of the request, if the body had it.
    """
    lower = {name.lower(): value for name, value in (headers or {}).items()}
    failed = status if status >= 300 else fault.status
    wait = retry_after(lower)
    kind = fault.kind or _kind(fault, failed)
    code = fault.codes[0] if fault.codes else None
    what = " ".join(str(word) for word in (failed or "", code or "") if word) or "an error"
    hint = f"; {_HINTS[kind]}" if kind in _HINTS else ""
    return ModelError(
        kind,
        f"{provider} answered {what}: {fault.message.strip() or 'no message'}{hint}",
        status=failed,
        retry_after_s=fault.retry_after_s if wait is None else wait,
        provider_code=code,
        request_id=request_id or lower.get("x-request-id") or lower.get("request-id"),
    )


def _kind(fault: ErrorBody, status: int) -> ModelErrorKind:
    for code in fault.codes:
        if kind := _CODES.get(code.lower()):
            return kind
    message = fault.message.lower()
    for kind, phrases in _PHRASES:
        if any(phrase in message for phrase in phrases):
            return kind
    if 300 <= status < 400:
        return "bad_response"
    return _STATUSES.get(status) or ("bad_request" if 400 <= status < 500 else "server")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, by `retry-after-ms` or `retry-after`; `headers` have lower-case names.

    A date is measured from the answer's own `date` header, so a wrong clock on either side does not matter.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None:
        return seconds
    until, since = _date(value), _date(headers.get("date"))
    return max(0.0, (until - since).total_seconds()) if until and since else None


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def _date(value: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value or "")
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def redact_error(error: ModelError, key: str | None) -> ModelError:
    """The same error without the credential, and with a message of bearable length."""

    def clean(value: str | None) -> str | None:
        return value.replace(key, "[api key]") if value and key else value

    message = clean(str(error)) or ""
    if len(message) > MAX_MESSAGE:
        message = f"{message[:MAX_MESSAGE]}... ({len(message)} characters)"
    return ModelError(
        error.kind,
        message,
        status=error.status,
        retry_after_s=error.retry_after_s,
        provider_code=clean(error.provider_code),
        request_id=clean(error.request_id),
    )


class ModelRetryPolicy(Struct, frozen=True, kw_only=True):
    """Exponential back-off with jitter, which yields to what the provider asked for."""

    max_retries: int = 3
    base_s: float = 0.5
    """The first wait; each further one is twice as long."""
    cap_s: float = 30.0
    """The longest wait that we choose ourselves."""
    max_retry_after_s: float = 300.0
    """The longest wait that a provider may ask for; if it asks for more, trying again is left to the caller."""

    max_fallback_wait_s: float = 5.0
    """The longest wait while another model can be asked instead, which is retried once at most."""

    def wait_s(self, error: ModelError, retries: int, jitter: float, *, has_fallback: bool = False) -> float | None:
        """Seconds until the next attempt, or None if there shall be none.

        Args:
            error: What went wrong.
            retries: How many retries there were already.
            jitter: A number in [0, 1) from the caller's random source; it shortens a wait of our own by up to half.
            has_fallback: Whether another model can be asked instead.
        """
        if retries >= (min(self.max_retries, 1) if has_fallback else self.max_retries) or not error.may_retry:
            return None
        if error.retry_after_s is not None:
            most = self.max_fallback_wait_s if has_fallback else self.max_retry_after_s
            return error.retry_after_s if error.retry_after_s <= most else None
        return min(self.cap_s, self.base_s * 2**retries) * (1 - jitter / 2)
