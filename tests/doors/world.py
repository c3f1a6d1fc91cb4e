"""A served crib with one tool per outcome, and the calls that lead to each outcome."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.unit.mcp_server.served import on_a_port
from toolcrib import Crib, Limits, ScriptedModel, SharingOptions, tool
from toolcrib.contracts import OWNER, JsonObject, Principal, Unauthenticated
from toolcrib.core.runs import Result
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.server import create_app
from toolcrib.testing import calls

READER = Principal(id="reader", grants=("ai://tools/crm/find/execute", "ai://tools/crm/send_offer/read"))
"""May call `find`, and see `send_offer`."""
PRINCIPALS = {"owner": OWNER, "reader": READER, "boss": Principal(id="boss")}


@dataclass(frozen=True, slots=True)
class Case:
    """A call that has a certain outcome."""

    tool: str
    arguments: JsonObject
    key: str = "owner"
    decision: bool | None = None
    """How a person decides on it, if it waits for one."""


CASES: dict[str, Case] = {
    "completed": Case("find", {"company": "Acme"}),
    "failed tool": Case("find", {"company": "Broken"}),
    "invalid arguments": Case("find", {"company": 7}),
    "time-out": Case("wait_long", {}),
    "invalid output": Case("count", {}),
    "over budget": Case("paid", {}),
    "awaits approval": Case("send_offer", {"deal": "d1"}),
    "approved": Case("send_offer", {"deal": "d1"}, decision=True),
    "rejected": Case("send_offer", {"deal": "d1"}, decision=False),
    "awaits client": Case("pick", {}),
    "agent completed": Case("desk", {"message": "Which deals has Acme?"}),
    "agent stopped by a limit": Case("restless", {"message": "Which deals has Acme?"}),
    "not permitted": Case("send_offer", {"deal": "d1"}, key="reader"),
    "not visible": Case("wait_long", {}, key="reader"),
    "unknown tool": Case("no_such_tool", {}),
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


@dataclass(frozen=True, slots=True)
class World:
    """The crib, and the address at which it is served."""

    crib: Crib
    url: str
    store: str

    def acting(self, case: Case) -> ActingCrib:
        """The crib as the caller of a case."""
        return self.crib.acting_as(PRINCIPALS[case.key])

    async def decide(self, run_id: str, approve: bool) -> Result:
        """Decide on the call of a run that waits, as another person, and follow the run to its end."""
        boss = self.crib.acting_as(PRINCIPALS["boss"])
        [waiting] = (await boss.approvals.page(run_id=run_id)).items
        await boss.approvals.decide(waiting.approval_id, approve=approve, reason=None if approve else "too much")
        return await self.crib.resume(run_id)

    async def newest(self) -> str | None:
        """The id of the run that began last."""
        runs = await self.crib.store.journal.runs("default")
        return runs[0].run_id if runs else None


async def _authenticate(token: str) -> Principal:
    if token not in PRINCIPALS:
        raise Unauthenticated("unknown token; send the name of a principal")
    return PRINCIPALS[token]


def _answer(request: Any) -> Any:
    if request.messages[-1].role == "user" and "Acme?" in request.messages[-1].text:
        return calls("find", company="Acme")
    return "Acme has one deal."


@asynccontextmanager
async def served_world(folder: Path) -> AsyncGenerator[World]:
    """The tools of all cases on SQLite, served on a port."""
    store = f"sqlite:///{folder / 'crib.db'}"
    models = {
        "scripted:model": ScriptedModel(_answer),
        "scripted:restless": ScriptedModel(lambda _: calls("find", company="Acme")),
    }
    crib = Crib(store, models=models, environment={}, sharing=SharingOptions(budgets=["tool=paid 1 calls/day"]))
    crib.add(find, wait_long, count, paid, send_offer, pick)
    crib.agent("desk", model="scripted:model", tools=[find])
    crib.agent("restless", model="scripted:restless", tools=[find], limits=Limits(max_iterations=1))
    app = create_app(crib, _authenticate)
    async with app.router.lifespan_context(app), on_a_port(app) as url:
        yield World(crib, url.removesuffix("/mcp"), store)


Door = Callable[[World, str, Case], Awaitable[str]]
"""Makes a call as a user of this interface does, and says in a word what was seen."""


def http_client(world: World, case: Case) -> httpx2.AsyncClient:
    """A client with the key of a case's caller."""
    headers = {"Authorization": f"Bearer {case.key}"}
    return httpx2.AsyncClient(base_url=world.url, headers=headers, timeout=30, trust_env=False)
