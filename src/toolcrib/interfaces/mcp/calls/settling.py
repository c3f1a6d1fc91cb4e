"""Runs of MCP clients until they end: what they ask is asked at the client, or told.

A run that asks a client for what it does not have (a model, roots) is cancelled, because nobody else would know of it;
a question to a person waits, as it can be answered elsewhere.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

from toolcrib.contracts import JsonObject, NotFound, PermissionDenied, ToolcribError, ToolRevision
from toolcrib.core.runs import Result
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.mcp.calls.waiting import AnswerForm, answer, explain_wait, forms_of, run_of_state, state_of
from toolcrib.interfaces.mcp.resources import OPEN

Context: TypeAlias = ServerRequestContext[Any, Any]

Resume: TypeAlias = Callable[[str], Awaitable[Result | JsonObject]]

_NEEDS: Final[Mapping[str, str]] = {"person": "elicitation", "client_model": "sampling", "client_roots": "roots"}
"""The capability of a client that answers, by whom is asked."""


@dataclass(frozen=True, slots=True)
class StillWaiting:
    """A run that the client cannot carry on now."""

    text: str
    """What the client is told."""
    result: Result


async def carry_on(crib: ActingCrib, tool: ToolRevision, state: str) -> Result:
    """The run that the state of a request names, as it stands.

    Raises:
        MCPError: It names no run of the tool that the client may carry on.
    """
    run_id = run_of_state(state)
    try:
        run = None if run_id is None else await crib.executions.run_for(run_id, crib.principal, "execute")
    except (NotFound, PermissionDenied):
        run = None
    if run is None or run_id is None or run.request.tool_name != tool.name:
        msg = "request_state names no run of this tool; leave it out to make a new call"
        raise MCPError(types.INVALID_PARAMS, msg)
    return await crib.resume(run_id)


async def settle(
    ctx: Context,
    crib: ActingCrib,
    result: Result,
    given: dict[str, types.InputResponse],
    *,
    self_approval: bool,
    resume: Resume,
) -> Result | types.InputRequiredResult | StillWaiting | JsonObject:
    """A run after it got the answers that are given, and the client was asked what else it asks.

    Args:
        ctx: The request.
        crib: Acts as the client's principal.
        result: The run.
        given: Answers by the keys of their requests; those that are used are taken out.
        self_approval: Whether the client may decide on its own calls.
        resume: Goes on with the run, by its id; returns the run, or the task that it has become.

    Raises:
        MCPError: An answer is refused, or the client has no model or roots that the run asks for.
    """
    modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    while result.status in OPEN:
        forms = await forms_of(crib, result.run_id, self_approval=self_approval)
        answered = [(form, given.pop(form.request_key)) for form in forms if form.request_key in given]
        askable = [] if answered else [form for form in forms if can_ask(ctx, form)]
        if not answered and not askable:
            return await _unasked(ctx, crib, result, forms)
        if askable and modern:
            requests = {form.request_key: form.request() for form in askable}
            return types.InputRequiredResult(input_requests=requests, request_state=state_of(result.run_id, askable[0]))
        answered = answered or [(form, await _ask(ctx, form)) for form in askable]
        if not await answer_forms(crib, result.run_id, answered, modern=modern):
            return StillWaiting(await explain_wait(crib, result), result)
        resumed = await resume(result.run_id)
        if isinstance(resumed, dict):
            return resumed
        result = resumed
    return result


async def answer_forms(
    crib: ActingCrib, run_id: str, answered: list[tuple[AnswerForm, types.InputResponse]], *, modern: bool
) -> bool:
    """Leave answers; false if a form was closed. What got a response to something else is asked for again."""
    for form, given in answered:
        try:
            left = await answer(crib, run_id, form, given)
        except ToolcribError as problem:
            raise MCPError(types.INVALID_PARAMS, str(problem)) from problem
        if not left and (not modern or form.answer_in(given) is not None):
            return False
    return True


async def _ask(ctx: Context, form: AnswerForm) -> types.InputResponse:
    """Ask a client of an older revision, during the call."""
    request = form.request()
    kinds: Mapping[str, type[BaseModel]] = {
        "person": types.ElicitResult,
        "client_model": types.CreateMessageResult,
        "client_roots": types.ListRootsResult,
    }
    metadata = ServerMessageMetadata(related_request_id=ctx.request_id)
    found: Any = await ctx.session.send_request(request, kinds[form.asked_of], metadata=metadata)
    return found


async def _unasked(ctx: Context, crib: ActingCrib, result: Result, forms: Sequence[AnswerForm]) -> StillWaiting:
    """What is told of a run that asks nothing that the client could answer."""
    missing = sorted({_NEEDS[form.asked_of] for form in forms if form.asked_of != "person"})
    if not missing:
        return StillWaiting(await explain_wait(crib, result), result)
    msg = f"the tool needs {', '.join(missing)} of its client, which does not declare it; use a client that has it"
    await crib.cancel(result.run_id, reason=msg)
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return StillWaiting(msg, result)
    data: dict[str, Any] = {"requiredCapabilities": {name: {} for name in missing}}
    raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, msg, data)


def can_ask(ctx: Context, form: AnswerForm) -> bool:
    """Whether the client answers such a form."""
    capabilities = ctx.session.client_capabilities
    declares = capabilities is not None and getattr(capabilities, _NEEDS[form.asked_of]) is not None
    return declares and (ctx.protocol_version in MODERN_PROTOCOL_VERSIONS or ctx.session.can_send_request)
