"""Who acts and which tools they may see; who may read a run and act on it; and the answers that people may give.

A run may be read and acted on by the principal that started it and by those who have a grant.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from toolcrib.contracts import LOOKS, InvalidInput, Json, NotFound, PermissionDenied, Principal, Run, ToolRevision
from toolcrib.core.executor.envelope import plain
from toolcrib.core.policy import VisibleTools, names_covered, permits
from toolcrib.core.registry import Registry, compile_schema
from toolcrib.core.runs import read_tree, tellers_of
from toolcrib.crib.container.catalogue import Catalogue
from toolcrib.infrastructure.queries.grammar import Condition, Either, equal
from toolcrib.infrastructure.store import Journal
from toolcrib.infrastructure.store.ports.queried_fields import EVERYTHING

RunVerb: TypeAlias = Literal["execute", "read"]
"""What a principal does with a run: act on it, or look at it."""


class StartRecord(Protocol):
    """Remembers which run was begun for a request, so that the request can be sent again without a second run."""

    async def earlier(self) -> str | None:
        """The run that was begun for the request; null if none was."""
        ...

    async def begin(self, run_id: str) -> None:
        """Record the run that is about to be created."""
        ...


@dataclass(frozen=True, slots=True)
class Actor:
    """The actor of a crib. Each operation authorizes it again, and so sees recent changes of other processes."""

    catalogue: Catalogue
    home: str
    """Realm of the crib's own principal, which is read when the crib is opened."""
    principal: Principal
    """In whose realm and name everything is done."""
    is_application: bool = False
    """Whether no principal was named: the application itself acts, and is responsible for who may see and decide."""

    start: StartRecord | None = None
    """Remembers the run of the one request that is carried out; null if requests are not remembered."""

    @property
    def caller(self) -> Principal | None:
        """The principal that was named, whose part in a run is checked; null for the application."""
        return None if self.is_application else self.principal

    async def authorize(self, *, newest: bool = False) -> Principal:
        """Open the store, read the realm's definitions, and return the principal.

        Args:
            newest: Whether to read definitions that other processes have saved since.
        """
        catalogue, realm = self.catalogue, self.principal.realm
        if not catalogue.has_read(realm):
            await catalogue.open(self.home)
            await catalogue.read(realm)
        if newest:
            await catalogue.renew(realm)
        return self.principal

    async def earlier_run(self) -> str | None:
        """The run that was begun for the same request before; null for a request that is new or not remembered."""
        return None if self.start is None else await self.start.earlier()

    async def begin_run(self, run_id: str) -> str:
        """The id of a run that is about to be created, after the request's record has it."""
        if self.start is not None:
            await self.start.begin(run_id)
        return run_id

    async def check_run(self, journal: Journal, run_id: str, verb: RunVerb) -> None:
        """Refuse a caller who may not look at a run, or act on it; the application may.

        Raises:
            NotFound: The caller's realm has no such run.
            PermissionDenied: It belongs to another principal.
        """
        if self.caller is not None:
            await run_for(journal, run_id, self.caller, verb)


class Visibility:
    """Which tools principals may see, worked out once for each state of a realm's catalogue.

    Args:
        registry: Has the tools.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._reaches: dict[str, VisibleTools] = {}

    def of(self, who: Principal) -> Sequence[AbstractSet[str]]:
        """The names that a principal may see; nothing if that is all of them."""
        realm_index = self._registry.index(who.realm)
        reach = self._reaches.get(who.realm)
        if reach is None or reach.realm_index is not realm_index:
            reach = self._reaches[who.realm] = VisibleTools(realm_index)
        names = reach.of(who.grants, LOOKS)
        return [] if names is None else [names]


async def run_for(journal: Journal, run_id: str, who: Principal, verb: RunVerb) -> Run:
    """A run of the realm that is the principal's own, or that it has a grant for.

    Raises:
        NotFound: The realm has no such run.
        PermissionDenied: It belongs to another principal.
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


def readable_runs(who: Principal) -> Condition:
    """What is true of the runs that a principal may read, and of no others."""
    names = names_covered(who.grants, "runs", "read")
    if names is None:
        return EVERYTHING
    return Either((equal("made_by", who.id), *(equal("tool", name) for name in sorted(names))))


def _uri(run: Run, verb: RunVerb) -> str:
    return f"ai://runs/{run.request.tool_name}/{verb}"


async def participants_of(journal: Journal, run_id: str) -> set[str]:
    """Ids of the principals that started the runs above a call, act in them, are acted for, or answered in them.

    This includes principals of an instance that was continued, or of a run that was forked, while that run exists:
    the person who decides now is shown what they said.

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
    """The output of a call as a person states it, as JSON.

    Raises:
        InvalidInput: It is not what the tool promises.
    """
    try:
        result = plain(output)
    except InvalidInput as problem:
        msg = f"the output of {tool.name!r} is not JSON: {problem}"
        raise InvalidInput(msg) from problem
    schema = tool.definition.output_schema
    problems = () if schema is None else compile_schema(schema).problems(result)
    if problems:
        listed = "; ".join(map(str, problems[:5]))
        msg = f"the output is not what {tool.name!r} brings: {listed}. Correct it; the question stays open"
        raise InvalidInput(msg, [problem.as_json() for problem in problems])
    return result
