"""A small CRM in a crib, for agents of other frameworks."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from toolcrib import Crib, Principal, tool
from toolcrib.contracts import Json, JsonObject
from toolcrib.crib import ActingCrib

ANN = Principal(id="ann", grants=("ai://tools/crm/find_deals/execute", "ai://tools/crm/move_deal/execute"))
BOB = Principal(id="bob", grants=("ai://tools/crm/find_deals/execute",))


@dataclass
class Crm:
    """A crib with deals."""

    crib: Crib
    moved: list[str] = field(default_factory=list[str])

    @property
    def ann(self) -> ActingCrib:
        """The crib as Ann uses it, who may find and move deals."""
        return self.crib.acting_as(ANN)

    @property
    def bob(self) -> ActingCrib:
        """The crib as Bob uses it, who may find deals."""
        return self.crib.acting_as(BOB)

    async def runs(self) -> list[tuple[str, str, Json]]:
        """Who has called which tool with what, by the journal, the first one first."""
        requests = [run.request for run in reversed(await self.crib.store.journal.runs("default"))]
        return [(one.principal.id, one.tool.partition("@")[0], one.input) for one in requests]


@asynccontextmanager
async def small_crm() -> AsyncGenerator[Crm]:
    """A crib with four tools of a CRM, of which `send_offer` waits for a person."""
    async with Crib("memory://") as crib:
        crm = Crm(crib)

        @tool(category="crm", side_effects="reads")
        def find_deals(company: str, stage: str = "open") -> list[dict[str, str]]:
            """Find the deals of a company.

            Args:
                company: Part of its name.
                stage: Their stage.
            """
            if company == "Nobody":
                raise LookupError("there is no such company")
            return [{"id": "d1", "company": company, "stage": stage}]

        @tool(category="crm", side_effects="writes", idempotent=True)
        def move_deal(deal: str, to_stage: str) -> JsonObject:
            """Move a deal to a stage."""
            crm.moved.append(f"{deal} {to_stage}")
            return {"moved": deal}

        @tool(category="crm", side_effects="writes", requires_confirmation=True)
        def send_offer(deal: str) -> str:
            """Send an offer."""
            return f"offer for {deal} is sent"

        @tool(category="crm", side_effects="none")
        def get_version() -> str:
            """Get the version."""
            return "1"

        crib.add(find_deals, move_deal, send_offer, get_version)
        await crib.open()
        yield crm
