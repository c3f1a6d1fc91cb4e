"""An option of `@tool` that does not exist."""

from toolcrib import tool


@tool(side_effect="reads")  # mypy: did you mean "side_effects" | pyright: No overloads for "tool"
async def find_order(order_id: str) -> str:
    """Find an order."""
    return order_id
