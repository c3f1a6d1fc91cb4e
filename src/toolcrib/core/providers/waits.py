"""How long the other side asks to wait: `Retry-After` (RFC 9110, section 10.2.3) or a customary rate limit header."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Final

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
