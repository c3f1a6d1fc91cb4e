"""A crib for the time of one command.

It reads the same environment as the server: `TOOLCRIB_EGRESS_ALLOW` for local addresses that tools may reach, and
`TOOLCRIB_RELEASED_ENV` for the variables that definitions may use as secrets.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from toolcrib.crib import Crib

T = TypeVar("T")

_RELEASED = "TOOLCRIB_SECRET_*"


def with_crib(store: str, work: Callable[["Crib"], Awaitable[T]], *, new: bool = False) -> T:
    """Open a crib, do the work, close it.

    Args:
        store: URL of the store.
        work: What is to be done.
        new: Whether the store may be made; a command that only looks makes none.

    Raises:
        NotFound: There is no such store.
        ToolcribError: As the work raises.
    """
    from toolcrib.crib import Crib
    from toolcrib.net import EgressPolicy

    if not new:
        _require(store)
    released = tuple(pattern.strip() for pattern in os.environ.get("TOOLCRIB_RELEASED_ENV", _RELEASED).split(","))
    egress = EgressPolicy.from_settings(os.environ.get("TOOLCRIB_EGRESS_ALLOW", ""))

    async def session() -> T:
        async with Crib(store, egress=egress, released=released) as crib:
            return await work(crib)

    return asyncio.run(session())


def _require(store: str) -> None:
    from toolcrib.contracts import NotFound

    file = Path(store.removeprefix("sqlite:///"))
    if store.startswith("sqlite:///") and not file.exists():
        msg = f"there is no store at {store} (in {Path.cwd()}); name one with --store or TOOLCRIB_STORE"
        raise NotFound(msg)
