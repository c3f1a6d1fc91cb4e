"""A crib with tools and agents for the tests of testing."""

from collections.abc import AsyncGenerator

import pytest

from toolcrib import Crib, ToolContext, tool
from toolcrib.testing import new_crib

MODEL = "anthropic:claude-sonnet-4"


class Ledger:
    """What the tools did, in order."""

    def __init__(self) -> None:
        self.entries: list[str] = []


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
async def office(ledger: Ledger) -> AsyncGenerator[Crib]:
    """A crib for tests, with tools that write into the ledger, an agent and an agent that asks it."""

    @tool(side_effects="reads")
    async def search_deals(company: str, limit: int = 5) -> list[dict[str, str]]:
        """Deals of a company."""
        ledger.entries.append(f"searched {company}")
        return [{"id": "d1", "company": company}][:limit]

    @tool(side_effects="writes", idempotent=True)
    async def charge(order: str, amount: float, ctx: ToolContext) -> dict[str, str]:
        """Charge a card."""
        ledger.entries.append(f"charged {order}")
        return {"charge": order, "key": ctx.idempotency_key}

    @tool(side_effects="writes")
    async def send_mail(to: str) -> str:
        """Send a mail, which cannot be repeated safely."""
        ledger.entries.append(f"sent {to}")
        return "sent"

    @tool(side_effects="writes", requires_confirmation=True)
    async def send_offer(deal: str, price: int) -> dict[str, int]:
        """Send an offer."""
        ledger.entries.append(f"offered {price}")
        return {"price": price}

    crib = new_crib()
    crib.add(search_deals, charge, send_mail, send_offer)
    async with crib:
        crib.agent("desk", model=MODEL, tools=["search_deals", "send_offer"])
        crib.agent("boss", model="openai:gpt-5", delegates=["desk"])
        yield crib
