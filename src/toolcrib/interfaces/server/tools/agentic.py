"""Routes of agentic tools: definitions, prompts, exports and executions; and a short list of all tools."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import orjson
from fastapi import Body, Query, Response

from toolcrib.agents.model.json_answers import read_object
from toolcrib.contracts import (
    AgenticImplementation,
    AgenticMode,
    AgenticStatus,
    DriftReport,
    InvalidDefinition,
    Json,
    JsonObject,
    LLMStep,
    ModelFinished,
    ModelStarted,
    NotFound,
    Principal,
    PromptDifference,
    PromptTest,
    Run,
    RunEvent,
    RunStatus,
    TextProposal,
    ToolDefinition,
    ToolRevision,
    ToolStep,
    Trace,
)
from toolcrib.contracts.tools.rendered_prompts import PromptPlaceholders, RenderedPrompt
from toolcrib.core.export import ExportFormat
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.server.http.caller_rights import (
    Author,
    Caller,
    CribDep,
    DefinitionWriter,
    demand_run,
    demand_sight,
    demand_write,
    run_of,
)
from toolcrib.interfaces.server.http.document import REVISION
from toolcrib.interfaces.server.http.errors import apply_patch
from toolcrib.interfaces.server.http.requests import (
    IfMatch,
    Routes,
    expected_revision,
    name_revision,
    refuse_new_name,
)
from toolcrib.interfaces.server.queries import After, Filter, Limit, Sort, add_queries, conditions, to_page
from toolcrib.interfaces.server.views.agent_views import (
    AgenticBody,
    AgenticPage,
    AgenticView,
    AiToolPage,
    AiToolView,
    ExecutionDetail,
    ExecutionPage,
    ExecutionView,
    LLMCallView,
    PromptHistory,
    ProposalBody,
    RegenerateBody,
    RemovalView,
    RollBackBody,
    TestPromptBody,
    ToolCallView,
    ToolType,
    UnsavedPromptBody,
    remove_tool,
    type_of,
)
from toolcrib.interfaces.server.views.run_views import ListedStatus, listed_state
from toolcrib.interfaces.server.views.workflow_views import DOCUMENT, DocumentFormat, document_of
from toolcrib.llm import decode_messages, decode_response

router = Routes(prefix="/agentic-tools", tags=("agentic tools",))

_BY_RULE = Body(default_factory=RegenerateBody)


add_queries(router, "agentic-tools", AgenticPage, AgenticView.of_revision)


@router.get("")
async def list_agentic_tools(
    *,
    crib: CribDep,
    mode: AgenticMode | None = None,
    status: AgenticStatus | None = None,
    q: str = "",
    filter: Filter = None,
    sort: Sort = None,
    after: str = "",
    limit: Limit = 50,
) -> AgenticPage:
    """Agentic tools by name, page by page; `q` is looked for in names and descriptions."""

    def fits(tool: ToolRevision) -> bool:
        implementation = tool.definition.implementation
        if not isinstance(implementation, AgenticImplementation):
            return False
        text = f"{tool.name}\n{tool.definition.description}".lower()
        return mode in (None, implementation.mode) and status in (None, implementation.status) and q.lower() in text

    page = await crib.listing.query("agentic-tools", filter=filter, sort=sort, after=after, limit=limit, fits=fits)
    return to_page(AgenticPage, page, AgenticView.of_revision)


@router.post("", status_code=201)
async def create_agentic_tool(body: AgenticBody, author: Author, crib: CribDep, response: Response) -> AgenticView:
    """Store the first revision of a new tool; without a prompt it gets the default one."""

    async def complete(definition: ToolDefinition) -> ToolDefinition:
        return await _with_default_prompt(crib, definition)

    saved = await author.create(body.definition(), response, path=router.prefix, change="PATCH", complete=complete)
    return _to_view(saved, response)


@router.get("/{name}", responses=REVISION)
async def get_agentic_tool(name: str, crib: CribDep, caller: Caller, response: Response) -> AgenticView:
    """A tool as a call without a version gets it; the header `ETag` names the revision."""
    return _to_view(await _find(crib, caller, name), response)


@router.patch("/{name}")
async def change_agentic_tool(
    name: str,
    patch: JsonObject,
    *,
    author: Author,
    crib: CribDep,
    caller: Caller,
    response: Response,
    if_match: IfMatch = None,
) -> AgenticView:
    """Store a new revision that differs by a JSON Merge Patch (RFC 7396); a prompt that is null becomes the default.

    With `If-Match`, the change is refused if there is a newer revision; without it, if one was made
    while the patch was applied.
    """
    current = await _find(crib, caller, name)
    demand_write(caller, current.definition)
    fields = AgenticBody.project(_inside(current.definition), current.definition)
    body = apply_patch(AgenticBody, fields.model_dump(mode="json"), patch)
    refuse_new_name(current, body.name)
    definition = await _with_default_prompt(crib, body.definition(current.definition))
    return _to_view(await author.save(definition, after=expected_revision(if_match, current.revision)), response)


@router.delete("/{name}")
async def remove_agentic_tool(name: str, crib: CribDep, caller: Caller) -> RemovalView:
    """Remove a tool from the catalogue. Active runs keep their revision; saving it again restores it."""
    tool = await _find(crib, caller, name)
    demand_write(caller, tool.definition)
    return await remove_tool(crib, caller, tool)


@router.post("/test-prompt")
async def test_unsaved_prompt(body: UnsavedPromptBody, author: Author, crib: CribDep) -> PromptTest:
    """Test the prompt of a tool that is not saved; without a prompt, the default one. See `test-prompt` of a tool."""
    return await crib.prompts.test(await _unsaved(author, crib, body), body.params)


@router.post("/render-prompt")
async def render_unsaved_prompt(body: UnsavedPromptBody, author: Author, crib: CribDep) -> RenderedPrompt:
    """The first request that a tool which is not saved would send to its model. Nothing is sent."""
    return await crib.prompts.render(await _unsaved(author, crib, body), body.params)


@router.post("/{name}/test-prompt")
async def test_prompt(name: str, body: TestPromptBody, author: Author, crib: CribDep, caller: Caller) -> PromptTest:
    """Test the prompt with a sample input and with unsaved changes. The calls that the model requests are not made."""
    return await crib.prompts.test(await _changed(author, crib, caller, name, body), body.params)


@router.post("/{name}/render-prompt")
async def render_prompt(
    name: str, body: TestPromptBody, author: Author, crib: CribDep, caller: Caller
) -> RenderedPrompt:
    """The first request that a tool would send to its model, with unsaved changes and its length. Nothing is sent."""
    return await crib.prompts.render(await _changed(author, crib, caller, name, body), body.params)


@router.get("/{name}/placeholders")
async def list_placeholders(name: str, crib: CribDep, caller: Caller) -> PromptPlaceholders:
    """The placeholders that the prompt can use, with the present length of their values; reads reference data."""
    tool = await _find(crib, caller, name)
    demand_write(caller, tool.definition)
    return await crib.prompts.placeholders(tool.definition)


@router.post("/{name}/regenerate-prompt")
async def regenerate_prompt(
    name: str, crib: CribDep, caller: Caller, body: Annotated[RegenerateBody, _BY_RULE]
) -> TextProposal:
    """Propose a default prompt for the tool as it is now, with the difference and the reason. Nothing is stored."""
    demand_write(caller, (await _find(crib, caller, name)).definition)
    return await crib.prompts.regenerate(name, source=body.source)


@router.post("/{name}/regenerate-description")
async def regenerate_description(
    name: str, crib: CribDep, caller: Caller, body: Annotated[RegenerateBody, _BY_RULE]
) -> TextProposal:
    """Propose a text for parent agents. Nothing is stored."""
    demand_write(caller, (await _find(crib, caller, name)).definition)
    return await crib.prompts.describe(name, source=body.source)


@router.post("/{name}/accept-proposal")
async def accept_proposal(
    name: str, body: ProposalBody, crib: CribDep, caller: Caller, response: Response
) -> AgenticView:
    """Store a proposal, as it was made or edited, as a new revision."""
    demand_write(caller, (await _find(crib, caller, name)).definition)
    if body.tool != name:
        msg = f"the proposal is for tool {body.tool!r} and the path names {name!r}; send it to its own tool"
        raise InvalidDefinition(msg)
    return _to_view(await crib.prompts.accept(body), response)


@router.get("/{name}/revisions")
async def list_prompt_revisions(name: str, crib: CribDep, caller: Caller) -> PromptHistory:
    """The prompt in all revisions, oldest first."""
    await _find(crib, caller, name)
    return PromptHistory(items=tuple(await crib.prompts.history(name)))


@router.get("/{name}/revisions/compare")
async def compare_prompts(name: str, older: int, newer: int, crib: CribDep, caller: Caller) -> PromptDifference:
    """How the prompt of one revision became that of another."""
    await _find(crib, caller, name)
    return await crib.prompts.compare(name, older, newer)


@router.post("/{name}/roll-back")
async def roll_back(
    name: str, body: RollBackBody, *, crib: CribDep, caller: Caller, response: Response, if_match: IfMatch = None
) -> AgenticView:
    """Make an older revision the newest one again."""
    demand_write(caller, (await _find(crib, caller, name)).definition)
    after = expected_revision(if_match)
    return _to_view(await crib.prompts.roll_back(name, body.revision, after=after), response)


@router.get("/{name}/drift")
async def get_drift(name: str, crib: CribDep, caller: Caller) -> DriftReport:
    """What has changed in the tool's tools since its prompt was made."""
    await _find(crib, caller, name)
    return await crib.prompts.drift(name)


@router.get("/{name}/workflow", responses=DOCUMENT)
async def show_agentic_workflow(
    name: str, crib: CribDep, caller: Caller, form: Annotated[DocumentFormat, Query(alias="format")] = "json"
) -> Response:
    """A deterministic tool as the workflow that it is, which can be changed and published."""
    await _find(crib, caller, name)
    return document_of(await crib.workflows.of(name), form)


@router.get("/{name}/tools/{form}")
async def export_agentic_tool(name: str, form: ExportFormat, crib: CribDep, caller: Caller) -> JsonObject:
    """The tool in the shape of another system, as a parent agent there needs it."""
    await _find(crib, caller, name)
    return (await crib.export(name, form=form))[0]


async def _find(crib: ActingCrib, caller: Principal, name: str) -> ToolRevision:
    await crib.authorize(newest=True)
    tool = crib.registry.require(caller.realm, name)
    demand_sight(caller, tool.definition)
    _inside(tool.definition)
    return tool


def _inside(definition: ToolDefinition) -> AgenticImplementation:
    if isinstance(definition.implementation, AgenticImplementation):
        return definition.implementation
    msg = f"tool {definition.name!r} is not an agentic tool; GET /api/v1/ai/tools/{definition.name} shows it"
    raise NotFound(msg)


async def _with_default_prompt(crib: ActingCrib, definition: ToolDefinition) -> ToolDefinition:
    """The definition with the default prompt where it has none."""
    implementation = _inside(definition)
    if implementation.system_prompt:
        return definition
    prompt = await crib.prompts.default(definition)
    return definition.model_copy(
        update={"implementation": implementation.model_copy(update={"system_prompt": prompt, "made_from": {}})}
    )


async def _changed(
    author: DefinitionWriter, crib: ActingCrib, caller: Principal, name: str, body: TestPromptBody
) -> ToolDefinition:
    """A stored tool with changes that its author tries."""
    tool = await _find(crib, caller, name)
    demand_write(caller, tool.definition)
    definition = body.change(tool.definition, _inside(tool.definition))
    author.check(definition)
    return definition


async def _unsaved(author: DefinitionWriter, crib: ActingCrib, body: UnsavedPromptBody) -> ToolDefinition:
    """A tool that its author tries before it is saved."""
    definition = body.definition.definition()
    demand_write(author.caller, definition)
    author.check(definition)
    await crib.authorize(newest=True)
    return await _with_default_prompt(crib, definition)


def _to_view(tool: ToolRevision, response: Response) -> AgenticView:
    name_revision(response, tool)
    return AgenticView.of(tool, _inside(tool.definition))


ai_tools_router = Routes(prefix="/ai-tools", tags=("tools",))


add_queries(ai_tools_router, "ai-tools", AiToolPage, AiToolView.of)


@ai_tools_router.get("")
async def list_ai_tools(
    *,
    crib: CribDep,
    level: Annotated[ToolType | None, Query(alias="type")] = None,
    status: ListedStatus | None = None,
    filter: Filter = None,
    sort: Sort = None,
    after: str = "",
    limit: Limit = 50,
) -> AiToolPage:
    """Tools of every type by name, page by page.

    Deprecated and blocked tools are listed only if `status` asks for them: `deprecated`, `blocked`, or `all`, or if
    there is a `filter`.
    """
    page = await crib.listing.query(
        "ai-tools",
        filter=filter,
        sort=sort,
        after=after,
        limit=limit,
        facets={"status": listed_state(status, filter)},
        fits=lambda tool: level in (None, type_of(tool.definition)),
    )
    return to_page(AiToolPage, page, AiToolView.of)


@ai_tools_router.get("/{name}/tools/{form}")
async def export_ai_tool(name: str, form: ExportFormat, crib: CribDep, caller: Caller) -> JsonObject:
    """A tool of any type in the shape of another system."""
    await crib.authorize(newest=True)
    demand_sight(caller, crib.registry.require(caller.realm, name).definition)
    return (await crib.export(name, form=form))[0]


agentic_runs_router = Routes(prefix="/agentic-tools/{name}/executions", tags=("agentic tools",))

_PLAN = "plan"
"""Position of the call in which a fixed sequence is planned."""


@agentic_runs_router.get("")
async def list_tool_executions(
    name: str,
    *,
    crib: CribDep,
    caller: Caller,
    status: RunStatus | None = None,
    filter: Filter = None,
    sort: Sort = None,
    after: After = None,
    before: Annotated[str | None, Query(description="The same as `after`.")] = None,
    limit: Limit = 50,
) -> ExecutionPage:
    """Executions of one tool, newest first; also of a tool that was removed."""
    where = conditions({"tool": name, "status": status})
    page = await crib.queries.page("runs", filter=filter, sort=sort, after=after or before, limit=limit, where=where)
    if not page.items and not await crib.store.journal.runs(caller.realm, tool=name, limit=1):
        await crib.authorize(newest=True)
        crib.registry.require(caller.realm, name)
    return to_page(ExecutionPage, page, ExecutionView.of)


@agentic_runs_router.get("/{execution_id}")
async def get_tool_execution(name: str, execution_id: str, crib: CribDep, caller: Caller) -> ExecutionDetail:
    """One execution: the plan, each call of the model with its prompt and answer, each call of a tool, the costs."""
    run = await run_of(crib, caller, execution_id)
    if run.request.tool_name != name:
        msg = f"run {execution_id!r} is of tool {run.request.tool_name!r}, not of {name!r}"
        raise NotFound(msg)
    demand_run(caller, run)
    return await _detail(crib, run)


def _so_far(trace: Trace) -> JsonObject:
    """The costs of a run that has not ended."""
    return {"total_cost": trace.cost, "cost_unknown": trace.cost_unknown, "total_tokens": trace.tokens}


async def _detail(crib: ActingCrib, run: Run) -> ExecutionDetail:
    events = await crib.store.journal.events(run.run_id)
    trace = await crib.trace(run.run_id)
    answers = {entry.event.position: entry.event for entry in events if isinstance(entry.event, ModelFinished)}
    plan = answers.get(_PLAN)
    return ExecutionDetail.of(
        run,
        **({} if run.ended else _so_far(trace)),
        mode=trace.mode,
        execution_plan=read_object(_words(plan) or "") if plan is not None else None,
        warnings=trace.warnings,
        llm_calls=tuple(_model_calls(trace, events, answers)),
        tool_calls=tuple(_tool_calls(trace)),
        cost_breakdown=trace.cost_breakdown,
        trace=trace,
    )


def _model_calls(
    trace: Trace, events: Sequence[RunEvent], answers: Mapping[str, ModelFinished]
) -> Iterator[LLMCallView]:
    started: dict[str, ModelStarted] = {}
    for entry in events:
        if isinstance(entry.event, ModelStarted):
            started.setdefault(entry.event.position, entry.event)
    steps = [step for step in trace.steps if isinstance(step, LLMStep)]
    system = ""
    for sequence, step in enumerate(steps, start=1):
        system = started[step.position].system or system
        yield LLMCallView.project(
            step,
            call_sequence=sequence,
            prompt=f"{system}\n\n{_messages_text(started[step.position].messages) or step.input}",
            response=_words(answers[step.position]) if step.position in answers else None,
        )


def _tool_calls(trace: Trace) -> Iterator[ToolCallView]:
    steps = (step for step in trace.steps if isinstance(step, ToolStep))
    return (ToolCallView.project(step, call_sequence=sequence) for sequence, step in enumerate(steps, start=1))


def _messages_text(messages: Json) -> str:
    return "\n\n".join(message.text for message in decode_messages(orjson.dumps(messages))) if messages else ""


def _words(answer: ModelFinished) -> str | None:
    return decode_response(orjson.dumps(answer.response)).message.text or None
