"""Who may read a run, and who may act on it: whoever started it, and those whom a grant allows it."""

from typing import Literal, TypeAlias

from toolcrib.contracts import NotFound, PermissionDenied, Principal, Run
from toolcrib.core.policy import permits
from toolcrib.infrastructure.store import Journal

RunVerb: TypeAlias = Literal["execute", "read"]
"""What a principal does with a run: act on it, or look at it."""


async def run_for(journal: Journal, run_id: str, who: Principal, verb: RunVerb) -> Run:
    """A run of the realm that is the principal's own, or that it has a grant for.

    Raises:
        NotFound: The realm has no such run.
        PermissionDenied: It is somebody else's.
    """
    try:
        run = await journal.run(run_id)
    except NotFound:
        run = None
    if run is None or run.realm != who.realm:
        msg = f"there is no run {run_id!r}; list the executions for the ids there are"
        raise NotFound(msg)
    if not may(who, run, verb):
        uri = _uri(run, verb)
        msg = f"run {run_id} is another's, and {who.id!r} has no grant for {uri!r}; ask the realm's owner for it"
        raise PermissionDenied(msg)
    return run


def may(who: Principal, run: Run, verb: RunVerb) -> bool:
    """Whether a principal may read a run, or act on it: its own, and those that a grant of it names."""
    return run.made_by == who.id or permits(who.grants, _uri(run, verb))


def _uri(run: Run, verb: RunVerb) -> str:
    return f"ai://runs/{run.request.tool_name}/{verb}"
