"""A length of time that the frozen clock does not know."""

from toolcrib.testing import FrozenClock

FrozenClock().advance(weeks=1)  # mypy: weeks | pyright: weeks
