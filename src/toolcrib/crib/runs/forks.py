"""Forks of runs: continue from an earlier event of a run with changes, and compare the results.

A fork is a new run of the principal that makes it: that principal's current rights apply, and the fork has its own
budget. The other run does not change. Changes are written as `model=…`, `prompt=…`, `tool:NAME=VERSION` or `policy=…`.

Example:
    answer = await desk("Which deals has Acme?")
    fork = await crib.forks.fork(answer.run_id, at=5, changes={"model": "openai:gpt-5"})
    diff = await crib.forks.compare(answer.run_id, fork.run_id)
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar, cast

from msgspec import Struct
from pydantic import ValidationError

from toolcrib.contracts import (
    AgenticImplementation,
    AgentImplementation,
    ApprovalDecided,
    InvalidInput,
    Json,
    JsonObject,
    NotFound,
    PermissionDenied,
    Principal,
    Run,
    RunEvent,
    RunRequest,
    ToolRevision,
)
from toolcrib.contracts.runs.comparisons import RunDiff
from toolcrib.contracts.runs.forks import Fork, ForkChanges, PolicyChange
from toolcrib.core.engines import new_run_id
from toolcrib.core.policy import permits, require_publish
from toolcrib.core.registry import pins_of
from toolcrib.core.runs import BEGIN, StoredRun, as_asked, compare, step_at
from toolcrib.crib.agents.executions import Executions
from toolcrib.crib.container.access import Actor
from toolcrib.crib.container.container import CribServices
from toolcrib.crib.container.requests import refusal_of_run
from toolcrib.workflows.checks import near

_LLM: Final = (
    "temperature",
    "max_tokens",
    "max_input_tokens",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "reasoning_effort",
    "tool_calling",
)
"""Fields of `LLMConfig` that are no matter of where a model is reached."""
_TOOL: Final = "tool:"
_INPUT: Final = "input."
_SHOWN: Final = ("model", "prompt", "policy", "input", f"{_TOOL}NAME", f"{_INPUT}FIELD", *_LLM)

_Value = TypeVar("_Value")


class Wanted(Struct, frozen=True):
    """What is to be different."""

    changes: ForkChanges
    model: str | None = None
    """`provider:model`."""
    tools: Mapping[str, str] = {}
    """Versions or content hashes, by name."""
    input: JsonObject = {}
    """Fields of the input."""

    @property
    def of_definition(self) -> bool:
        """Whether the run goes by other rules or other tools than those of its definition."""
        return bool(self.model or self.tools or not self.changes.are_none)


def read_changes(given: Mapping[str, Json]) -> Wanted:
    """Read the changes of a fork.

    Args:
        given: Values by name: `model`, `prompt`, `policy` (an object), `tool:NAME`, `input` (an object) or
            `input.FIELD`, and the fields of a model's configuration such as `temperature`.

    Raises:
        InvalidInput: There is no such name, or its value is not of the right kind.
    """
    tools: dict[str, str] = {}
    fields: JsonObject = {}
    for name, value in given.items():
        if name.startswith(_TOOL):
            tools[name.removeprefix(_TOOL)] = _text(name, value)
        elif name == "input":
            fields |= _object(name, value)
        elif name.startswith(_INPUT):
            fields[name.removeprefix(_INPUT)] = value
        elif name not in _SHOWN:
            raise InvalidInput(f"a fork has no {name!r} to change; {near(name, _SHOWN)}")
    policy = _of(given, "policy", _object)
    changes = ForkChanges(
        prompt=_of(given, "prompt", _text),
        llm={name: given[name] for name in _LLM if name in given},
        policy=None if policy is None else _policy(policy),
    )
    return Wanted(changes, _of(given, "model", _text), tools, fields)


def _of(given: Mapping[str, Json], name: str, read: Callable[[str, Json], _Value]) -> _Value | None:
    return read(name, given[name]) if name in given else None


def _text(name: str, value: Json) -> str:
    if isinstance(value, str) and value:
        return value
    raise InvalidInput(f"{name!r} is a text, and this is {value!r}")


def _object(name: str, value: Json) -> JsonObject:
    if isinstance(value, dict):
        return cast("JsonObject", value)
    raise InvalidInput(f"{name!r} is a JSON object, and this is {value!r}")


def _policy(value: JsonObject) -> PolicyChange:
    wrong = next((name for name in value if name not in PolicyChange.model_fields), None)
    if wrong is not None:
        raise InvalidInput(f"a policy has no {wrong!r} to change; {near(wrong, PolicyChange.model_fields)}")
    try:
        return PolicyChange.model_validate(value)
    except ValidationError as problem:
        found = problem.errors(include_url=False, include_input=False)[0]
        raise InvalidInput(f"'policy' is not valid: {'.'.join(map(str, found['loc']))}: {found['msg']}") from problem


_STEP, _TURN = "step:", "turn:"


class Forks:
    """The forks of a crib.

    Args:
        parts: The parts of the crib.
        executions: The crib's executions, which know which runs a principal may read.
        actor: The actor of the crib.
    """

    def __init__(self, parts: CribServices, executions: Executions, actor: Actor) -> None:
        self._parts = parts
        self._journal = parts.outside.store.journal
        self._executions = executions
        self._actor = actor

    async def fork(
        self,
        run_id: str,
        *,
        at: int | str | None = None,
        changes: Mapping[str, Json] | None = None,
        allow_writes: bool = False,
        anew: bool = False,
        wait: bool = True,
    ) -> Run:
        """Start a run with what another run knew at an event, and continue from there.

        What that run called and asked later is taken from it where it is the same; the rest runs.

        Args:
            run_id: The run; it may be active, wait or have ended, and may be a fork itself.
            at: Number of the last event that is known; `step:NAME` or `turn:N` for what was known before a step of a
                workflow or a turn of an agent; null for the beginning.
            changes: What is different, by name: `model`, `prompt`, `tool:NAME`, `policy`, `input.FIELD`,
                `temperature`… as `docs/forks.md` lists them.
            allow_writes: Make calls with side effects that are not in the recording; else they are skipped.
            anew: Reuse nothing of the recording after the event.
            wait: Drive it here until it ends or waits; else a serving engine does.

        Returns:
            The current state of the fork. A refused fork has ended, and contains the reason.

        Raises:
            NotFound: There is no such run, event, step or turn, or no such version of a tool.
            PermissionDenied: The run is another's, or the principal may not change what is to be changed.
            InvalidInput: A change is not known, or does not fit the run.

        Example:
            answer = await desk("Which deals has Acme?")
            fork = await crib.forks.fork(answer.run_id, at="turn:2", changes={"model": "openai:gpt-5"})
            print(fork.status, fork.output)
        """
        who = await self._actor.authorize(newest=True)
        earlier = await self._actor.earlier_run()
        if earlier is not None:
            return await self._driven(earlier, wait=wait)
        run = await self._executions.run_for(run_id, who, "read")
        events = await self._journal.events(run_id)
        wanted = read_changes(changes or {})
        fork = Fork(run_id=run_id, at=_event(events, at), changes=wanted.changes, allow_writes=allow_writes, anew=anew)
        request, tool = await self._request(run, events, fork, wanted, who)
        refusal = refusal_of_run(self._parts.executor, tool, request)
        if refusal is not None:
            refused = await self._parts.engine.refuse(request, refusal)
            return await self._journal.run(refused.result.run_id)
        made = await self._parts.engine.create(request, run_id=await self._actor.begin_run(new_run_id()))
        return await self._driven(made, wait=wait)

    async def _driven(self, run_id: str, *, wait: bool) -> Run:
        if wait:
            await self._parts.resume(run_id)
        return await self._journal.run(run_id)

    async def compare(self, before: str, after: str) -> RunDiff:
        """How two runs differ, such as a run and its fork.

        Raises:
            NotFound: The realm has no such run.
            PermissionDenied: One of them is another's, and the principal has no grant to read it.

        Example:
            answer = await desk("Which deals has Acme?")
            fork = await crib.forks.fork(answer.run_id, changes={"prompt": "Answer in one word."})
            diff = await crib.forks.compare(answer.run_id, fork.run_id)
            print(diff.parting, diff.output)
        """
        who = await self._actor.authorize()
        one, other = [
            StoredRun(await self._executions.run_for(run_id, who, "read"), await self._journal.events(run_id))
            for run_id in (before, after)
        ]
        return compare(one, other)

    # Inside -----------------------------------------------------------------------------------------------------------

    async def _request(
        self, run: Run, events: Sequence[RunEvent], fork: Fork, wanted: Wanted, who: Principal
    ) -> tuple[RunRequest, ToolRevision]:
        """What the fork is asked, and the revision that it executes."""
        request, realm = run.request, run.realm
        replaced, chosen = await self._choose_revisions(realm, wanted)
        own = chosen.get(request.tool_name)
        tool = own or await self._parts.registry.get_revision(realm, request.content_hash)
        if own is not None and request.kind not in {"tool", own.definition.run_kind}:
            msg = (
                f"run {run.run_id} is of kind {request.kind!r}, and {own.ref!r} is of kind {own.definition.run_kind!r}"
            )
            raise InvalidInput(msg)
        if wanted.of_definition:
            _check_may_change(who, tool)
            self._parts.catalogue.check_accounts(tool.definition, who)
        if request.kind == "tool" and (wanted.model is not None or not wanted.changes.are_none):
            msg = (
                f"run {run.run_id} is one call of {tool.ref!r}, whose definition it does not read; fork the nested run"
            )
            raise InvalidInput(msg)
        if wanted.model is not None:
            _check_model(self._parts, tool, wanted.model)
        pins = request.pins if own is None else pins_of(own, self._parts.registry)
        given = request.model_copy(
            update={
                "tool": tool.ref,
                "content_hash": tool.content_hash,
                "pins": {ref: replaced.get(pinned, pinned) for ref, pinned in pins.items()},
                "input": _input(request.input, events, fork, wanted),
                "principal": who,
                "model": wanted.model or request.model,
                "replaced": {**request.replaced, **replaced},
                "fork": fork,
                **_OF_ITS_OWN,
            }
        )
        as_asked(tool, given)  # refuses changes that do not fit
        return given, tool

    async def _choose_revisions(self, realm: str, wanted: Wanted) -> tuple[dict[str, str], dict[str, ToolRevision]]:
        """Which revisions are called in whose place, and the chosen ones by name."""
        registry = self._parts.registry
        replaced: dict[str, str] = {}
        chosen: dict[str, ToolRevision] = {}
        for name, version in wanted.tools.items():
            found = registry.find(realm, name, version)
            known = await registry.revisions(realm, name)
            if not known:
                msg = f"there is no tool {name!r} to call in another version; {near(name, registry.names(realm))}"
                raise NotFound(msg)
            if found is None or found.name != name:
                there = ", ".join(dict.fromkeys(one.version for one in known))
                raise NotFound(f"tool {name!r} has no version {version!r}; available: {there}")
            chosen[name] = found
            others = {one.content_hash for one in known} - {found.content_hash}
            replaced |= dict.fromkeys(others, found.content_hash)
        return replaced, chosen


_OF_ITS_OWN: JsonObject = {
    "parent_run_id": None,
    "parent_position": None,
    "root_run_id": None,
    "started_by": None,
    "depth": 0,
    "callers": {},
    "allowance": None,
    "timeout_s": None,
}
"""What a fork does not copy: it is not nested, and its budget is that of its tool."""


def _input(given: Json, events: Sequence[RunEvent], fork: Fork, wanted: Wanted) -> Json:
    """The input of a fork: that of the run, as a person may have edited it before it began, with other fields."""
    decided = (entry.event for entry in events if isinstance(entry.event, ApprovalDecided))
    decisions = [event.decision for event in decided if event.position == BEGIN]
    edited = next((decision.edited_input for decision in reversed(decisions) if decision is not None), None)
    current: Json = given if edited is None else edited
    if not wanted.input:
        return current
    if fork.at > 1:
        msg = f"what the run knew at event {fork.at} was made of the input that it had; change the input at event 1"
        raise InvalidInput(msg)
    if not isinstance(current, dict):
        raise InvalidInput("the input of the run is not a JSON object, so it has no fields to change")
    return {**cast("JsonObject", current), **wanted.input}


def _event(events: Sequence[RunEvent], at: int | str | None) -> int:
    """Number of the last event that is known."""
    last = events[-1].number
    if at is None:
        return 1
    if isinstance(at, str) and not at.isdecimal():
        return _event_before(events, at)
    if not 1 <= int(at) <= last:
        raise InvalidInput(f"the run has events 1 to {last}, and a fork was wanted at {at}")
    return int(at)


def _event_before(events: Sequence[RunEvent], place: str) -> int:
    """Number of the event before a step or a turn began."""
    wanted = place.removeprefix(_STEP)
    if place.startswith(_TURN):
        wanted = f"t{place.removeprefix(_TURN)}"
    elif not place.startswith(_STEP):
        raise InvalidInput(f"a fork is made at the number of an event, step:NAME or turn:N, and not at {place!r}")
    names: dict[str, int] = {}
    for entry in events:
        position = getattr(entry.event, "position", None)
        if isinstance(position, str):
            names.setdefault(step_at(position), entry.number)
    if wanted not in names:
        raise NotFound(f"the run has not come to {place!r}; {near(wanted, names)}")
    return names[wanted] - 1


def _check_may_change(who: Principal, tool: ToolRevision) -> None:
    """Refuse a principal that may not write the definition, and so may not change its rights or account.

    Raises:
        PermissionDenied: No grant lets them.
    """
    if tool.definition.run_kind == "workflow":
        require_publish(who, tool.name)
    elif not permits(who.grants, uri := tool.definition.security("write")):
        msg = f"principal {who.id!r} has no grant for {uri!r}, and so may fork a run of {tool.name!r} unchanged only"
        raise PermissionDenied(msg)


def _check_model(parts: CribServices, tool: ToolRevision, model: str) -> None:
    implementation = tool.definition.implementation
    if not isinstance(implementation, AgentImplementation | AgenticImplementation):
        raise InvalidInput(f"{tool.ref!r} asks no model itself; fork the run of the agent that does")
    parts.models.check(implementation.llm.asking(model), tool.realm)
