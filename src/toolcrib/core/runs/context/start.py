"""How a fork begins: with what it knows of the other run, written into its own journal before its program starts.

That is one step: a crash leaves a fork that knows nothing yet, or one that knows all of it. From then on the other run
is not needed any more, but for nested runs that are forks too.
"""

from toolcrib.contracts import Json, JsonObject, ProgressMade, ToolRevision
from toolcrib.contracts.runs.forks import FORKED, Fork
from toolcrib.contracts.runs.recordings import Recorded
from toolcrib.core.runs.context.context import Program, RunContext
from toolcrib.core.runs.forks.fork import recorded
from toolcrib.core.runs.interrupts.program import Ended
from toolcrib.core.runs.interrupts.recovery import Pinned


def forked(program: Program, tools: Pinned) -> Program:
    """A program that, in a fork, goes on from what the other run knew.

    Args:
        program: The code of the run.
        tools: Finds the revisions that the other run has called.
    """

    async def run(context: RunContext, tool: ToolRevision) -> Ended:
        fork = context.request.fork
        if fork is not None:
            await _begin(context, fork, tools)
        return await program(context, tool)

    return run


async def _begin(context: RunContext, fork: Fork, tools: Pinned) -> None:
    """Know what the other run knew.

    Raises:
        NotFound: It is gone, and was before the fork began.
    """

    async def read() -> Json:
        found = await recorded(context.request, fork, context.run_id, past=context.past, tools=tools)
        digest = await context.keep(found.model_dump_json().encode())
        return {
            **found.model_dump(mode="json", include={"run_id", "began_at", "seed"}),
            "at": fork.at,
            "digest": digest,
        }

    told: JsonObject | None = context.noted(FORKED)
    data: JsonObject = await context.learn(FORKED, read) if told is None else told
    facts = Recorded.model_validate_json(await context.kept(data["digest"]))
    if told is None:
        context.know((ProgressMade(key=FORKED, kind=FORKED, data=data), *facts.known))
    context.go_on_from(facts, fork)
