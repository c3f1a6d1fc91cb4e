"""Routes of the OpenAI-compatible endpoint: models, chat completions and responses, under `/v1`.

Example:
    from openai import OpenAI

    client = OpenAI(base_url="http://127.0.0.1:8700/v1", api_key="tcb_...")
    client.chat.completions.create(model="desk", messages=[{"role": "user", "content": "Which deals has Acme?"}])
"""

import sys
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Final

import orjson
from fastapi import Response

from toolcrib.contracts import AgentImplementation, AgentResponse, Contract, Json, JsonObject, ToolRevision, Unavailable
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.server.http.caller_rights import CribDep
from toolcrib.interfaces.server.http.requests import LenientJsonRoute, Routes
from toolcrib.interfaces.server.http.streaming import event_stream
from toolcrib.interfaces.server.openai.agent_replies import (
    BegunRun,
    SpokenPiece,
    SpokenText,
    continue_after,
    listen,
    reply_of,
    response_id,
)
from toolcrib.interfaces.server.openai.agent_tasks import (
    agent_of,
    begin_chat,
    begin_response,
    check_wishes,
    may_execute,
    own_run,
    task_of,
)
from toolcrib.interfaces.server.openai.answer_formats import ChatFormat, ResponseFormat
from toolcrib.interfaces.server.openai.error_bodies import RUN_HEADER, failed_run
from toolcrib.interfaces.server.openai.request_bodies import (
    ChatBody,
    ResponsesBody,
    entries_of_chat,
    entries_of_input,
)

PREFIX: Final = "/v1"
router = Routes(tags=("openai",), route=LenientJsonRoute)

_STREAM: Final[dict[int | str, dict[str, Any]]] = {200: {"content": {"text/event-stream": {}}}}
_ALL: Final = sys.maxsize - 1
_ACTIVE: Final = frozenset({"queued", "running"})


class OpenAIError(Contract):
    """What went wrong, as OpenAI's clients read it."""

    message: str
    type: str
    param: str | None
    """Field of the request."""
    code: str | None


class OpenAIErrorView(Contract):
    """The body of each response of the endpoint with a status of 400 or more."""

    error: OpenAIError


ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": OpenAIErrorView} for status in (400, 401, 403, 404, 409, 413, 429, 500)
}


@router.get("/models", response_class=Response)
async def list_agents_as_models(crib: CribDep) -> Response:
    """The agents that the key may execute."""
    await crib.authorize(newest=True)
    page = await crib.listing.page(limit=_ALL, facets={"kind": "agent"}, fits=lambda agent: may_execute(crib, agent))
    return _json({"object": "list", "data": [_model(agent) for agent in page.items]})


@router.get("/models/{model}", response_class=Response)
async def get_agent_as_model(model: str, crib: CribDep) -> Response:
    """An agent that the key may execute."""
    return _json(_model(await agent_of(crib, model)))


@router.post("/chat/completions", response_class=Response, responses=_STREAM)
async def create_chat_completion(body: ChatBody, crib: CribDep) -> Response:
    """Ask an agent; the messages before the last one are its context. With `stream`, as server-sent events."""
    agent = await agent_of(crib, body.model)
    await check_wishes(crib, agent, body)
    begun = await begin_chat(crib, agent, task_of(entries_of_chat(body)))
    form = ChatFormat(begun.run_id, body.model, int(crib.clock.now().timestamp()))
    if body.stream:
        spoken = _spoken(agent)
        pieces, state = await _listen(crib, begun, spoken)
        if reply_of(state).finish == "error":
            await pieces.aclose()
            return failed_run(state)
        usage = body.stream_options is not None and bool(body.stream_options.include_usage)
        return _stream(form.stream(crib, spoken, pieces, usage=usage), begun)
    reply = reply_of(await _drive(crib, begun.run_id))
    return failed_run(reply.state) if reply.finish == "error" else _json(form.completion(reply), begun)


@router.post("/responses", response_class=Response, responses=_STREAM)
async def create_response(body: ResponsesBody, crib: CribDep) -> Response:
    """Ask an agent; a stored response is a turn of a conversation. With `stream`, as server-sent events."""
    agent = await agent_of(crib, body.model)
    await check_wishes(crib, agent, body)
    begun = await begin_response(crib, agent, task_of(entries_of_input(body)), body)
    form = ResponseFormat(
        begun,
        body.model,
        int(crib.clock.now().timestamp()),
        previous=body.previous_response_id,
        metadata=body.metadata,
    )
    if body.stream:
        spoken = _spoken(agent)
        pieces, state = await _listen(crib, begun, spoken)
        return _stream(form.stream(crib, state, spoken, pieces), begun)
    if body.background:
        return _json(_response_of(form, await crib.executions.respond(begun.run_id)), begun)
    return _json(form.finished(reply_of(await _drive(crib, begun.run_id))), begun)


@router.get("/responses/{response}", response_class=Response)
async def get_openai_response(response: str, crib: CribDep) -> Response:
    """A response as its run stands."""
    return await _current(crib, response)


@router.post("/responses/{response}/cancel", response_class=Response)
async def cancel_openai_response(response: str, crib: CribDep) -> Response:
    """Cancel the run of a response; one that has ended stays as it is."""
    run = await own_run(crib, response)
    if not run.ended:
        await crib.cancel(run.run_id)
    return await _current(crib, response)


async def _current(crib: ActingCrib, response: str) -> Response:
    run = await own_run(crib, response)
    events = 0 if response == response_id(run.run_id) else int(response.rpartition("_")[2])
    form = ResponseFormat(BegunRun(run.run_id, events), run.request.tool_name, int(run.created_at.timestamp()))
    return _json(_response_of(form, await crib.executions.respond(run.run_id)))


def _response_of(form: ResponseFormat, state: AgentResponse) -> JsonObject:
    return form.unfinished(state) if state.status in _ACTIVE else form.finished(reply_of(state))


async def _drive(crib: ActingCrib, run_id: str) -> AgentResponse:
    """Drive a run until it has ended or waits; one for which this process lacks something stays queued."""
    try:
        told = (await crib.resume(run_id)).warnings
    except Unavailable as lack:
        told = (str(lack),)
    state = await crib.executions.respond(run_id)
    more = [warning for warning in told if warning not in state.warnings]
    return state.model_copy(update={"warnings": (*state.warnings, *more)})


async def _listen(
    crib: ActingCrib, begun: BegunRun, spoken: SpokenText
) -> tuple[AsyncGenerator[SpokenPiece | None], AgentResponse]:
    """What the agent says, which is heard from now on, and the state of the run as it has begun."""
    pieces = listen(crib, begun, spoken)
    first = await anext(pieces, None)
    return continue_after(first, pieces), await crib.executions.respond(begun.run_id)


def _stream(messages: AsyncIterator[str], begun: BegunRun) -> Response:
    response = event_stream(messages)
    response.headers[RUN_HEADER] = begun.run_id
    return response


def _spoken(agent: ToolRevision) -> SpokenText:
    implementation = agent.definition.implementation
    return SpokenText(shown=isinstance(implementation, AgentImplementation) and implementation.answer_schema is None)


def _model(agent: ToolRevision) -> JsonObject:
    return {
        "id": agent.name,
        "object": "model",
        "created": int(agent.created_at.timestamp()),
        "owned_by": "toolcrib",
        "description": agent.definition.description,
    }


def _json(body: Json, begun: BegunRun | None = None) -> Response:
    headers = {} if begun is None else {RUN_HEADER: begun.run_id}
    return Response(orjson.dumps(body), media_type="application/json", headers=headers)
