"""Routes that ask agents, and tell how an execution stands. Every execution is a run like all others."""

from typing import Annotated, Any, Final, TypeAlias

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse

from toolcrib.contracts import AgentImplementation, NotFound
from toolcrib.core.runs import BEGINNING
from toolcrib.interfaces.server.agents.agents import find_agent
from toolcrib.interfaces.server.http.context_part import Caller, House, run_of
from toolcrib.interfaces.server.http.parsing import JsonRoute
from toolcrib.interfaces.server.http.streaming import narrated
from toolcrib.interfaces.server.views.agent_views import AskBody, ContinueBody
from toolcrib.interfaces.server.views.answers import AgentAnswer, Answers

router = APIRouter(route_class=JsonRoute, tags=["agents"])

LastEventId: TypeAlias = Annotated[
    str | None, Header(max_length=1000, description="Id of the last message that was received.")
]

_WAITS: Final[dict[int | str, dict[str, Any]]] = {202: {"model": AgentAnswer}}
_STREAM: Final[dict[int | str, dict[str, Any]]] = {200: {"content": {"text/event-stream": {}}}}


@router.post("/ai/agents/{name}/execute", responses=_WAITS)
async def execute_agent(name: str, body: AskBody, crib: House, caller: Caller, answers: Answers) -> AgentAnswer:
    """Ask an agent, or bring what its client did, and answer when it has ended or waits; a durable one at once."""
    agent = await find_agent(crib, caller, name)
    implementation = agent.definition.implementation
    if isinstance(implementation, AgentImplementation) and implementation.durable:
        return answers.accepted(await crib.executions.submit(name, body, principal=caller))
    return answers.standing(await crib.executions.execute(name, body, principal=caller))


@router.post("/ai/agents/{name}/execute/durable", status_code=202)
async def execute_agent_durably(name: str, body: AskBody, crib: House, caller: Caller, answers: Answers) -> AgentAnswer:
    """The same, answered at once: the run is in the journal and goes on by itself, whatever happens to this server."""
    await find_agent(crib, caller, name)
    return answers.accepted(await crib.executions.submit(name, body, principal=caller))


@router.post("/ai/agents/{name}/execute/stream", response_class=StreamingResponse, responses=_STREAM)
async def execute_agent_streaming(
    name: str, body: AskBody, crib: House, caller: Caller, last_event_id: LastEventId = None
) -> StreamingResponse:
    """The same as server-sent events, as it goes on; who is cut off re-attaches at `/executions/{run_id}/stream`.

    The header `Location` names that path. The run goes on also if nobody listens any more. Who brings results to a run
    that it has followed sends the id of its last message as `Last-Event-ID`, and is told what follows.
    """
    await find_agent(crib, caller, name)
    begun = await crib.executions.submit(name, body, principal=caller)
    stream = await narrated(crib, begun.run_id, last_event_id or BEGINNING, caller=caller, drive=True)
    stream.headers["Location"] = f"/api/v1/executions/{begun.run_id}/stream"
    return stream


@router.get("/ai/agents/{name}/executions/{run_id}")
async def get_agent_execution(name: str, run_id: str, crib: House, caller: Caller, answers: Answers) -> AgentAnswer:
    """How an execution stands, whether it goes on, waits or has ended."""
    run = await run_of(crib, caller, run_id)
    if run.request.tool_name != name.partition("@")[0]:
        msg = f"run {run_id!r} is of {run.request.tool_name!r}, not of {name!r}"
        raise NotFound(msg)
    return answers.shown(await crib.executions.respond(run_id, principal=caller))


@router.post("/ai/conversations/{conversation_id}/continue", responses=_WAITS)
async def continue_conversation(
    conversation_id: str, body: ContinueBody, crib: House, caller: Caller, answers: Answers
) -> AgentAnswer:
    """Send a conversation its next message, and answer when the agent has answered or waits."""
    return answers.standing(await crib.executions.continue_(conversation_id, body.message, principal=caller))


@router.get("/executions/{run_id}/stream", response_class=StreamingResponse, responses=_STREAM)
async def stream_execution(
    run_id: str,
    crib: House,
    caller: Caller,
    after: Annotated[str, Query(max_length=1000, description="Id of the last message that was received.")] = BEGINNING,
    last_event_id: LastEventId = None,
) -> StreamingResponse:
    """What a run says and does as server-sent events, until it has ended or waits; `Last-Event-ID` re-attaches."""
    return await narrated(crib, run_id, after if last_event_id is None else last_event_id, caller=caller)
