"""A corpus of runs of every kind, made from a seed: each scene is played in a crib of its own and leaves its runs."""

import asyncio
import io
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Any, Final, TypeAlias

import orjson

from examples.workflows.demo import FastClock
from examples.workflows.gallery import open_crib, publish
from examples.workflows.scenarios import SCENARIOS
from examples.workflows.world import World
from tests.twins import ManualClock
from tests.unit.agents.crm import DONE, MODEL, Crm, asks, for_ever, plan, read_plan
from toolcrib import Crib, Limits, LLMConfig, ScriptedModel, tool
from toolcrib.contracts import AgentDefinition, ClientResult, ContentFilter, Grounding, JsonObject, ModelError
from toolcrib.infrastructure.store import MemoryStore
from toolcrib.llm import LanguageModel

Scene: TypeAlias = Callable[[Random], Awaitable[dict[str, bytes]]]
"""Plays, and returns the bundles of its runs by their ids."""

_LARGE: Final = frozenset({"import_contacts"})
"""Scenarios that are too large to be played often."""
NOTHING: Final[tuple[str, JsonObject]] = ("nothing", {})
SEARCH: Final[tuple[str, JsonObject]] = ("search_deals", {"company": "Acme"})
MOVE: Final[tuple[str, JsonObject]] = ("update_deals", {"ids": ["d0"], "stage": "3003"})


@tool(side_effects="writes", requires_confirmation=True)
async def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


@tool(runs_on="client", side_effects="writes")
async def open_page(page: str) -> dict[str, Any]:
    """Prepares the opening of a page."""
    return {"url": f"/pages/{page}"}


@tool(side_effects="reads")
async def flaky(fails: int) -> str:
    """Fails if it is told to."""
    if fails:
        raise RuntimeError(f"no, for the {fails}. time")
    return "well"


async def exported(crib: Crib) -> dict[str, bytes]:
    """The bundles of all runs that nobody called."""
    found: dict[str, bytes] = {}
    for run in await crib.store.journal.runs(crib.principal.realm, limit=200):
        if run.request.parent_run_id is None:
            file = io.BytesIO()
            await crib.export_run(run.run_id, file)
            found[run.run_id] = file.getvalue()
    return found


def crib_of(*answers: Any, crm: Crm | None = None) -> Crib:
    """A crib with the CRM's tools and those above, and a model that says this."""
    models: Mapping[str, LanguageModel] = {MODEL: ScriptedModel(answers)}
    crib = Crib("memory://", models=models)
    crib.add(*(crm or Crm(3)).tools, pay, open_page, flaky)
    return crib


def crm_that_hangs(crm: Crm) -> asyncio.Event:
    """Have searches last for ever; tells when the first has begun."""
    begun = asyncio.Event()

    async def hang(company: str) -> None:
        begun.set()
        await for_ever(company)

    crm.on_search = hang
    return begun


async def single_calls(chance: Random) -> dict[str, bytes]:
    """Calls that succeed, fail, are not valid, and are not known."""
    async with crib_of() as crib:
        await crib.invoke("search_deals", {"company": chance.choice(["Acme", "Nobody"])})
        await crib.invoke("flaky", {"fails": chance.randrange(3)})
        await crib.invoke("flaky", {"fails": "many"})
        await crib.invoke("update_deals", {"ids": ["d0"], "stage": "3003"}, dry_run=True)
        return await exported(crib)


async def approvals(chance: Random) -> dict[str, bytes]:
    """A call that a person approves, edits or rejects, or that still waits."""
    async with crib_of() as crib:
        waiting = await crib.invoke("pay", {"amount": chance.randrange(100)})
        answer = chance.choice(["approve", "edit", "reject", "wait"])
        if answer != "wait":
            edited = {"amount": 7} if answer == "edit" else None
            await crib.decide(waiting.run_id, "call", approve=answer != "reject", edited_input=edited)
            await crib.resume(waiting.run_id)
        return await exported(crib)


async def clients(chance: Random) -> dict[str, bytes]:
    """A call that a client performs."""
    async with crib_of() as crib:
        waiting = await crib.invoke("open_page", {"page": f"p{chance.randrange(9)}"})
        if chance.random() < 0.8:
            await crib.return_client_result(waiting.run_id, "call", ClientResult(output={"opened": True}))
            await crib.resume(waiting.run_id)
        return await exported(crib)


async def agents(chance: Random) -> dict[str, bytes]:
    """An agentic tool whose model calls tools, several at once, some of them wrongly; or fails, or reaches a limit."""
    turns: list[Any] = []
    for _ in range(chance.randrange(1, 5)):
        wanted: list[tuple[str, JsonObject | str]] = [SEARCH, MOVE, ("flaky", {"fails": chance.randrange(2)}), NOTHING]
        calls = chance.choices(wanted, k=3)
        turns.append(asks(*calls[: chance.randrange(1, 4)]))
    end = chance.choice(["All done.", ModelError("bad_request", "no such model", status=404)])
    async with crib_of(*turns, end, "Enough.") as crib:
        tools = ["search_deals", "update_deals", "flaky"]
        limits = Limits(max_iterations=chance.randrange(2, 6), max_tool_calls=chance.randrange(3, 9))
        crib.agentic_tool("agent", mode="agentic", model=MODEL, tools=tools, limits=limits, grounding="off")
        await crib.invoke("agent", {"task": f"go {chance.randrange(9)}"})
        return await exported(crib)


async def sequences(chance: Random) -> dict[str, bytes]:
    """A deterministic agentic tool, planned well or badly."""
    move = {"for_each": "${search_deals.results}", "input": {"ids": ["${item.id}"], "stage": "Negotiation"}}
    plans: list[tuple[JsonObject, Grounding]] = [
        (read_plan(update_deals=move), "evidence"),
        (plan(), "off"),
        (plan(search_deals={"input": {}}), "off"),
        ({"reasoning": "none"}, "evidence"),
    ]
    planned, grounding = chance.choice(plans)
    said = orjson.dumps(planned).decode()
    async with crib_of(said, said, orjson.dumps(DONE).decode(), "Over.") as crib:
        steps = ["search_deals", "update_deals"]
        crib.agentic_tool("agent", mode="deterministic", model=MODEL, steps=steps, grounding=grounding)
        await crib.invoke("agent", {"task": "Move Acme's deals to Negotiation"}, dry_run=chance.random() < 0.2)
        return await exported(crib)


async def nested(chance: Random) -> dict[str, bytes]:
    """Agents inside of an agent, two at the same time, one of which may wait for a person."""
    asked = asks(*[("inner", {"task": f"find {place}"}) for place in range(chance.randrange(1, 3))])
    inner = [asks(("pay", {"amount": 5}))] if chance.random() < 0.5 else [asks(SEARCH)]
    models: Mapping[str, LanguageModel] = {
        "scripted:outer": ScriptedModel([asked, "All found."]),
        "scripted:inner": ScriptedModel(lambda request: inner[0] if len(request.messages) < 2 else "Found."),
    }
    async with Crib("memory://", models=models) as crib:
        crib.add(*Crm(1).tools, pay)
        crib.agentic_tool("inner", mode="agentic", model="scripted:inner", tools=["search_deals", "pay"])
        crib.agentic_tool("outer", mode="agentic", model="scripted:outer", tools=["inner"])
        result = await crib.invoke("outer", {"task": "go"})
        for approval in (await crib.approvals.page()).items:
            await crib.decide(approval.run_id, approval.position, approve=chance.random() < 0.7)
        if result.summary.status == "awaiting_approval":
            await crib.resume(result.run_id)
        return await exported(crib)


async def conversations(chance: Random) -> dict[str, bytes]:
    """An agent that is talked to several times."""
    async with crib_of(*(f"Answer {place}." for place in range(9))) as crib:
        filters = (ContentFilter(words=("magic",), applies_to=("model_input",)),)
        agent = AgentDefinition(name="clerk", llm=LLMConfig(model=MODEL), guardrails=filters)
        await crib.save(agent.tool())
        for place in range(chance.randrange(1, 4)):
            said = "Say the magic word." if chance.random() < 0.2 else f"Turn {place}"
            await crib.invoke("clerk", {"message": said}, conversation_id="c")
        return await exported(crib)


async def stopped(chance: Random) -> dict[str, bytes]:
    """A run that is cancelled, or runs out of time, in the middle of a call."""
    crm = Crm(1)
    begun = crm_that_hangs(crm)
    limits = Limits(timeout_s=0.05 if chance.random() < 0.3 else 60)
    async with crib_of(asks(SEARCH, SEARCH), "Never.", crm=crm) as crib:
        crib.agentic_tool("agent", mode="agentic", model=MODEL, tools=["search_deals"], limits=limits)
        going = asyncio.create_task(crib.invoke("agent", {"task": "go"}))
        if limits.timeout_s == 60:
            await begun.wait()
            [run] = await crib.store.journal.runs(crib.principal.realm)
            await crib.cancel(run.run_id, reason=f"because {chance.randrange(9)}")
        await going
        return await exported(crib)


async def galleries(chance: Random) -> dict[str, bytes]:
    """A scenario of the gallery of workflows: branches, fan-outs, people, waits, compensations, agents."""
    world = World()
    async with open_crib(world, clock=FastClock()) as crib:
        await publish(crib)
        await SCENARIOS[chance.choice(sorted(SCENARIOS.keys() - _LARGE))](crib, world)
        return await exported(crib)


async def crashes(chance: Random) -> dict[str, bytes]:
    """A process dies in the middle of a call, and another one goes on."""
    crm, store, clock = Crm(1), MemoryStore(), ManualClock()
    begun = crm_that_hangs(crm)
    models: Mapping[str, LanguageModel] = {MODEL: ScriptedModel([asks(SEARCH, MOVE), "Moved."])}
    first = Crib(store, models=models, clock=clock)
    first.add(*crm.tools)
    first.agentic_tool("agent", mode="agentic", model=MODEL, tools=["search_deals", "update_deals"], grounding="off")
    going = asyncio.create_task(first.invoke("agent", {"task": f"go {chance.randrange(9)}"}))
    await begun.wait()
    going.cancel()
    await asyncio.wait([going])
    clock.advance(60)
    async with Crib(store, models=models, clock=clock) as second:
        second.add(*Crm(1).tools)
        [run] = await store.journal.runs(second.principal.realm)
        await second.resume(run.run_id)
        return await exported(second)


SCENES: Final[tuple[Scene, ...]] = (
    single_calls,
    approvals,
    clients,
    agents,
    agents,
    agents,
    sequences,
    nested,
    conversations,
    stopped,
    galleries,
    crashes,
)


async def corpus(size: int) -> dict[str, bytes]:
    """Bundles of at least so many runs, nested ones not counted."""
    found: dict[str, bytes] = {}
    seed = 0
    while len(found) < size:
        for scene in SCENES:
            found |= await scene(Random(f"{scene.__name__}/{seed}"))
        seed += 1
    return found
