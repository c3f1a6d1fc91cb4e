"""The route of agents for AG-UI: `POST /ag-ui/{agent}`."""

from typing import Annotated, Any, Final

from fastapi import Body, Response

from toolcrib.contracts import JsonObject, NotFound, ToolRevision, Unavailable
from toolcrib.contracts.base.errors import missing_extra
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.server.http.caller_rights import CribDep
from toolcrib.interfaces.server.http.requests import ForeignRoute, Routes
from toolcrib.interfaces.server.http.streaming import event_stream
from toolcrib.interfaces.server.openai.agent_tasks import agent_of
from toolcrib.interfaces.server.openai.error_bodies import RUN_HEADER, UnknownModel
from toolcrib.interfaces.server.runs.calls import SelfApproval

router: Final = Routes(prefix="/ag-ui", tags=("ag-ui",), route=ForeignRoute)
_STREAM: Final[dict[int | str, dict[str, Any]]] = {200: {"content": {"text/event-stream": {}}}}


@router.post("/{agent}", name="run_ag_ui_agent", response_class=Response, responses=_STREAM)
async def run_agent(
    agent: str, body: Annotated[JsonObject, Body()], crib: CribDep, self_approval: SelfApproval
) -> Response:
    """Ask an agent as AG-UI does (`RunAgentInput`), and follow its run as server-sent events of AG-UI."""
    try:
        from toolcrib.interfaces.server.agui import client_runs  # noqa: PLC0415 - loads the package of the protocol
    except ModuleNotFoundError as missing:
        raise Unavailable(missing_extra("AG-UI", missing.name, "ag-ui")) from missing
    found = await _agent(crib, agent)
    asked = client_runs.read_input(body)
    begun = await client_runs.begin(crib, found, asked, self_approval=self_approval)
    response = event_stream(client_runs.stream(crib, found, asked, begun))
    response.headers[RUN_HEADER] = begun.run_id
    return response


async def _agent(crib: ActingCrib, name: str) -> ToolRevision:
    try:
        return await agent_of(crib, name)
    except UnknownModel:
        msg = f"there is no agent {name!r}, or the key may not execute it; GET /api/v1/agents lists the agents"
        raise NotFound(msg) from None
