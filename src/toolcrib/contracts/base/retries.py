"""How often a failed attempt is repeated: of one tool, or of all tools of a provider that say nothing themselves."""

from typing import Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract

Backoff: TypeAlias = Literal["none", "linear", "exponential"]


class RetryPolicy(Contract):
    """How often a failed attempt is repeated, and how long to wait in between."""

    count: int = Field(default=0, ge=0, le=10)
    """Retries after the first attempt."""
    backoff: Backoff = "exponential"
    base_s: float = Field(default=0.5, ge=0)
    """Seconds of the first wait."""
    max_s: float = Field(default=30.0, ge=0)
    """Seconds of the longest wait; a longer `retry-after` of the other side ends the retries."""

    def wait_s(self, attempt: int) -> float:
        """Seconds to wait after a failed attempt, as long as nobody asks for more.

        Args:
            attempt: Its number, from 1.
        """
        factor = {"none": 0, "linear": attempt, "exponential": 2 ** (attempt - 1)}[self.backoff]
        return min(self.base_s * factor, self.max_s)
