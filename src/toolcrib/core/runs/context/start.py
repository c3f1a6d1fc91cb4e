"""The start of a fork, and the confirmation of a run as a whole.

A fork writes what it keeps of the other run into its own journal in one step, so a crash leaves it empty or complete;
after that it needs the other run only for nested forks. A tool with `requires_confirmation` that is a run of its own
asks before it begins, unless another run calls it (its call was confirmed), it is a single call, or it is a dry run.
"""

from collections.abc import Awaitable
from typing import Final

from toolcrib.contracts import ErrorCode, Json, JsonObject, ProgressMade, Reason, ToolRevision
from toolcrib.contracts.runs.forks import FORKED, Fork
from toolcrib.contracts.runs.recordings import Recorded
from toolcrib.core.executor import Denied, error
from toolcrib.core.registry import compile_schema
from toolcrib.core.runs.context.context import Program, RunContext
from toolcrib.core.runs.forks.fork import read_recorded
from toolcrib.core.runs.interrupts.recovery import Pinned
from toolcrib.core.runs.interrupts.suspension import RunEnd

BEGIN: Final = "run"
"""Position of the request for a run as a whole."""


def with_confirmation(program: Program) -> Program:
    """A program that begins once a person agrees, if its tool says so."""

    def run(context: RunContext, tool: ToolRevision) -> Awaitable[RunEnd]:
        request = context.run.request
        is_call = request.kind == "tool" or request.parent_run_id is not None
        if is_call or not tool.definition.requires_confirmation or request.skips_writes:
            return program(context, tool)
        return _once_confirmed(program, context, tool)

    return run


async def _once_confirmed(program: Program, context: RunContext, tool: ToolRevision) -> RunEnd:
    try:
        edited = await context.ask_as_a_whole(BEGIN, tool)
    except Denied as refusal:
        return RunEnd(status="failed", stop_reason="policy", error=refusal.error)
    return await program(context, tool) if edited is None else await _with(edited, program, context, tool)


async def _with(edited: JsonObject, program: Program, context: RunContext, tool: ToolRevision) -> RunEnd:
    """Begin with the arguments that the person has made of those that were shown."""
    schema = compile_schema(tool.definition.input_schema)
    filled = schema.with_defaults(edited)
    problems = schema.problems(filled)
    if problems:
        message = f"the edited arguments of {tool.name!r} are not valid: {'; '.join(map(str, problems[:5]))}"
        invalid = error(ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH, message)
        return RunEnd(status="failed", stop_reason="error", error=invalid)
    request = context.request.model_copy(update={"input": filled})
    context.run = context.run.model_copy(update={"request": request})
    return await program(context, tool)


def with_fork(program: Program, tools: Pinned) -> Program:
    """A program that, in a fork, goes on from what the other run knew.

    Args:
        program: The code of the run.
        tools: Finds the revisions that the other run has called.
    """

    def run(context: RunContext, tool: ToolRevision) -> Awaitable[RunEnd]:
        fork = context.run.request.fork
        return program(context, tool) if fork is None else go_on(context, tool, fork)

    async def go_on(context: RunContext, tool: ToolRevision, fork: Fork) -> RunEnd:
        await _begin(context, fork, tools)
        return await program(context, tool)

    return run


async def _begin(context: RunContext, fork: Fork, tools: Pinned) -> None:
    """Know what the other run knew.

    Raises:
        NotFound: It is gone, and was before the fork began.
    """

    async def read() -> Json:
        found = await read_recorded(context.request, fork, context.run_id, past=context.past, tools=tools)
        digest = await context.keep(found.model_dump_json().encode())
        return {
            **found.model_dump(mode="json", include={"run_id", "began_at", "seed"}),
            "at": fork.at,
            "digest": digest,
        }

    recorded: JsonObject | None = context.find_progress(FORKED)
    data: JsonObject = await context.learn(FORKED, read) if recorded is None else recorded
    facts = Recorded.model_validate_json(await context.read_blob(data["digest"]))
    if recorded is None:
        context.know((ProgressMade(key=FORKED, kind=FORKED, data=data), *facts.known))
    context.go_on_from(facts, fork)
