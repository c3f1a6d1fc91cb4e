"""What every route is handed: the crib, the caller, and the checks that they share."""

from typing import Annotated, cast

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from toolcrib.contracts import NotFound, PermissionDenied, Principal, Run
from toolcrib.core.policy import permits
from toolcrib.crib import Crib

BEARER = HTTPBearer(auto_error=False, description="An API key of this server: `tcb_…`")
"""Documents in OpenAPI what `Authentication` enforces."""


def _crib(request: Request) -> Crib:
    return cast("Crib", request.app.state.crib)


def _caller(request: Request) -> Principal:
    return cast("Principal", request.state.principal)


House = Annotated[Crib, Depends(_crib)]
Caller = Annotated[Principal, Depends(_caller)]


def demand(caller: Principal, uri: str) -> None:
    """Let a caller pass who has a grant for a security URI.

    Raises:
        PermissionDenied: There is none; the message names it.
    """
    if not permits(caller.grants, uri):
        msg = f"principal {caller.id!r} has no grant for {uri!r}; ask the realm's owner for it"
        raise PermissionDenied(msg)


async def run_of(crib: Crib, caller: Principal, run_id: str) -> Run:
    """A run of the caller's realm.

    Raises:
        NotFound: There is none; a run of another realm is told apart from none by nothing.
    """
    try:
        run = await crib.store.journal.run(run_id)
    except NotFound:
        run = None
    if run is None or run.realm != caller.realm:
        msg = f"there is no run {run_id!r}; GET /api/v1/executions lists the runs"
        raise NotFound(msg)
    return run
