"""A served crib with one tool per outcome, and the calls that lead to each outcome."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

from tests.unit.mcp_server.served import on_a_port
from toolcrib import Crib, Limits, ScriptedModel, SharingOptions, ToolContext, tool
from toolcrib.contracts import OWNER, JsonObject, ModelError, Principal, Unauthenticated
from toolcrib.core.runs import Result
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.server import create_app
from toolcrib.llm import Cost, TokenUsage
from toolcrib.testing import calls

READER = Principal(
    id="reader",
    grants=("ai://tools/crm/find/execute", "ai://tools/crm/send_offer/read", "ai://agents/desk/read"),
)
"""May call `find`, and see `send_offer` and `desk`."""
PRINCIPALS = {"owner": OWNER, "reader": READER, "boss": Principal(id="boss")}


@dataclass(frozen=True, slots=True)
class World:
    """The crib, and the address at which it is served."""

    crib: Crib
    url: str
    store: str
    begun: asyncio.Event
    """A call of `wait_for_ever` goes on."""
    decided: list[Any] = field(default_factory=list[Any])
    """What people were shown that decided, as JSON."""

    def acting(self, case: "Case") -> ActingCrib:
        """The crib as the caller of a case."""
        return self.crib.acting_as(PRINCIPALS[case.key])

    async def newest(self) -> str | None:
        """The id of the run that began last."""
        runs = await self.crib.store.journal.runs("default")
        return runs[0].run_id if runs else None


_PLACES = {"approval_id", "call_id", "callers", "expires_at", "position", "requested_at", "root_run_id", "run_id"}
"""Of an approval: where and when its call waits."""

Sequel: TypeAlias = Callable[[World, str], Awaitable[Result]]
"""What a person does with a run that waits, and how the run then ends."""


def decided(*, approve: bool) -> Sequel:
    """Another person decides on the call that waits."""

    async def decide(world: World, run_id: str) -> Result:
        boss = world.crib.acting_as(PRINCIPALS["boss"])
        [waiting] = (await boss.approvals.page(run_id=run_id)).items
        shown = (await boss.approvals.get(waiting.approval_id)).model_dump(mode="json", exclude={"approval": _PLACES})
        world.decided.append(shown)
        await boss.approvals.decide(waiting.approval_id, approve=approve, reason=None if approve else "too much")
        return await world.crib.resume(run_id)

    return decide


async def answered(world: World, run_id: str) -> Result:
    """The question is answered."""
    return await world.crib.questions.answer(run_id, "large")


@dataclass(frozen=True, slots=True)
class Case:
    """A call that has a certain outcome."""

    tool: str
    arguments: JsonObject
    key: str = "owner"
    sequel: Sequel | None = None
    cancelled: bool = False
    """Whether somebody cancels it as soon as it has begun."""


def asked(words: str, agent: str = "desk", **fields: Any) -> Case:
    """A message to an agent."""
    return Case(agent, {"message": words}, **fields)


DEALS = "Which deals has Acme?"
CASES: dict[str, Case] = {
    "completed": Case("find", {"company": "Acme"}),
    "failed tool": Case("find", {"company": "Broken"}),
    "invalid arguments": Case("find", {"company": 7}),
    "time-out": Case("wait_long", {}),
    "invalid output": Case("count", {}),
    "over budget": Case("paid", {}),
    "cancelled": Case("wait_for_ever", {}, cancelled=True),
    "queued": Case("elsewhere", {}),
    "awaits approval": Case("send_offer", {"deal": "d1"}),
    "approved": Case("send_offer", {"deal": "d1"}, sequel=decided(approve=True)),
    "rejected": Case("send_offer", {"deal": "d1"}, sequel=decided(approve=False)),
    "awaits answer": Case("measure", {}),
    "answered": Case("measure", {}, sequel=answered),
    "awaits client": Case("pick", {}),
    "agent completed": asked(DEALS),
    "agent stopped by a limit": asked(DEALS, "restless"),
    "agent failed": asked("Fail"),
    "agent over budget": asked(DEALS, "dear"),
    "agent cancelled": asked("Wait", cancelled=True),
    "agent awaits approval": asked("Send the offer"),
    "agent approved": asked("Send the offer", sequel=decided(approve=True)),
    "agent rejected": asked("Send the offer", sequel=decided(approve=False)),
    "agent awaits answer": asked("Measure"),
    "agent answered": asked("Measure", sequel=answered),
    "agent awaits client": asked("Pick"),
    "not permitted": Case("send_offer", {"deal": "d1"}, key="reader"),
    "not visible": Case("wait_long", {}, key="reader"),
    "unknown tool": Case("no_such_tool", {}),
    "agent not permitted": asked(DEALS, key="reader"),
    "agent not visible": asked(DEALS, "dear", key="reader"),
}


@tool(category="crm", side_effects="reads")
async def find(company: str) -> list[dict[str, str]]:
    """Find the deals of a company."""
    if company == "Broken":
        raise LookupError("the CRM is down")
    return [{"company": company}]


@tool(category="crm", side_effects="reads", timeout_s=0.02)
async def wait_long() -> str:
    """Never answers."""
    await asyncio.Event().wait()
    return ""


@tool(category="crm", side_effects="reads")
async def count() -> int:
    """Promises a number."""
    return "many"  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


@tool(category="crm", side_effects="reads")
async def paid() -> str:
    """Costs a call of the budget."""
    return "done"


@tool(category="crm", side_effects="writes", requires_confirmation=True)
async def send_offer(deal: str) -> dict[str, str]:
    """Send an offer."""
    return {"sent": deal}


@tool(category="crm", side_effects="reads", runs_on="client")
async def pick() -> dict[str, str]:
    """Let the person at the client choose."""
    return {}


@tool(category="crm", side_effects="none")
async def measure(context: ToolContext) -> str:
    """Ask for a size."""
    return f"It is {await context.ask('Which size?', str)}."


@tool(category="crm", side_effects="none")
async def elsewhere() -> str:
    """Runs in another process."""
    return ""


class PricedModel(ScriptedModel):
    """A hundredth of a cent per token that it says."""

    def cost(self, usage: TokenUsage, at: datetime) -> Cost:
        """The cost of a request."""
        return Cost(Decimal(usage.output) / 10_000, "table")


async def _authenticate(token: str) -> Principal:
    if token not in PRINCIPALS:
        raise Unauthenticated("unknown token; send the name of a principal")
    return PRINCIPALS[token]


_WANTED: dict[str, Any] = {
    DEALS: calls("find", company="Acme"),
    "Fail": ModelError("auth", "the key is refused", status=401),
    "Wait": calls("wait_for_ever"),
    "Send the offer": calls("send_offer", deal="d1"),
    "Measure": calls("measure"),
    "Pick": calls("pick"),
}


def _answer(request: Any) -> Any:
    last = request.messages[-1]
    said = last.text.rpartition("\n")[2] if last.role == "user" else ""
    return _WANTED.get(said, "Acme has one deal.")


def _wait_for_ever(begun: asyncio.Event) -> Any:
    @tool(category="crm", side_effects="reads")
    async def wait_for_ever() -> str:
        """Goes on until it is cancelled."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    return wait_for_ever


@asynccontextmanager
async def served_world(folder: Path) -> AsyncGenerator[World]:
    """The tools of all cases on SQLite, served on a port."""
    store = f"sqlite:///{folder / 'crib.db'}"
    models = {
        "scripted:model": PricedModel(_answer),
        "scripted:restless": ScriptedModel(lambda _: calls("find", company="Acme")),
    }
    async with Crib(store) as other:
        other.add(elsewhere)
        await other.open()
    limits = ["tool=paid 1 calls/day", "agent=dear 0.0001 usd/day"]
    crib = Crib(store, models=models, environment={}, sharing=SharingOptions(budgets=limits, worker_wait_s=0.05))
    begun = asyncio.Event()
    tools = [find, send_offer, pick, measure, _wait_for_ever(begun)]
    crib.add(*tools, wait_long, count, paid)
    crib.agent("desk", model="scripted:model", tools=tools, category="sales")
    crib.agent("restless", model="scripted:restless", tools=[find], limits=Limits(max_iterations=1))
    crib.agent("dear", model="scripted:model", tools=[find])
    app = create_app(crib, _authenticate)
    async with app.router.lifespan_context(app), on_a_port(app) as url:
        yield World(crib, url.removesuffix("/mcp"), store, begun)
