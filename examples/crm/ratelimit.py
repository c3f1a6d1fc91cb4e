"""A token bucket for each bearer token.

A bucket holds up to `requests` and refills at `requests` per `seconds`; a request takes one. Time comes from the clock
that is passed in.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rate:
    """So many requests in so many seconds."""

    requests: int
    seconds: float

    @classmethod
    def parse(cls, text: str) -> "Rate":
        """Read `N/SECONDS`, for example `50/1`.

        Raises:
            ValueError: the text has another form, or a part is not positive.
        """
        requests, _, seconds = text.partition("/")
        try:
            rate = cls(int(requests), float(seconds))
        except ValueError:
            rate = cls(0, 0)
        if not (rate.requests > 0 and 0 < rate.seconds < float("inf")):
            raise ValueError(f"a rate is N/SECONDS with positive numbers, for example 50/1, not {text!r}")
        return rate


class RateLimiter:
    """The buckets of all tokens.

    Args:
        rate: the size and refill of each bucket.
        monotonic: seconds from any fixed start.
    """

    def __init__(self, rate: Rate, monotonic: Callable[[], float]) -> None:
        self._rate = rate
        self._monotonic = monotonic
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, token: str) -> float:
        """Take one request from the token's bucket: 0 if it could be taken, else the seconds until it can."""
        now = self._monotonic()
        speed = self._rate.requests / self._rate.seconds
        level, since = self._buckets.get(token, (float(self._rate.requests), now))
        level = min(float(self._rate.requests), level + (now - since) * speed)
        if level < 1:
            self._buckets[token] = (level, now)
            return (1 - level) / speed
        self._buckets[token] = (level - 1, now)
        return 0.0
