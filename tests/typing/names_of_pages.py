"""What the snippets of the pages use and do not define, as tests/docs/test_snippets.py gives it to them."""

from typing import Any

from sqlalchemy import Column, Engine, String, Table, create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from toolcrib import Crib, tool

crib = Crib("memory://")
document: dict[str, Any] = {}
pepper = b"p" * 32
server = "https://agents.example"
key = "tcb_key"
desk = crib.agent("desk", tools=["search_deals"])
deals = crib.agentic_tool("deals", mode="deterministic")  # as on the page about agentic tools


@tool(side_effects="reads")
async def search_deals(company: str = "", stage: str = "", limit: int = 5) -> list[dict[str, Any]]:
    """Deals of a company or in a stage."""
    return [{"name": company or stage, "days_open": 40, "limit": limit}]


class Base(DeclarativeBase):
    """The base of the user's tables."""


class Customer(Base):
    """A table of the user."""

    __tablename__ = "customers"
    id: Mapped[int] = mapped_column(primary_key=True)


tags_table = Table("tags", Base.metadata, Column("name", String(20), primary_key=True))
engine: Engine = create_engine("sqlite://")
