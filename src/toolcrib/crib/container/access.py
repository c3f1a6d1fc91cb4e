"""What all questions to people have in common: who has a part in the run, and what a call can have brought.

How a part of a crib comes to know who acts.

Who may read a run, and who may act on it: whoever started it, and those whom a grant allows it.
"""

from typing import Literal, Protocol, TypeAlias

from toolcrib.contracts import InvalidInput, Json, NotFound, PermissionDenied, Principal, Run, ToolRevision
from toolcrib.core.executor.envelope import plain
from toolcrib.core.policy import permits
from toolcrib.core.registry import compile_schema
from toolcrib.core.runs import read_tree, tellers_of
from toolcrib.infrastructure.store import Journal


class Enter(Protocol):
    """Opens the store, and has the definitions of a principal's realm at hand."""

    async def __call__(self, principal: Principal | None, *, newest: bool = False) -> Principal:
        """Who acts: the crib's own principal if null.

        Args:
            principal: Who wants something.
            newest: Whether what other processes have saved meanwhile must be seen.
        """
        ...


RunVerb: TypeAlias = Literal["execute", "read"]
"""What a principal does with a run: act on it, or look at it."""


async def run_for(journal: Journal, run_id: str, who: Principal, verb: RunVerb) -> Run:
    """A run of the realm that is the principal's own, or that it has a grant for.

    Raises:
        NotFound: The realm has no such run.
        PermissionDenied: It is somebody else's.
    """
    try:
        run = await journal.run(run_id)
    except NotFound:
        run = None
    if run is None or run.realm != who.realm:
        msg = f"there is no run {run_id!r}; list the executions for the ids there are"
        raise NotFound(msg)
    if not may(who, run, verb):
        uri = _uri(run, verb)
        msg = f"run {run_id} is another's, and {who.id!r} has no grant for {uri!r}; ask the realm's owner for it"
        raise PermissionDenied(msg)
    return run


def may(who: Principal, run: Run, verb: RunVerb) -> bool:
    """Whether a principal may read a run, or act on it: its own, and those that a grant of it names."""
    return run.made_by == who.id or permits(who.grants, _uri(run, verb))


def _uri(run: Run, verb: RunVerb) -> str:
    return f"ai://runs/{run.request.tool_name}/{verb}"


async def participants_of(journal: Journal, run_id: str) -> set[str]:
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


def validate_output(tool: ToolRevision, output: Json) -> Json:
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
