"""A store with parked runs of every sort, the changes that could be made to it, and what then becomes of the runs.

The world of a test is always the same: models answer by what they are asked, nothing depends on chance or time.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tests.twins import ManualClock
from toolcrib import Crib, FunctionTool, LLMConfig, ScriptedModel, SharingOptions, tool
from toolcrib.contracts import (
    AgentDefinition,
    CallFinished,
    ClientResult,
    Json,
    JsonObject,
    RunStatus,
    SecretReference,
    ServiceAccount,
    ToolcribError,
    ToolDefinition,
)
from toolcrib.infrastructure.store import MemoryStore
from toolcrib.llm import LanguageModel, Message, Request, ToolCall, ToolResult

KEY: Final = "TEST_KEY"
DAY: Final = 86400.0
FLOW: Final[JsonObject] = {
    "name": "flow",
    "input_schema": {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
    "steps": [
        {"name": "first", "tool": "look", "input": {"item": "${input.item}"}},
        {"name": "ask", "approval": {"message": "Go on?"}, "depends_on": ["first"]},
        {"name": "last", "tool": "send", "input": {"item": "${first}"}, "depends_on": ["ask"]},
    ],
}


def flow(name: str, middle: JsonObject, last: str = "send") -> JsonObject:
    """A workflow that looks, waits and sends."""
    steps = [FLOW["steps"][0], {"name": "ask", "depends_on": ["first"], **middle}, {**FLOW["steps"][2], "tool": last}]
    return {**FLOW, "name": name, "steps": steps}


class Hands:
    """The tools, and what they have done; `hang` never ends."""

    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []

        @tool(side_effects="reads")
        async def look(item: str) -> str:
            """Looks something up."""
            self.done.append(("look", item))
            return f"{item} is here"

        @tool(side_effects="writes", requires_confirmation=True)
        async def pay(item: str) -> str:
            """Pays for something."""
            self.done.append(("pay", item))
            return f"{item} is paid"

        @tool(side_effects="writes")
        async def send(item: str) -> str:
            """Sends something."""
            self.done.append(("send", item))
            return f"{item} is sent"

        @tool(side_effects="reads", runs_on="client")
        async def pick(item: str) -> Any:
            """Lets the person at the client choose."""
            self.done.append(("pick", item))
            return {"ask": item}

        @tool(side_effects="reads", secrets=(SecretReference(name="key", reference=f"${{env:{KEY}}}"),))
        async def open_safe(item: str) -> str:
            """Opens the safe."""
            self.done.append(("open_safe", item))
            return f"{item} is open"

        self.all: Mapping[str, FunctionTool[..., Any]] = {
            each.definition.name: each for each in (look, pay, send, pick, open_safe)
        }


def agent(name: str, *tools: str, **fields: Any) -> ToolDefinition:
    """An agent whose model calls its tools one after the other, and then says what the last one brought."""
    values = {"name": name, "llm": LLMConfig(model=f"scripted:{name}"), "tools": tools}
    return AgentDefinition.model_validate({**values, **fields}).tool()


def answering(*tools: str) -> LanguageModel:
    """The model of such an agent."""

    def answer(request: Request) -> Message | str:
        results = [part for message in request.messages for part in message.parts if isinstance(part, ToolResult)]
        if len(results) < len(tools):
            arguments = '{"message": "go"}' if tools[len(results)] in AGENTS else '{"item": "hat"}'
            return Message("assistant", (ToolCall(f"m{len(results)}", tools[len(results)], arguments),))
        return f"The end: {results[-1].text}"

    return ScriptedModel(answer)


AGENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "payer": ("look", "pay"),
    "boss": ("payer",),
    "chooser": ("pick", "look"),
    "opener": ("pay", "open_safe"),
    "deputy": ("look", "pay"),
}
FLOWS: Final[Mapping[str, JsonObject]] = {
    "flow": flow("flow", {"approval": {"message": "Go on?"}}),
    "sleeper": flow("sleeper", {"wait": {"seconds": DAY}}),
    "listener": flow("listener", {"wait": {"signal": "go"}}),
    "payment": flow("payment", {"wait": {"seconds": DAY}}, "pay"),
    "asker": flow("asker", {"agent": "payer", "input": {"message": "go"}}),
}
PARKED: Final = (*AGENTS, *FLOWS, "queued_agent", "queued_flow", "crashed")
"""Every sort of parked run, by the tool that it executes or by how it is parked."""


class Process(NamedTuple):
    """What a process has: all of it, or another release's."""

    functions: frozenset[str] = frozenset({"look", "pay", "send", "pick", "open_safe"})
    models: frozenset[str] = frozenset(AGENTS)
    environment: Mapping[str, str] = {KEY: "key-0123456789"}


ALL: Final = Process()


class World:
    """One store, and the processes that come and go."""

    def __init__(self) -> None:
        self.store, self.clock, self.hands = MemoryStore(), ManualClock(), Hands()
        self.runs: dict[str, str] = {}
        """Ids of the parked runs."""

    def process(self, has: Process = ALL) -> Crib:
        """A process on the store."""
        models = {f"scripted:{name}": answering(*AGENTS[name]) for name in has.models}
        crib = Crib(
            self.store,
            clock=self.clock,
            models=models,
            environment=dict(has.environment),
            sharing=SharingOptions(lease_s=3),
        )
        crib.add(*(each for name, each in self.hands.all.items() if name in has.functions))
        return crib

    async def park(self, *wanted: str) -> None:
        """Have a process define everything and begin the runs; then it is gone."""
        crib = self.process()
        await crib.accounts.save(ServiceAccount(name="clerk", grants=("ai://*",)))
        for name, tools in AGENTS.items():
            await crib.save(agent(name, *tools, **({"principal_ref": "clerk"} if name == "deputy" else {})))
        for document in FLOWS.values():
            await crib.workflows.publish(document)
        for name in wanted:
            self.runs[name] = await self._begin(crib, name)
        await crib.engine.close()

    async def _begin(self, crib: Crib, name: str) -> str:
        match name:
            case "queued_agent":
                return await crib.submit("payer", {"message": "go"})
            case "queued_flow":
                return await crib.submit("flow", {"item": "hat"})
            case "crashed":
                return await self._crash(crib)
            case _:
                given = {"message": "go"} if name in AGENTS else {"item": "hat"}
                return (await crib.invoke(name, given)).run_id

    async def _crash(self, crib: Crib) -> str:
        """A run whose process died between two of its calls: its lease is over."""
        run_id = await crib.submit("payer", {"message": "go"})
        claim = await self.store.journal.claim(run_id, owner="dead", now=self.clock.now(), lease_s=1)
        assert claim is not None
        self.clock.advance(2)
        return run_id


class Fate(NamedTuple):
    """What has become of a run."""

    status: RunStatus
    output: Json = None
    error: str | None = None
    stuck: str | None = None
    """Why nobody could carry it on."""
    again: bool = False
    """A person was asked about a call for the second time."""
    refused: frozenset[str | None] = frozenset()
    """Positions of the calls that brought no result."""


async def go_on(world: World, crib: Crib, run_id: str) -> Fate:
    """Do for a run what people, clients and time do, until it has ended or nobody can carry it on."""
    again = False
    try:
        for _ in range(8):
            result = await crib.resume(run_id)
            if result.summary.status not in {"awaiting_approval", "awaiting_client"}:
                break
            again |= await _answer(world, crib, run_id)
    except ToolcribError as failure:
        return Fate((await world.store.journal.run(run_id)).status, stuck=str(failure))
    run = await world.store.journal.run(run_id)
    refused = [
        entry.event.position
        for each in await world.store.journal.runs("default", limit=1000)
        for entry in await world.store.journal.events(each.run_id)
        if isinstance(entry.event, CallFinished) and not entry.event.envelope.ok
    ]
    error = run.error.message if run.error else None
    return Fate(run.status, run.output, error, again=again, refused=frozenset(refused))


async def _answer(world: World, crib: Crib, run_id: str) -> bool:
    """Answer what the family of a run waits for; whether something was asked for the second time."""
    family = [run.run_id for run in await world.store.journal.runs("default", limit=1000)]
    again = False
    for each in family:
        run = await world.store.journal.run(each)
        if run.ended or run_id not in {each, run.request.root_run_id}:
            continue
        for asked in await crib.pending_approvals(each):
            again |= asked.number > 1
            await crib.decide(each, asked.position, approve=True)
        for prepared in await crib.pending_handoffs(each):
            await crib.return_client_result(each, prepared.position, ClientResult(output="picked"))
        if run.request.tool.startswith("listener") and run.status == "awaiting_client":
            await crib.instances.signal(each, "go", {})
    world.clock.advance(2 * DAY)
    await asyncio.sleep(0)
    return again
