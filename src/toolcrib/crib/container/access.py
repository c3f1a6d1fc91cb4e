"""What all questions to people have in common: who has a part in the run, and what a call can have brought."""

from toolcrib.contracts import InvalidInput, Json, NotFound, ToolRevision
from toolcrib.core.executor.plain import plain
from toolcrib.core.registry import compile_schema
from toolcrib.core.runs import read_tree, tellers_of
from toolcrib.infrastructure.store import Journal


async def involved_in(journal: Journal, run_id: str) -> set[str]:
    """Ids of all who started the runs above a call, act in them, are acted for, or told the tree something.

    So have those a part who did that in the instance of a workflow that was taken up, or in the run that was forked, as
    long as that is there: what they said is what the person who is asked now is shown.

    Args:
        journal: Has the runs.
        run_id: The run that makes the call.
    """
    found, waiting = set[str](), [run_id]
    while waiting:
        above = waiting.pop()
        try:
            request = (await journal.run(above)).request
        except NotFound:  # a fork outlasts the run that it was made of
            continue
        found |= {request.starter, request.principal.id, request.principal.user}
        if request.parent_run_id is not None:
            waiting.append(request.parent_run_id)
            continue
        for branch in await read_tree(journal, above, ended=True):
            found |= tellers_of(branch.signals.values())
        waiting += [other.run_id for other in (request.rerun, request.fork) if other is not None]
    return found


def told_output(tool: ToolRevision, output: Json) -> Json:
    """What a person says that a call has brought, as JSON.

    Raises:
        InvalidInput: It is not what the tool promises.
    """
    try:
        told = plain(output)
    except InvalidInput as problem:
        msg = f"the output of {tool.name!r} is not JSON: {problem}"
        raise InvalidInput(msg) from problem
    schema = tool.definition.output_schema
    problems = () if schema is None else compile_schema(schema).problems(told)
    if problems:
        listed = "; ".join(map(str, problems[:5]))
        msg = f"the output is not what {tool.name!r} brings: {listed}. Correct it; the question stays open"
        raise InvalidInput(msg, [problem.as_json() for problem in problems])
    return told
