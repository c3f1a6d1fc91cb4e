"""Routes over providers: the reference data that they declare, as it was read last, and reading it now."""

from typing import Annotated

from fastapi import APIRouter, Body
from pydantic import ConfigDict

from toolcrib.contracts import Contract, ReferenceReading, ReferenceSnapshot
from toolcrib.interfaces.server.http.context_part import Caller, House, demand
from toolcrib.interfaces.server.http.parsing import JsonRoute

router = APIRouter(prefix="/providers", route_class=JsonRoute, tags=["providers"])


class SyncBody(Contract):
    """Which lists are to be read."""

    model_config = ConfigDict(defer_build=False)

    names: tuple[str, ...] = ()
    """All that the provider declares if empty."""
    accept: bool = False
    """Believe lists that have lost most of their values."""


class SnapshotPage(Contract):
    """Lists of a provider."""

    items: tuple[ReferenceSnapshot, ...]


class ReadingPage(Contract):
    """Readings of a list."""

    items: tuple[ReferenceReading, ...]


@router.get("/{name}/reference-data")
async def list_reference_data(name: str, crib: House, caller: Caller) -> SnapshotPage:
    """Every list that a provider declares, with its last snapshot."""
    demand(caller, f"ai://providers/{name}/read")
    await crib.enter(caller, newest=True)
    return SnapshotPage(items=tuple(await crib.reference_data.list(name, principal=caller)))


@router.post("/{name}/reference-data/sync")
async def sync_reference_data(
    name: str, crib: House, caller: Caller, body: Annotated[SyncBody, Body(default_factory=SyncBody)]
) -> SnapshotPage:
    """Read lists now. One that fails has its error and its last snapshot."""
    demand(caller, f"ai://providers/{name}/execute")
    await crib.enter(caller, newest=True)
    found = await crib.reference_data.sync(name, *body.names, principal=caller, accept=body.accept)
    return SnapshotPage(items=tuple(found))


@router.get("/{name}/reference-data/{list_name}/history")
async def reference_data_history(name: str, list_name: str, crib: House, caller: Caller) -> ReadingPage:
    """What the last readings of a list brought, newest first."""
    demand(caller, f"ai://providers/{name}/read")
    await crib.enter(caller, newest=True)
    return ReadingPage(items=tuple(await crib.reference_data.history(name, list_name, principal=caller)))
