"""What a run is made of, what is done for it, and what is told of it: in making the stores and in testing them."""

import asyncio
import contextlib
import re
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, TypeAlias

import orjson

from tests.contract.old_runs import rows
from tests.contract.old_runs.hands import KEY, LATER, Clock, Hands
from tests.contract.old_runs.outside import Outside, outside
from toolcrib import Crib, LLMConfig, ScriptedModel, SharingOptions, ToolDefinition
from toolcrib.contracts import (
    OWNER,
    AgentDefinition,
    AgentRequest,
    ApprovalRequested,
    ClientResult,
    Json,
    JsonObject,
    ModelError,
    Principal,
    Run,
    ToolEnvelope,
)
from toolcrib.llm import Cost, LanguageModel, Message, Text, TokenUsage, ToolCall

Said: TypeAlias = str | JsonObject
"""An answer of a model: its words; `{"calls": [[tool, arguments], …]}`; `{"fails": kind}`; any other object as JSON."""
Act: TypeAlias = Sequence[Any]
"""Something that is done for a run, such as `["approve"]`; `_ACTS` has them."""
Rounds: TypeAlias = Sequence[Sequence[Act]]
"""What is done before the run is carried on for the first time, before the second, and so on."""

KEPT: Final = Path(__file__).parent / "d1147f7"
EXPECTED: Final = KEPT / "expected.json"
_IDS: Final = re.compile(r"(run|conv|apr|call|ws)_[0-9a-f]{8,}")
_PORTS: Final = re.compile(r"127\.0\.0\.1:\d+")
_FAMILY: Final = 5000


class Priced(ScriptedModel):
    """A scripted model whose every call costs ten cents."""

    def cost(self, usage: TokenUsage, at: datetime) -> Cost:
        """The price."""
        return Cost(Decimal("0.10"), "test")


def model_of(name: str, answers: Sequence[Said]) -> LanguageModel:
    """A model that says this; one whose name begins with `priced` is not free."""
    kind = Priced if name.startswith("priced") else ScriptedModel
    return kind([spoken(answer) for answer in answers], name=name)


def spoken(answer: Said) -> str | Message | ModelError:
    """An answer as the scripted model takes it."""
    if isinstance(answer, str):
        return answer
    if "fails" in answer:
        return ModelError(answer["fails"], "not now", status=400)
    if "calls" not in answer:
        return orjson.dumps(answer).decode()
    words = (Text(answer["text"]),) if "text" in answer else ()
    calls = (
        ToolCall(f"m{number}", name, orjson.dumps(given).decode())
        for number, (name, given) in enumerate(answer["calls"], start=1)
    )
    return Message("assistant", (*words, *calls))


def asks(*calls: tuple[str, JsonObject], text: str = "") -> JsonObject:
    """An answer that calls tools."""
    return {"calls": [list(call) for call in calls]} | ({"text": text} if text else {})


def agent(name: str, *tools: str, **fields: Any) -> ToolDefinition:
    """An agent of a model of its own."""
    values: dict[str, Any] = {"name": name, "llm": LLMConfig(model=f"scripted:{name}"), "tools": tools, **fields}
    return AgentDefinition.model_validate(values).tool()


@dataclass(frozen=True, kw_only=True)
class Case:
    """One run that is kept, under a name that says what is special about it."""

    name: str
    tool: str = ""
    """What runs; the tool that has the name of the case if empty."""
    given: JsonObject = field(default_factory=dict[str, Any])
    define: Sequence[ToolDefinition] = ()
    flows: Sequence[JsonObject] = ()
    """Workflows, which are published."""
    says: Mapping[str, Sequence[Said]] = field(default_factory=dict[str, Sequence[Said]])
    """What models answer, by their names."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Of `Crib.invoke`."""
    principal: Principal = OWNER
    """Who runs it."""
    how: str = "invoke"
    """One of `_WAYS`."""
    before: Rounds = ()
    """What is done when the stores are made."""
    then: Rounds | None = None
    """What is done when they are opened again; null for a run that has ended."""

    @property
    def ref(self) -> str:
        """The tool that runs."""
        return self.tool or self.name


class Process:
    """A process on a store, with the application."""

    def __init__(self, url: str, around: Outside, clock: Clock, models: Mapping[str, LanguageModel]) -> None:
        self.hands: Hands = around.hands
        self.clock = clock
        self._url = url
        self.crib = Crib(
            url,
            clock=clock,
            models={f"scripted:{name}": model for name, model in models.items()},
            environment={KEY: "key-0123456789"},
            egress=around.egress,
            sharing=SharingOptions(lease_s=60, budgets=("tool=long_list 2 calls/month",)),
        )
        self.crib.add(*self.hands.tools)

    async def begin(self, case: Case) -> str:
        """Begin the run of a case as it says, and carry it as far as it goes; returns its id."""
        begun = _WAYS[case.how]
        run_id = await begun(self, case)
        for acts in case.before:
            run_id = await self.go_on(run_id, acts)
        return run_id

    async def go_on(self, run_id: str, acts: Sequence[Act]) -> str:
        """Do something for a run, and carry it on; returns the id of the run that it is about then."""
        for act in acts:
            run_id = await self.act(run_id, act)
        run = await self.crib.store.journal.run(run_id)
        if not run.ended:
            await self.crib.resume(run_id)
        return run_id

    async def act(self, run_id: str, act: Act) -> str:
        """One thing that people, clients and time do; returns the id of the run that it is about then."""
        what, *rest = act
        return await _ACTS[what](self, run_id, *rest) or run_id

    async def asked(self, run_id: str) -> Sequence[tuple[str, ApprovalRequested]]:
        """What people are asked by a run and all that are nested in it."""
        family = [run for run in await self._family(run_id) if not run.ended]
        return [(run.run_id, one) for run in family for one in await self.crib.pending_approvals(run.run_id)]

    async def prepared(self, run_id: str) -> Sequence[tuple[str, ToolEnvelope]]:
        """What a client shall do for them."""
        family = [run for run in await self._family(run_id) if not run.ended]
        return [(run.run_id, one) for run in family for one in await self.crib.pending_handoffs(run.run_id)]

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.advance(seconds)
        if self._url.startswith("postgresql"):  # which goes by the clock of its server
            rows.let_waits_be_over(self._url)

    async def _family(self, run_id: str) -> Sequence[Run]:
        runs = await self.crib.store.journal.runs("default", limit=_FAMILY)
        return [run for run in runs if run_id in (run.run_id, run.request.root_run_id)]

    async def told(self, run_id: str) -> JsonObject:
        """What there is to tell of a run, without ids, moments and addresses."""
        run = await self.crib.store.journal.run(run_id)
        trace = await self.crib.trace(run_id)
        steps = Counter(step.type for step in trace.steps)
        answer = await self.crib.executions.respond(run_id)
        told: JsonObject = {
            "kind": run.request.kind,
            "status": run.status,
            "stop_reason": run.stop_reason,
            "output": run.output_or_partial,
            "error": None if run.error is None else [run.error.code, run.error.reason, run.error.message],
            "warnings": list(run.warnings),
            "events": run.events,
            "trace": dict(sorted(steps.items())),
            "calls": [f"{call.position} {call.name} {call.status}" for call in _in_order(answer)],
            "cost_usd": None if run.cost_usd is None else f"{run.cost_usd.normalize():f}",
            "tokens": run.usage.total_tokens,
        }
        text = orjson.dumps(told).decode()
        return orjson.loads(_PORTS.sub("127.0.0.1:0", _IDS.sub(r"\1_0", text)))


def _in_order(answer: Any) -> Sequence[ToolEnvelope]:
    return [answer.tools_by_id[call_id] for call_id in answer.tool_order if call_id in answer.tools_by_id]


# How runs begin ---------------------------------------------------------------------------------------------------


async def _invoke(process: Process, case: Case) -> str:
    return (await process.crib.acting_as(case.principal).invoke(case.ref, case.given, **case.options)).run_id


async def _submit(process: Process, case: Case) -> str:
    return await process.crib.acting_as(case.principal).submit(case.ref, case.given, **case.options)


async def _ask(process: Process, case: Case) -> str:
    request = AgentRequest.model_validate({"message": "Go", **case.given})
    return (await process.crib.executions.execute(case.ref, request)).run_id


async def _stream(process: Process, case: Case) -> str:
    begun = await process.crib.executions.submit(case.ref, AgentRequest.model_validate({"message": "Go", **case.given}))
    _ = [told async for told in process.crib.executions.follow(begun.run_id, drive=True)]
    return begun.run_id


async def _die_at_the_start(process: Process, case: Case) -> str:
    """The process that took the run died before it did anything."""
    run_id = await process.crib.submit(case.ref, case.given)
    claim = await process.crib.store.journal.claim(run_id, owner="dead", now=process.clock.now(), lease_s=1)
    assert claim is not None
    return run_id


async def _begin_to_hang(process: Process, case: Case) -> tuple[str, asyncio.Task[Any]]:
    process.hands.hangs, process.hands.reached = True, asyncio.Event()
    known = {run.run_id for run in await process.crib.store.journal.runs("default", limit=_FAMILY)}
    going = asyncio.create_task(process.crib.acting_as(case.principal).invoke(case.ref, case.given, **case.options))
    await process.hands.reached.wait()
    runs = await process.crib.store.journal.runs("default", limit=_FAMILY)
    [run_id] = [run.run_id for run in runs if run.run_id not in known and run.request.parent_run_id is None]
    return run_id, going


async def _die_in_a_call(process: Process, case: Case) -> str:
    """The process died in the middle of a call."""
    run_id, going = await _begin_to_hang(process, case)
    going.cancel()
    await asyncio.wait([going])
    process.hands.hangs = False
    return run_id


async def _cancel_in_a_call(process: Process, case: Case) -> str:
    run_id, going = await _begin_to_hang(process, case)
    await process.crib.cancel(run_id, reason="Nobody wants it.")
    with contextlib.suppress(Exception):
        await going
    process.hands.hangs = False
    return run_id


async def _run_out_of_time(process: Process, case: Case) -> str:
    process.hands.hangs = True
    result = await process.crib.acting_as(case.principal).invoke(case.ref, case.given, **case.options)
    process.hands.hangs = False
    return result.run_id


_WAYS: Final[Mapping[str, Callable[[Process, Case], Awaitable[str]]]] = {
    "invoke": _invoke,
    "submit": _submit,
    "ask": _ask,
    "stream": _stream,
    "die at the start": _die_at_the_start,
    "die in a call": _die_in_a_call,
    "cancel in a call": _cancel_in_a_call,
    "run out of time": _run_out_of_time,
}


# What is done for runs --------------------------------------------------------------------------------------------


async def _decide(process: Process, run_id: str, *, approve: bool, edited: JsonObject | None) -> None:
    reason = None if approve else "Not today."
    for run, one in await process.asked(run_id):
        await process.crib.decide(run, one.position, approve=approve, edited_input=edited, reason=reason)


async def _approve(process: Process, run_id: str, edited: JsonObject | None = None) -> None:
    await _decide(process, run_id, approve=True, edited=edited)


async def _reject(process: Process, run_id: str) -> None:
    await _decide(process, run_id, approve=False, edited=None)


async def _settle(process: Process, run_id: str, happened: bool) -> None:
    for row in (await process.crib.approvals.page(run_id=run_id)).items:
        output = "settled" if happened else None
        await process.crib.approvals.decide(row.approval_id, approve=True, happened=happened, output=output)


async def _bring(process: Process, run_id: str, output: Json) -> None:
    for run, one in await process.prepared(run_id):
        await process.crib.return_client_result(run, one.position, ClientResult(output=output))


async def _signal(process: Process, run_id: str, name: str, payload: JsonObject) -> None:
    await process.crib.instances.signal(run_id, name, payload)


async def _later(process: Process, _run_id: str, seconds: float) -> None:
    process.wait(seconds)


async def _cancel(process: Process, run_id: str, reason: str) -> None:
    await process.crib.cancel(run_id, reason=reason)


async def _say(process: Process, run_id: str, message: str) -> str:
    run = await process.crib.store.journal.run(run_id)
    assert run.request.conversation_id is not None
    return (await process.crib.executions.continue_(run.request.conversation_id, message)).run_id


async def _take_up(process: Process, run_id: str) -> str:
    return (await process.crib.instances.resume(run_id)).run_id


async def _rerun(process: Process, run_id: str, step: str) -> str:
    return (await process.crib.instances.rerun(run_id, step)).run_id


async def _fork(process: Process, run_id: str, options: JsonObject) -> str:
    return (await process.crib.fork(run_id, **options)).run_id


_ACTS: Final[Mapping[str, Callable[..., Awaitable[str | None]]]] = {
    "approve": _approve,
    "reject": _reject,
    "settle": _settle,
    "client": _bring,
    "signal": _signal,
    "later": _later,
    "cancel": _cancel,
    "say": _say,
    "take up": _take_up,
    "rerun": _rerun,
    "fork": _fork,
}


# What becomes of runs later -------------------------------------------------------------------------------------------


def expected() -> dict[str, Any]:
    """What the runs are, and what becomes of them, by their names."""
    return orjson.loads(EXPECTED.read_bytes())


@asynccontextmanager
async def opened(url: str, folder: Path, known: Mapping[str, Any]) -> AsyncGenerator[Process]:
    """A process on an old store, a month later; its models say what they had not said yet."""
    says = {name: answers for each in known.values() for name, answers in each.get("says", {}).items()}
    async with outside(Hands(), folder) as around:
        process = Process(url, around, Clock(LATER), {name: model_of(name, answers) for name, answers in says.items()})
        async with process.crib:
            await around.reach(process.crib)
            yield process


async def carried_on(process: Process, run_id: str, then: Any) -> JsonObject:
    """Carry a run on as its case says; what there is to tell of it then, and the effects that it had meanwhile."""
    before = len(process.hands.done)
    for acts in then:
        run_id = await process.go_on(run_id, acts)
    return {
        **await process.told(run_id),
        "effects": sorted(process.hands.done[before:]),
        "replays": await replays(process, run_id),
    }


async def replays(process: Process, run_id: str) -> bool | str:
    """Whether the run makes the same events again, or where it makes others."""
    replay = await process.crib.replay(run_id, parked=True)
    same = replay.same and replay.digest == replay.recorded_digest
    return True if same else str(replay.divergence)


async def forked(process: Process, run_id: str) -> JsonObject:
    """What becomes of a fork without changes, and the effects that it had."""
    before = len(process.hands.done)
    fork = await process.crib.fork(run_id)
    told = await process.told(fork.run_id)
    return {"status": told["status"], "output": told["output"], "effects": sorted(process.hands.done[before:])}


def can_be_forked(now: JsonObject) -> bool:
    """Whether a case's run is one of those that are forked."""
    return now["status"] == "completed" and now["kind"] != "tool"
