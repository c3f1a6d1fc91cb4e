"""What a run does before the first line of its program: confirmation as a whole, definitions, the start of a fork.

A fork writes what it keeps of the other run into its own journal in one step, so a crash leaves it empty or complete;
after that it needs the other run only for nested forks. A tool with `requires_confirmation` that is a run of its own
asks before it begins, unless another run calls it (its call was confirmed), it is a single call, or it is a dry run.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from msgspec import Struct

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


Settle: TypeAlias = Callable[[RunContext, ToolRevision], Awaitable[None]]
"""Reads what has changed outside since the run was asked for."""


class ProgramStart(Struct, frozen=True):
    """A program with all that its run does before the program's first line, as one program.

    It begins once a person agrees, if its tool says so. Then it reads what has changed outside. A fork goes on from
    what the other run knew. The model is that of the run's request, where it names one.
    """

    program: Program
    tools: Pinned
    """Finds the revisions that the other run of a fork has called."""
    with_model: Callable[[ToolRevision, str], ToolRevision] | None = None
    """The revision with another model; null where none is asked."""
    settle: Settle | None = None
    """Null in a replay, which reads nothing outside."""

    async def __call__(self, context: RunContext, tool: ToolRevision) -> RunEnd:
        """Run from the beginning, or from where the journal ends."""
        request = context.request
        if tool.definition.requires_confirmation and not (
            request.kind == "tool" or request.parent_run_id is not None or request.skips_writes
        ):
            refused = await _confirm(context, tool)
            if refused is not None:
                return refused
        if self.settle is not None:
            await self.settle(context, tool)
        if request.fork is not None:
            await _begin(context, request.fork, self.tools)
        if request.model is not None and self.with_model is not None:
            tool = self.with_model(tool, request.model)
        return await self.program(context, tool)


async def _confirm(context: RunContext, tool: ToolRevision) -> RunEnd | None:
    """Ask a person for the run, and take the arguments that the person has made of those that were shown.

    Returns:
        How the run ends if it does not begin.
    """
    try:
        edited = await context.ask_as_a_whole(BEGIN, tool)
    except Denied as refusal:
        return RunEnd(status="failed", stop_reason="policy", error=refusal.error)
    if edited is None:
        return None
    schema = compile_schema(tool.definition.input_schema)
    filled = schema.with_defaults(edited)
    problems = schema.problems(filled)
    if problems:
        message = f"the edited arguments of {tool.name!r} are not valid: {'; '.join(map(str, problems[:5]))}"
        invalid = error(ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH, message)
        return RunEnd(status="failed", stop_reason="error", error=invalid)
    request = context.request.model_copy(update={"input": filled})
    context.run = context.run.model_copy(update={"request": request})
    return None


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
