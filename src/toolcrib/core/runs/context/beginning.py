"""A run that waits as a whole: a tool that needs confirmation, and is a run of its own, asks before it begins.

A tool that another one calls does not ask here: its call was confirmed in the run that calls. Nor does a single call,
which the executor asks for, and a dry run, which writes nothing.
"""

from typing import Final

from toolcrib.contracts import ErrorCode, JsonObject, Reason, ToolRevision
from toolcrib.core.executor import Denied, error
from toolcrib.core.registry import compile_schema
from toolcrib.core.runs.context.context import Program, RunContext
from toolcrib.core.runs.interrupts.program import Ended

BEGIN: Final = "run"
"""Position of the request for a run as a whole."""


def confirmed(program: Program) -> Program:
    """A program that begins once a person agrees, if its tool says so."""

    async def run(context: RunContext, tool: ToolRevision) -> Ended:
        request = context.request
        is_call = request.kind == "tool" or request.parent_run_id is not None
        if is_call or request.skips_writes or not tool.definition.requires_confirmation:
            return await program(context, tool)
        try:
            edited = await context.ask_as_a_whole(BEGIN, tool)
        except Denied as refusal:
            return Ended(status="failed", stop_reason="policy", error=refusal.error)
        return await program(context, tool) if edited is None else await _with(edited, program, context, tool)

    return run


async def _with(edited: JsonObject, program: Program, context: RunContext, tool: ToolRevision) -> Ended:
    """Begin with the arguments that the person has made of those that were shown."""
    schema = compile_schema(tool.definition.input_schema)
    filled = schema.with_defaults(edited)
    problems = schema.problems(filled)
    if problems:
        message = f"the edited arguments of {tool.name!r} are not valid: {'; '.join(map(str, problems[:5]))}"
        invalid = error(ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH, message)
        return Ended(status="failed", stop_reason="error", error=invalid)
    request = context.request.model_copy(update={"input": filled})
    context.run = context.run.model_copy(update={"request": request})
    return await program(context, tool)
