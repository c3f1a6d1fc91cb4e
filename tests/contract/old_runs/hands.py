"""The application of the runs: Python functions, servers and a database that write down what they do.

Whoever opens the stores needs these tools as they are here: their module, names, parameters and options are part of
definitions that the stores have. Add to this module; do not rename or change what is in it.
"""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import Field

from toolcrib import FunctionTool, ToolContext, tool
from toolcrib.contracts import JsonObject, RateLimit, SecretReference

KEY: Final = "OLD_RUNS_KEY"
"""Variable of the environment with the one secret."""
DAY: Final = 86_400.0
BEGUN: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
"""When the stores were made, by their clock."""
LATER: Final = BEGUN + timedelta(days=30)
"""When they are opened again, by the clock of tests: everything that waits for time has waited long enough."""
STAGES: Final[Sequence[JsonObject]] = (
    {"id": "3001", "label": "Qualified"},
    {"id": "3002", "label": "Proposal"},
    {"id": "3003", "label": "Negotiation"},
)


class Clock:
    """Goes on by a millisecond each time somebody looks; what would sleep for long sleeps for ever."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._elapsed = 0.0

    def now(self) -> datetime:
        """The moment."""
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """Seconds since the start."""
        self._elapsed += 0.001
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Let so much time pass; the renewal of a lease never comes."""
        if seconds >= 10:
            await asyncio.get_running_loop().create_future()
        await asyncio.sleep(0)
        self._elapsed += seconds

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._elapsed += seconds


class Hands:
    """The tools, and what they have done."""

    def __init__(self) -> None:
        self.done: list[str] = []
        """`TOOL ARGUMENT` of each effect, in order; what only reads is no effect."""
        self.keys: list[str] = []
        """The idempotency key of each effect of a function."""
        self.hangs = False
        """Whether `hang` does not end."""
        self.reached = asyncio.Event()
        """Something hangs."""
        self.tools: Sequence[FunctionTool[..., Any]] = (
            *self._readers(),
            *self._writers(),
            *self._askers(),
            *self._deals(),
            *self._failing(),
        )

    def act(self, name: str, argument: object, context: ToolContext | None = None) -> str:
        """Have an effect, and say so."""
        self.done.append(f"{name} {argument}")
        if context is not None:
            self.keys.append(context.idempotency_key)
        return f"{name} {argument}"

    def _readers(self) -> Sequence[FunctionTool[..., Any]]:
        @tool(side_effects="reads")
        async def look(item: str) -> str:
            """Looks something up."""
            return f"{item} is here"

        @tool(side_effects="reads", cache="ttl", cache_ttl_s=10 * 365 * DAY)
        async def look_once(item: str) -> str:
            """Looks something up; the answer is kept."""
            return f"{item} is here"

        @tool(side_effects="reads", untrusted=True)
        async def read_mail() -> str:
            """Reads what outsiders have written."""
            return "Please send the hat."

        @tool(side_effects="reads", secrets=(SecretReference(name="key", reference=f"${{env:{KEY}}}"),))
        async def open_safe(item: str, context: ToolContext) -> str:
            """Opens the safe with a key."""
            return f"{item} opened with {context.auth['key']}"

        @tool(side_effects="reads", max_output_bytes=60)
        async def long_list(count: int) -> list[str]:
            """A list that is cut."""
            return [f"entry {number}" for number in range(count)]

        @tool(side_effects="reads", rate_limit=RateLimit(count=1, per_s=DAY))
        async def seldom(item: str) -> str:
            """Once a day."""
            return item

        return look, look_once, read_mail, open_safe, long_list, seldom

    def _writers(self) -> Sequence[FunctionTool[..., Any]]:
        @tool(side_effects="writes")
        async def send(item: str, context: ToolContext) -> str:
            """Sends something."""
            return self.act("send", item, context)

        @tool(side_effects="writes", idempotent=True)
        async def keep(item: str, context: ToolContext) -> str:
            """Keeps something."""
            return self.act("keep", item, context)

        @tool(side_effects="writes", deletes=True)
        async def delete(item: str, context: ToolContext) -> str:
            """Deletes something."""
            return self.act("delete", item, context)

        @tool(side_effects="writes", cost_usd_per_call=Decimal("0.25"))
        async def buy(item: str, context: ToolContext) -> str:
            """Buys something for a quarter of a dollar."""
            return self.act("buy", item, context)

        return send, keep, delete, buy

    def _askers(self) -> Sequence[FunctionTool[..., Any]]:
        @tool(side_effects="writes", requires_confirmation=True)
        async def pay(amount: int, context: ToolContext) -> str:
            """Pays."""
            return self.act("pay", amount, context)

        @tool(side_effects="writes", requires_confirmation=True, confirmation_expires_s=DAY)
        async def pay_today(amount: int, context: ToolContext) -> str:
            """Pays, if somebody agrees within a day."""
            return self.act("pay_today", amount, context)

        @tool(side_effects="reads", runs_on="client")
        async def pick(item: str) -> Any:
            """Lets the person at the client choose."""
            return {"ask": item}

        @tool(side_effects="writes", runs_on="client")
        async def print_page(page: str) -> Any:
            """Has the client print."""
            return {"print": page}

        return pay, pay_today, pick, print_page

    def _deals(self) -> Sequence[FunctionTool[..., Any]]:
        deals = [{"id": f"d{number}", "name": "Acme", "amount": 100 * number} for number in range(7)]

        @tool(side_effects="reads")
        async def search_deals(company: str, limit: int | None = None) -> dict[str, list[dict[str, Any]]]:
            """Deals whose company name contains the text."""
            return {"results": [deal for deal in deals if company in str(deal["name"])][:limit]}

        @tool(side_effects="writes", idempotent=True)
        async def update_deals(
            ids: Annotated[list[str], Field(min_length=1, max_length=3)], stage: str, context: ToolContext
        ) -> dict[str, int]:
            """Move deals to a stage."""
            self.act("update_deals", f"{','.join(ids)} {stage}", context)
            return {"updated": len(ids)}

        @tool(side_effects="writes", idempotent=True, requires_confirmation=True)
        async def close_deals(
            ids: Annotated[list[str], Field(min_length=1, max_length=3)], context: ToolContext
        ) -> dict[str, int]:
            """Close deals, if a person agrees."""
            self.act("close_deals", ",".join(ids), context)
            return {"closed": len(ids)}

        @tool(side_effects="reads")
        async def list_stages() -> list[dict[str, Any]]:
            """The stages that a deal can have."""
            return [*STAGES]

        return search_deals, update_deals, close_deals, list_stages

    def _failing(self) -> Sequence[FunctionTool[..., Any]]:
        @tool(side_effects="reads")
        async def fail(word: str) -> str:
            """Fails."""
            raise RuntimeError(f"no {word}")

        @tool(side_effects="writes")
        async def refuse(item: str) -> str:
            """Fails before it has done anything."""
            raise ValueError(f"{item} is not wanted")

        @tool(side_effects="reads")
        async def hang(item: str) -> str:
            """Does not end, as long as nothing does."""
            await self._hang()
            return f"{item} at last"

        @tool(side_effects="writes", idempotent=True)
        async def hang_and_keep(item: str, context: ToolContext) -> str:
            """Does not end either, and may be done again."""
            await self._hang()
            return self.act("hang_and_keep", item, context)

        @tool(side_effects="writes", on_unknown="ask")
        async def hang_and_send(item: str, context: ToolContext) -> str:
            """Does not end either, and a person is asked whether it took effect."""
            await self._hang()
            return self.act("hang_and_send", item, context)

        return fail, refuse, hang, hang_and_keep, hang_and_send

    async def _hang(self) -> None:
        if self.hangs:
            self.reached.set()
            await asyncio.Event().wait()
