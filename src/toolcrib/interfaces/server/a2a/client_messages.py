"""Messages of clients: what begins a run, and what a waiting run is given.

A task that waits takes what it waits for: the answer of a question as text, or as data where the question has a schema;
`{"approved": true}` for a call that a person has to approve; `{"tool_results": […]}` for calls of the client.
"""

from base64 import b64encode
from typing import Any, Final, NamedTuple, cast

from a2a.types import Message
from a2a.utils.errors import ContentTypeNotSupportedError, InvalidParamsError, UnsupportedOperationError
from pydantic import ValidationError

from toolcrib.contracts import AgentRequest, FileInput, Json, JsonObject, ReturnedCall, Run, ToolRevision
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.server.openai.agent_replies import BegunRun, as_json
from toolcrib.interfaces.server.openai.content_files import file_from
from toolcrib.kinds.a2a.message_parts import data_of

_APPROVAL: Final = 'send a data part {"approved": true} or {"approved": false, "reason": "…"}, with "approval_id"'
_RESULTS: Final = 'send a data part {"tool_results": [{"call_id": "…", "output": …}]}'


class _Content(NamedTuple):
    """What a message says."""

    texts: list[str]
    data: list[Json]
    files: tuple[FileInput, ...]


async def deliver(
    crib: ActingCrib, agent: ToolRevision, message: Message, run: Run | None, *, self_approval: bool
) -> BegunRun:
    """Begin a run with a message, or give a run what it waits for.

    Args:
        crib: Acts as the client's principal.
        agent: Whom it asks.
        message: What it says.
        run: The run of the task that the message names.
        self_approval: Whether the principal may decide on the calls of its own runs.

    Raises:
        UnsupportedOperationError: The task does not wait.
        InvalidParamsError: The message has not what it waits for.
        ContentTypeNotSupportedError: The message has the address of a file, or a file in an answer.
    """
    content = texts, data, files = _contents(message)
    if run is None:
        return await _begin(crib, agent, message, content)
    if files:
        raise ContentTypeNotSupportedError(message="a task that waits takes no files; send text or data")
    begun = BegunRun(run.run_id, run.events)
    match run.status:
        case "awaiting_answer":
            answer = "\n\n".join(texts) or as_json(data[0])
            await crib.executions.submit(agent.name, AgentRequest(message=answer, run_id=run.run_id))
        case "awaiting_approval":
            await _decide(crib, run, data, self_approval=self_approval)
        case "awaiting_client":
            await _give_results(crib, agent, run, data)
        case _ if run.ended:
            msg = f"task {run.run_id} has ended; send the message with its contextId alone, to begin the next task"
            raise UnsupportedOperationError(message=msg)
        case _:
            msg = f"task {run.run_id} waits for no message; send it when the task needs input, or cancel the task"
            raise UnsupportedOperationError(message=msg)
    return begun


async def _begin(crib: ActingCrib, agent: ToolRevision, message: Message, content: _Content) -> BegunRun:
    """Begin a run; data with a `message` are all arguments of the agent."""
    texts, data, files = content
    asked: dict[str, Any] = {"conversation_id": message.context_id or None, "files": files}
    if not texts and isinstance(data[0], dict) and "message" in data[0]:
        request = AgentRequest(params=cast("JsonObject", data[0]), **asked)
    else:
        request = AgentRequest(message="\n\n".join([*texts, *map(as_json, data)]), **asked)
    return BegunRun((await crib.executions.submit(agent.ref, request)).run_id)


def _contents(message: Message) -> _Content:
    """The texts, the data and the files of a message.

    Raises:
        ContentTypeNotSupportedError: It has another part.
        InvalidParamsError: It is empty.
    """
    texts: list[str] = []
    data: list[Json] = []
    files: list[FileInput] = []
    for place, part in enumerate(message.parts):
        match part.WhichOneof("content"):
            case "text":
                texts += [part.text] if part.text.strip() else []
            case "data":
                data += data_of([part])
            case "raw":
                bare = b64encode(part.raw).decode()
                files.append(file_from(bare, f"parts/{place}", name=part.filename, media_type=part.media_type))
            case other:
                msg = f"parts/{place} is of kind {other or 'unknown'!r}; agents read text, data and the bytes of files"
                raise ContentTypeNotSupportedError(message=msg)
    if not texts and not data:
        raise InvalidParamsError(message="the message is empty; send a part with text")
    return _Content(texts, data, tuple(files))


async def _decide(crib: ActingCrib, run: Run, data: list[Json], *, self_approval: bool) -> None:
    given = _object_with(data, "approved")
    open_ids = [approval.approval_id for approval in (await crib.executions.respond(run.run_id)).approvals]
    approval_id = (given or {}).get("approval_id", open_ids[0] if len(open_ids) == 1 else None)
    if given is None or not isinstance(given["approved"], bool) or approval_id not in open_ids:
        raise InvalidParamsError(message=f"task {run.run_id} waits for approvals {', '.join(open_ids)}: {_APPROVAL}")
    reason = given.get("reason")
    await crib.approvals.decide(
        str(approval_id),
        approve=given["approved"],
        reason=reason if isinstance(reason, str) else None,
        allow_self=self_approval,
    )


async def _give_results(crib: ActingCrib, agent: ToolRevision, run: Run, data: list[Json]) -> None:
    given = _object_with(data, "tool_results")
    results: Any = None if given is None else given["tool_results"]
    if not isinstance(results, list) or not results:
        raise InvalidParamsError(message=f"task {run.run_id} waits for its client's calls: {_RESULTS}")
    try:
        returned = tuple(ReturnedCall.model_validate(each) for each in cast("list[Any]", results))
    except ValidationError as problem:
        first = problem.errors()[0]
        told = f"tool_results: {'/'.join(map(str, first['loc']))}: {first['msg']}; {_RESULTS}"
        raise InvalidParamsError(message=told) from None
    await crib.executions.submit(agent.name, AgentRequest(run_id=run.run_id, tool_results=returned))


def _object_with(data: list[Json], name: str) -> JsonObject | None:
    objects = (cast("JsonObject", each) for each in data if isinstance(each, dict))
    return next((each for each in objects if name in each), None)
