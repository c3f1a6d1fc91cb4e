"""A message that is no text."""

from toolcrib import Crib


async def ask(crib: Crib) -> None:
    """Ask."""
    await crib.agent("desk", model="scripted:desk")(4)  # mypy: expected "str" | pyright: "str"
