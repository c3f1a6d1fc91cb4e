"""Errors of requests that were not sent, timeouts and retries of a provider, and requested delays.

A request can be stopped by the run's budget, the network or the egress policy; that is the same for every runtime. A
delay comes from `Retry-After` (RFC 9110, section 10.2.3) or a common rate limit header.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Final, TypeAlias, assert_never

from toolcrib.contracts import (
    EgressDenied,
    ErrorCode,
    InvalidInput,
    InvalidSettings,
    ProviderDefinition,
    Reason,
    ToolDefinition,
    ToolRevision,
)
from toolcrib.core.executor import CallFailed, Dispatch, error
from toolcrib.infrastructure.net import NetworkError, TimedOut, TooLarge

Providers: TypeAlias = Callable[[str, str], ProviderDefinition | None]
"""The provider of a realm (first) by name (second)."""


def provider_of(tool: ToolRevision, providers: Providers) -> ProviderDefinition | None:
    """The provider that a tool names; null if it names none, or one that does not exist."""
    name = tool.definition.provider
    return None if name is None else providers(tool.realm, name)


def request_limit_s(tool: ToolDefinition, provider: ProviderDefinition | None) -> float:
    """Seconds that one request of a tool may take: the provider's limit within that of the whole call."""
    if provider is None or provider.timeout_s is None:
        return tool.timeout_s
    return min(tool.timeout_s, provider.timeout_s)


def count_request(dispatch: Dispatch) -> None:
    """Take one request from the run's budget.

    Raises:
        CallFailed: There is none left.
    """
    shortage = dispatch.context.budget.take_request()
    if shortage is not None:
        message = f"{dispatch.tool.name!r}: {shortage.message}"
        raise CallFailed(error(ErrorCode.POLICY_DENIED, shortage.reason, message), sent=False)


def meaning_of(problem: EgressDenied | NetworkError) -> tuple[ErrorCode, Reason]:
    """What the network or its policy has against a request, in the nine codes."""
    match problem:
        case EgressDenied():
            return ErrorCode.POLICY_DENIED, Reason.SSRF_BLOCKED
        case TimedOut():
            return ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT
        case TooLarge():
            return ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE
        case NetworkError():
            return ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED
        case _:
            assert_never(problem)


def network_failure(tool: ToolDefinition, problem: EgressDenied | NetworkError | InvalidInput) -> CallFailed:
    """The failure that the network or its policy means."""
    match problem:
        case EgressDenied() | NetworkError():
            code, reason = meaning_of(problem)
        case InvalidSettings():  # the client certificate cannot be used
            code, reason = ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET
        case InvalidInput():
            code, reason = ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH
        case _:
            assert_never(problem)
    is_sent = not isinstance(problem, InvalidInput) and not problem.unsent
    effect = "none" if isinstance(problem, NetworkError) and problem.unsent else None
    return CallFailed(error(code, reason, f"tool {tool.name!r}: {problem}"), effect=effect, sent=is_sent)


_RESETS: Final = ("ratelimit-reset", "x-ratelimit-reset", "x-ratelimit-reset-after", "x-rate-limit-reset")
_FIRST_EPOCH: Final = 1_000_000_000
"""A larger number is a moment in seconds since 1970, a smaller one a span."""
_FIRST_EPOCH_MS: Final = 1_000_000_000_000


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds to wait, not negative; null if the answer does not say.

    Args:
        headers: Of the answer, names in lower case.
        now: The current moment, in UTC.
    """
    text = headers.get("retry-after")
    if text is not None:
        seconds = _number(text)
        return max(seconds, 0.0) if seconds is not None else _until(text, now)
    resets = [seconds for name in _RESETS if (seconds := _number(headers.get(name, ""))) is not None]
    return _span(resets[0], now) if resets else None


def _span(number: float, now: datetime) -> float:
    if number >= _FIRST_EPOCH_MS:
        number /= 1000
    return max(number - now.timestamp() if number >= _FIRST_EPOCH else number, 0.0)


def _until(text: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max((moment - now).total_seconds(), 0.0)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None
