"""Routes that pause, resume and fire triggers and tell how they stand, and the addresses of webhooks."""

from typing import Final

from fastapi import Request, Response
from pydantic import Field

from toolcrib.contracts import Contract, JsonObject, Principal, TriggerStart, TriggerState, Unauthenticated
from toolcrib.crib import Crib
from toolcrib.interfaces.server.http.caller_rights import Caller, CribDep, demand
from toolcrib.interfaces.server.http.requests import ForeignRoute, Routes

HOOKS: Final = "/hooks/"
"""Where the addresses of webhooks begin. They need no API key."""
_STATUSES: Final = {"started": 202, "known": 200, "skipped": 200, "failed": 422}

router: Final = Routes(prefix="/ai/triggers", tags=("triggers",))
hooks: Final = Routes(prefix="/hooks", tags=("triggers",), route=ForeignRoute)


class FireBody(Contract):
    """What a trigger's input reads."""

    event: JsonObject = Field(default_factory=dict)
    """Members of `${event.…}`."""


@router.get("/{name}/state", name="get_trigger_state")
async def state(name: str, crib: CribDep, caller: Caller) -> TriggerState:
    """The next time of a trigger, its last run, and why it started nothing."""
    demand(caller, f"ai://triggers/{name}/read")
    return await crib.triggers.state(name)


@router.post("/{name}/pause", name="pause_trigger")
async def pause(name: str, crib: CribDep, caller: Caller) -> TriggerState:
    """Have a trigger start nothing until it is resumed."""
    demand(caller, f"ai://triggers/{name}/write")
    await crib.triggers.pause(name)
    return await crib.triggers.state(name)


@router.post("/{name}/resume", name="resume_trigger")
async def resume(name: str, crib: CribDep, caller: Caller) -> TriggerState:
    """Have a paused trigger start runs again; what has passed meanwhile is not caught up."""
    demand(caller, f"ai://triggers/{name}/write")
    await crib.triggers.resume(name)
    return await crib.triggers.state(name)


@router.post("/{name}/fire", name="fire_trigger", status_code=202)
async def fire(name: str, body: FireBody, crib: CribDep, caller: Caller) -> TriggerStart:
    """Start now what a trigger starts."""
    demand(caller, f"ai://triggers/{name}/execute")
    return await crib.triggers.fire(name, body.event)


@hooks.post("/{realm}/{name}", name="receive_webhook", status_code=202, responses={200: {"model": TriggerStart}})
async def receive(realm: str, name: str, request: Request, response: Response) -> TriggerStart:
    """Take a signed webhook: 202 if it has started a run, 200 if it had before or is left out, 422 if it could not."""
    crib: Crib = request.app.state.crib
    if not await crib.store.definitions.changes(realm):  # nothing is read of a realm that somebody has made up
        raise Unauthenticated("the webhook's signature is missing, wrong or too old")
    receiver = crib.acting_as(Principal(id="webhook", kind="service", realm=realm, grants=()))
    headers = {header.lower(): value for header, value in request.headers.items()}
    start = await receiver.triggers.receive(name, headers, await request.body())
    response.status_code = _STATUSES[start.outcome]
    # Why nothing was started is for those who may read the trigger's state, not for who sends.
    return start.model_copy(update={"problem": None})
