"""Routes of executions of agents (start, follow, continue) and of conversations (list, read, change, delete).

Every execution is a run.
"""

from typing import Annotated, Any, Final, TypeAlias

from fastapi import Header, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from toolcrib.contracts import (
    AgentImplementation,
    Contract,
    Conversation,
    ConversationStatus,
    ConversationTurn,
    JsonObject,
    NotFound,
)
from toolcrib.core.runs import BEGINNING
from toolcrib.interfaces.server.agents.agents import find_agent
from toolcrib.interfaces.server.http.caller_rights import Caller, CribDep, run_of
from toolcrib.interfaces.server.http.document import RUN_STREAM
from toolcrib.interfaces.server.http.requests import Routes
from toolcrib.interfaces.server.http.streaming import start_stream
from toolcrib.interfaces.server.queries import After, Filter, Limit, Sort, add_queries, conditions, to_page
from toolcrib.interfaces.server.views.agent_views import AskBody, ContinueBody
from toolcrib.interfaces.server.views.base import PageView
from toolcrib.interfaces.server.views.run_views import AgentAnswer, Answers

agent_runs_router = Routes(tags=("agents",))

LastEventId: TypeAlias = Annotated[
    str | None, Header(max_length=1000, description="Id of the last message that was received.")
]

_WAITS: Final[dict[int | str, dict[str, Any]]] = {202: {"model": AgentAnswer}}


@agent_runs_router.post("/ai/agents/{name}/execute", responses=_WAITS)
async def execute_agent(name: str, body: AskBody, crib: CribDep, caller: Caller, answers: Answers) -> AgentAnswer:
    """Ask an agent, or send client results; responds when the run has ended or waits, or at once if it is durable."""
    agent = await find_agent(crib, caller, name)
    implementation = agent.definition.implementation
    if isinstance(implementation, AgentImplementation) and implementation.durable:
        return answers.to_accepted(await crib.executions.submit(name, body))
    return answers.standing(await crib.executions.execute(name, body))


@agent_runs_router.post("/ai/agents/{name}/execute/durable", status_code=202)
async def execute_agent_durably(
    name: str, body: AskBody, crib: CribDep, caller: Caller, answers: Answers
) -> AgentAnswer:
    """The same, but responds at once: the run is in the journal, and continues even if this server stops."""
    await find_agent(crib, caller, name)
    return answers.to_accepted(await crib.executions.submit(name, body))


@agent_runs_router.post("/ai/agents/{name}/execute/stream", response_class=StreamingResponse, responses=RUN_STREAM)
async def execute_agent_streaming(
    name: str, body: AskBody, crib: CribDep, caller: Caller, last_event_id: LastEventId = None
) -> StreamingResponse:
    """The same as server-sent events; a client that is disconnected continues at `/executions/{run_id}/stream`.

    The header `Location` names that path. The run continues after the client has left. A client that sends results
    to a run that it follows sends the id of its last message as `Last-Event-ID`, and gets the messages after it.
    """
    await find_agent(crib, caller, name)
    begun = await crib.executions.submit(name, body)
    stream = await start_stream(crib, begun.run_id, last_event_id or BEGINNING, drive=True)
    stream.headers["Location"] = f"/api/v1/executions/{begun.run_id}/stream"
    return stream


@agent_runs_router.get("/ai/agents/{name}/executions/{run_id}")
async def get_agent_execution(name: str, run_id: str, crib: CribDep, caller: Caller, answers: Answers) -> AgentAnswer:
    """The state of an execution, whether it is active, waits or has ended."""
    run = await run_of(crib, caller, run_id)
    if run.request.tool_name != name.partition("@")[0]:
        msg = f"run {run_id!r} is of {run.request.tool_name!r}, not of {name!r}"
        raise NotFound(msg)
    return answers.to_answer(await crib.executions.respond(run_id))


@agent_runs_router.post("/ai/conversations/{conversation_id}/continue", responses=_WAITS)
async def continue_conversation(
    conversation_id: str, body: ContinueBody, crib: CribDep, answers: Answers
) -> AgentAnswer:
    """Send the next message of a conversation; responds when the agent has answered or waits."""
    continued = await crib.executions.continue_(conversation_id, body.message, context=body.context, files=body.files)
    return answers.standing(await crib.executions.respond(continued.run_id))


@agent_runs_router.get(
    "/executions/{run_id}/stream", tags=["executions"], response_class=StreamingResponse, responses=RUN_STREAM
)
async def stream_execution(
    run_id: str,
    crib: CribDep,
    after: Annotated[str, Query(max_length=1000, description="Id of the last message that was received.")] = BEGINNING,
    last_event_id: LastEventId = None,
) -> StreamingResponse:
    """What a run says and does as server-sent events, until it has ended or waits; `Last-Event-ID` re-attaches."""
    return await start_stream(crib, run_id, after if last_event_id is None else last_event_id)


router = Routes(prefix="/ai/conversations", tags=("conversations",))


class ConversationPage(PageView[Conversation]):
    """Conversations, newest first."""


class ConversationDetail(Contract):
    """A conversation with some of its turns, in order."""

    conversation: Conversation
    turns: tuple[ConversationTurn, ...]
    next: int | None
    """`after` of the next page."""


class ConversationChange(Contract):
    """What of a conversation is to be different; what is null or missing stays."""

    title: str | None = Field(default=None, max_length=200)
    status: ConversationStatus | None = None
    shared_context: JsonObject | None = None


add_queries(router, "conversations", ConversationPage)


@router.get("")
async def list_conversations(
    *,
    crib: CribDep,
    agent: str | None = None,
    status: ConversationStatus | None = None,
    everybody: Annotated[bool, Query(description="Those of all principals of the realm.")] = False,
    filter: Filter = None,
    sort: Sort = None,
    after: After = None,
    before: Annotated[str | None, Query(description="The same as `after`.")] = None,
    limit: Limit = 50,
) -> ConversationPage:
    """The caller's conversations, newest first."""
    page = await crib.queries.page(
        "conversations",
        filter=filter,
        sort=sort,
        after=after or before,
        limit=limit,
        everybody=everybody,
        where=conditions({"agent": agent, "status": status}),
    )
    return to_page(ConversationPage, page)


@router.get("/{conversation_id}")
async def get_conversation(
    conversation_id: str,
    crib: CribDep,
    after: Annotated[int, Query(ge=0, description="Only turns that come after this one.")] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> ConversationDetail:
    """A conversation with its turns."""
    found = await crib.conversations.get(conversation_id)
    turns = await crib.conversations.turns(conversation_id, after=after, limit=limit)
    more = after + limit if after + limit < found.turn_count else None
    return ConversationDetail(conversation=found, turns=tuple(turns), next=more)


@router.patch("/{conversation_id}")
async def change_conversation(conversation_id: str, body: ConversationChange, crib: CribDep) -> Conversation:
    """Set the title, the status or the variables of one's own conversation."""
    return await crib.conversations.change(
        conversation_id, title=body.title, status=body.status, shared_context=body.shared_context
    )


@router.delete("/{conversation_id}", status_code=204)
async def delete_conversation(conversation_id: str, crib: CribDep) -> Response:
    """Delete a conversation; the runs of its turns stay in the journal, for audit."""
    await crib.conversations.delete(conversation_id)
    return Response(status_code=204)
