"""An attribute of a result that does not exist."""

from toolcrib import Crib


async def call(crib: Crib) -> None:
    """Call."""
    print((await crib.invoke("find_order", {})).state)  # mypy: state | pyright: state
