"""When a failed model call is worth another try, and after how long. Pure: it neither sleeps nor counts.

The model layer never retries by itself, so that every attempt is in the journal; the loop asks here.
"""

from msgspec import Struct

from toolcrib.contracts.base.errors import ModelError


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """Exponential back-off with jitter, which yields to what the provider asked for."""

    max_retries: int = 3
    base_s: float = 0.5
    """The first wait; each further one is twice as long."""
    cap_s: float = 30.0
    """The longest wait that we choose ourselves."""
    max_retry_after_s: float = 300.0
    """The longest wait that a provider may ask for; if it asks for more, trying again is left to the caller."""

    def wait_s(self, error: ModelError, retries: int, jitter: float) -> float | None:
        """Seconds until the next attempt, or None if there shall be none.

        Args:
            error: What went wrong.
            retries: How many retries there were already.
            jitter: A number in [0, 1) from the caller's random source; it shortens a wait of our own by up to half.
        """
        if retries >= self.max_retries or not error.may_retry:
            return None
        if error.retry_after_s is not None:
            return error.retry_after_s if error.retry_after_s <= self.max_retry_after_s else None
        return min(self.cap_s, self.base_s * 2**retries) * (1 - jitter / 2)
