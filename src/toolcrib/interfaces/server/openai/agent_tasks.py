"""What a request asks of an agent, and the run that does it.

A client of chat completions keeps the conversation itself, and sends all of it each time: the last message is the
message of a fresh run without a conversation, and those before it are its context. A stored response is a turn of a
conversation. Messages of the system never reach the agent's own prompt: they are a variable among the user's.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any, Final, NamedTuple

from pydantic_core import from_json

from toolcrib.contracts import (
    AgentImplementation,
    AgentRequest,
    Conflict,
    FileInput,
    InvalidInput,
    Json,
    JsonObject,
    NotFound,
    PermissionDenied,
    ReturnedCall,
    Run,
    ToolRevision,
)
from toolcrib.core.policy import is_in_service, permits
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.server.openai.agent_replies import (
    BegunRun,
    outcome_of,
    run_and_call_of,
    run_of_response,
    waiting_run,
)
from toolcrib.interfaces.server.openai.content_files import newest_files
from toolcrib.interfaces.server.openai.error_bodies import UnknownModel, UnknownResponse
from toolcrib.interfaces.server.openai.request_bodies import ChatBody, Entry, ResponsesBody, refuse

INSTRUCTIONS: Final = "client_instructions"
"""Variable with the messages of the system."""
EARLIER: Final = "earlier_messages"
"""Variable with the messages before the last one."""


class AgentTask(NamedTuple):
    """What a request asks: a message, or results of client calls."""

    message: str = ""
    context: JsonObject = {}  # noqa: RUF012 - never changed
    results: tuple[Entry, ...] = ()
    last_reply: str = ""
    """What the assistant said right before the message."""
    files: tuple[FileInput, ...] = ()
    """Of the message, and of the newest of those before it."""


def may_execute(crib: ActingCrib, agent: ToolRevision) -> bool:
    """Whether an agent is a model for a principal: available as a tool, in service (no draft), and granted."""
    definition = agent.definition
    return (
        isinstance(definition.implementation, AgentImplementation)
        and is_in_service(agent)
        and "tool" in definition.available_as
        and permits(crib.principal.grants, definition.security())
    )


async def agent_of(crib: ActingCrib, model: str) -> ToolRevision:
    """The agent that a client calls a model.

    Raises:
        UnknownModel: There is none, or the principal may not execute it; the words are the same.
    """
    try:
        found = await crib.agents.get(model)
    except (NotFound, InvalidInput):
        found = None
    if found is None or not may_execute(crib, found):
        msg = f"The model {model!r} does not exist or you do not have access to it. GET /v1/models lists the models."
        raise UnknownModel(msg)
    return found


async def check_wishes(crib: ActingCrib, agent: ToolRevision, body: ChatBody | ResponsesBody) -> None:
    """Refuse what the agent cannot do: call functions that it does not have, or answer in another format.

    Raises:
        InvalidInput: It is asked to.
    """
    kind, schema = body.answer_format()
    implementation = agent.definition.implementation
    own = implementation.answer_schema if isinstance(implementation, AgentImplementation) else None
    if kind != "text" and own is None:
        refuse(f"agent {agent.name!r} answers in text; ask for no other format, or give it a response_schema", "format")
    lacking = sorted(set(schema.get("required") or ()) - set((own or {}).get("properties") or ()))
    if kind == "json_schema" and lacking:
        msg = f"the answers of agent {agent.name!r} have no {lacking[0]!r}; its response_schema decides what they have"
        refuse(msg, "format")
    if names := body.tool_names():
        known = await _client_tools(crib, agent)
        other = next((name for name in names if name not in known), None)
        if other is not None:
            has = f"its client tools are: {', '.join(sorted(known))}" if known else "it has no client tools"
            refuse(f"agent {agent.name!r} cannot call {other[:100]!r}; {has}. Leave the others out of tools", "tools")


def task_of(entries: Sequence[Entry]) -> AgentTask:
    """What the messages of a request ask.

    Raises:
        InvalidInput: The last one is neither a message of the user nor a result.
    """
    said = [entry for entry in entries if entry.kind != "instructions"]
    if not said or said[-1].kind not in {"user", "result"}:
        last = f"of kind {said[-1].kind!r}" if said else "missing"
        refuse(f"the last message is {last}; end with a message of the user, or with results of tools", "messages")
    if said[-1].kind == "result":
        return AgentTask(results=tuple(reversed(list(takewhile(_is_result, reversed(said))))))
    *earlier, last = said
    if not last.text.strip():
        refuse("the last message is empty; send a text", "messages")
    told = "\n\n".join(entry.text for entry in entries if entry.kind == "instructions" and entry.text)
    context: JsonObject = {INSTRUCTIONS: told} if told else {}
    if earlier:
        context[EARLIER] = [_earlier(entry) for entry in earlier]
    replied = earlier[-1].text if earlier and earlier[-1].kind == "assistant" else ""
    files = newest_files([entry.files for entry in said])
    return AgentTask(last.text, context, last_reply=replied, files=tuple(files))


def _earlier(entry: Entry) -> JsonObject:
    """A message as the variable has it: its files are counted, because their bytes come with the last message."""
    told: JsonObject = {"role": entry.kind, "text": entry.text}
    return {**told, "files": len(entry.files)} if entry.files else told


async def begin_chat(crib: ActingCrib, agent: ToolRevision, task: AgentTask) -> BegunRun:
    """Begin a run for the last message of a chat, or give a waiting run the results.

    A chat has no conversation, so none of its runs waits for an answer: what a tool asks, the agent asks.

    Raises:
        InvalidInput: A result names no call of the principal.
        Conflict: A call does not wait for a result.
    """
    if task.results:
        return await _give_results(crib, agent, task.results)
    run_id = waiting_run(task.last_reply)
    run = None if run_id is None else await outermost_run(crib, agent, run_id)
    if run is not None and run.ended:
        told = outcome_of(await crib.executions.respond(run.run_id))
        earlier: list[JsonObject] = list(task.context[EARLIER])
        earlier[-1] = {**earlier[-1], "text": told}  # its note says that the run waits, which is no longer true
        task = task._replace(context={**task.context, EARLIER: earlier})
    return await _begin_without_conversation(crib, agent, task)


async def begin_response(crib: ActingCrib, agent: ToolRevision, task: AgentTask, body: ResponsesBody) -> BegunRun:
    """Begin a turn of a conversation, or give a waiting run the answer or the results.

    Raises:
        UnknownResponse: The previous response is not one of the principal and this agent.
        InvalidInput: It was not stored, or a result names no call of the principal.
        NotFound: There is no such conversation.
        Conflict: A turn of the conversation is not over, or a later response has continued it.
    """
    if task.results:
        return await _give_results(crib, agent, task.results)
    conversation_id, before = body.conversation_id(), None
    if body.previous_response_id is not None:
        before = await _previous(crib, agent, body.previous_response_id)
        conversation_id = before.request.conversation_id
    waits = before is not None and before.status == "awaiting_answer"
    if before is not None and not waits:
        await _check_continuable(crib, before, body.previous_response_id or "")
    elif before is None and conversation_id is None and body.store is False:
        return await _begin_without_conversation(crib, agent, task)
    run_id = before.run_id if before is not None and waits else None
    request = AgentRequest(
        message=task.message,
        context={} if waits else task.context,
        files=task.files,
        conversation_id=conversation_id,
        run_id=run_id,
    )
    begun = await crib.executions.submit(agent.name if waits else agent.ref, request)
    return BegunRun(begun.run_id, before.events if before is not None and waits else 0)


async def own_run(crib: ActingCrib, identifier: str) -> Run:
    """The run of a response that the principal may act on.

    Raises:
        UnknownResponse: There is none.
    """
    run_id = run_of_response(identifier)
    try:
        run = None if run_id is None else await crib.executions.run_for(run_id, await crib.authorize(), "execute")
    except (NotFound, PermissionDenied):
        run = None
    if run is None or run.request.kind != "agent":
        msg = f"there is no response {identifier[:100]!r} for this key; begin without previous_response_id"
        raise UnknownResponse(msg)
    return run


async def _previous(crib: ActingCrib, agent: ToolRevision, identifier: str) -> Run:
    run = await own_run(crib, identifier)
    if run.request.tool_name != agent.name:
        msg = f"response {identifier!r} is of {run.request.tool_name!r}, not of {agent.name!r}; continue with its model"
        refuse(msg, "previous_response_id")
    return run


async def _check_continuable(crib: ActingCrib, run: Run, identifier: str) -> None:
    conversation_id = run.request.conversation_id
    if conversation_id is None:
        msg = f"response {identifier!r} was not stored; send its messages again, or begin with store left out"
        refuse(msg, "previous_response_id")
    conversation = await crib.conversations.get(conversation_id)
    if (run.request.turn or 0) < conversation.turn_count:
        msg = (
            f"a later response has continued {identifier!r}; continue the last one of conversation "
            f"{conversation_id!r}, or send the conversation instead of previous_response_id"
        )
        raise Conflict(msg)


async def _begin_without_conversation(crib: ActingCrib, agent: ToolRevision, task: AgentTask) -> BegunRun:
    arguments: JsonObject = {"message": task.message, **({"context": task.context} if task.context else {})}
    return BegunRun(await crib.submit(agent.ref, arguments, files=task.files))


async def _give_results(crib: ActingCrib, agent: ToolRevision, results: Sequence[Entry]) -> BegunRun:
    """Return results to the run whose client calls they are of."""
    returned: list[ReturnedCall] = []
    run: Run | None = None
    for entry in results:
        found = run_and_call_of(entry.call_id)
        run = None if found is None else await outermost_run(crib, agent, found[0])
        if found is None or run is None:
            msg = f"agent {agent.name!r} has no call {entry.call_id[:200]!r}; send the id as its tool call had it"
            refuse(msg, "tool_call_id")
        returned.append(ReturnedCall(call_id=found[1], run_id=found[0], output=_output_of(entry.text)))
    request = AgentRequest(run_id=returned[0].run_id, tool_results=tuple(returned))
    state = await crib.executions.submit(agent.name, request)
    return BegunRun(state.run_id, 0 if run is None else run.events)


async def outermost_run(crib: ActingCrib, agent: ToolRevision, run_id: str) -> Run | None:
    """The run of the agent in which a run is nested, or which it is; null if the principal may not act on it."""
    try:
        who = await crib.authorize()
        run = await crib.executions.run_for(run_id, who, "execute")
        while run.request.parent_run_id is not None:
            run = await crib.executions.run_for(run.request.parent_run_id, who, "execute")
    except (NotFound, PermissionDenied):
        return None
    return run if run.request.tool_name == agent.name else None


async def _client_tools(crib: ActingCrib, agent: ToolRevision) -> set[str]:
    realm = crib.principal.realm
    named = [found.tool for found in await crib.agents.tools(agent.ref) if found.content_hash is not None]
    tools = [crib.registry.find_by_ref(realm, reference) for reference in named]
    return {tool.name for tool in tools if tool is not None and tool.definition.runs_on == "client"}


def _output_of(text: str) -> Json:
    """The output that a result has as text: JSON is read as what it means."""
    try:
        output: Any = from_json(text, allow_inf_nan=False)
    except ValueError:
        return text
    return output


def _is_result(entry: Entry) -> bool:
    return entry.kind == "result"
