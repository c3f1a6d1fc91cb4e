"""An argument of the wrong type for a decorated function."""

from toolcrib import tool


@tool
def add(first: int, second: int) -> int:
    """Add two numbers."""
    return first + second


add(1, "2")  # mypy: expected "int" | pyright: "int"
