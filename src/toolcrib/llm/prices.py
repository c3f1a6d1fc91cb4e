"""What a model call costs."""

from decimal import Decimal

from msgspec import Struct


class Cost(Struct, frozen=True):
    """An amount and where its rates come from."""

    usd: Decimal | None
    """US dollars; None means unknown, never free."""
    source: str
    """The table and its version, or why the amount is unknown."""
