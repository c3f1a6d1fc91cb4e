"""Taking definitions out of the catalogue, and what is still going on with them."""

from typing import Final

from toolcrib.contracts import Principal, RunStatus, ToolRevision
from toolcrib.crib import Crib
from toolcrib.interfaces.server.views.agents import RemovalView, RunUnderWay

_UNDER_WAY: Final[tuple[RunStatus, ...]] = (
    "queued",
    "running",
    "awaiting_approval",
    "awaiting_client",
    "awaiting_answer",
)


async def removed(crib: Crib, caller: Principal, tool: ToolRevision) -> RemovalView:
    """Take a tool of any kind out of the catalogue, and tell which of its runs go on."""
    await crib.registry.remove(caller.realm, tool.name)
    under_way = [
        RunUnderWay(run_id=run.run_id, status=run.status)
        for status in _UNDER_WAY
        for run in await crib.store.journal.runs(caller.realm, tool=tool.name, status=status, limit=100)
    ]
    message = f"{tool.name} is gone from the catalogue and cannot be started any more"
    if under_way:
        message += f"; {len(under_way)} runs that are under way go on with the revision that they began with"
    return RemovalView(name=tool.name, message=message, under_way=tuple(under_way))
