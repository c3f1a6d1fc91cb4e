"""An `await` that was forgotten."""

from toolcrib import Crib


async def call(crib: Crib) -> None:
    """Call."""
    print(crib.call("find_order", order_id="o1").ok)  # mypy: Coroutine | pyright: CoroutineType
