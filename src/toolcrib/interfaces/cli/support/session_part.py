"""A crib for the time of one command, as the settings want it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from toolcrib.crib import Crib

T = TypeVar("T")


def with_crib(store: str | None, work: Callable[["Crib"], Awaitable[T]], *, new: bool = False) -> T:
    """Open a crib, do the work, close it.

    Args:
        store: URL of the store; the settings' if null.
        work: What is to be done.
        new: Whether the store may be made; a command that only looks makes none.

    Raises:
        InvalidSettings: A setting cannot be used.
        NotFound: There is no such store.
        ToolcribError: As the work raises.
    """
    from toolcrib.crib import Crib
    from toolcrib.crib.settings import load_settings

    settings = load_settings({"store": store}).settings
    if not new:
        _require(settings.store)

    async def session() -> T:
        async with Crib.from_settings(settings) as crib:
            return await work(crib)

    return asyncio.run(session())


def _require(store: str) -> None:
    from toolcrib.contracts import NotFound

    file = Path(store.removeprefix("sqlite:///"))
    if store.startswith("sqlite:///") and not file.exists():
        msg = f"there is no store at {store} (in {Path.cwd()}); name one with --store or TOOLCRIB_STORE"
        raise NotFound(msg)
