"""A value that the option of a tool does not have."""

from toolcrib import tool


@tool(side_effects="read")  # mypy: No overload variant of "tool" | pyright: SideEffects
async def find_order(order_id: str) -> str:
    """Find an order."""
    return order_id
