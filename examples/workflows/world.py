"""The systems that the gallery's workflows act on: small, in memory, and with a ledger of what was really done.

Some of them fail when a scenario wants them to. Nothing here knows anything about workflows.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolcrib import FunctionTool, tool
from toolcrib.contracts import ErrorCode, Reason
from toolcrib.core.executor import CallFailed, error


@dataclass(frozen=True)
class Contact:
    """A stored contact."""

    id: str


@dataclass(frozen=True)
class Booking:
    """Something booked."""

    booking: str


class World:
    """All systems together.

    Args:
        broken: Names of the things that do not work at present: `hotel`, `supplier`, a branch…
    """

    def __init__(self, *broken: str) -> None:
        self.broken = set(broken)
        self.done: list[str] = []
        """The ledger: every effect, in order."""
        self.asked: Counter[str] = Counter()
        """How often something was asked."""

    def tools(self) -> Sequence[FunctionTool[..., Any]]:
        """Everything that can be done here."""
        return (*self._shop(), *self._travel(), *self._office(), *self._stock(), *self._desks(), *self._market())

    def act(self, what: str) -> str:
        """Write an effect down; returns what can be told of it."""
        self.done.append(what)
        return what

    def need(self, what: str) -> None:
        """Fail if something does not work at present.

        Raises:
            CallFailed: It does not.
        """
        self.asked[what] += 1
        if what in self.broken:
            raise CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED, f"{what} cannot be had"))

    # Selling ----------------------------------------------------------------------------------------------------------

    def _shop(self) -> Sequence[FunctionTool[..., Any]]:
        @tool(name="shop.validate_order", side_effects="reads", category="shop")
        async def validate_order(order_id: str) -> dict[str, list[str]]:
            """What is wrong with an order."""
            return {"errors": ["the address has no postcode"] if order_id.endswith("7") else []}

        @tool(name="shop.ship", side_effects="writes", category="shop")
        async def ship(order_id: str) -> dict[str, str]:
            """Send the goods of an order."""
            self.act(f"ship {order_id}")
            return {"parcel": f"P-{order_id}"}

        @tool(name="shop.find_address", side_effects="reads", category="shop")
        async def find_address(order_id: str) -> dict[str, str]:
            """The whole address of an order, as the customer had it before."""
            return {"order_id": order_id, "postcode": "1010"}

        @tool(name="crm.store_contact", side_effects="writes", category="crm")
        async def store_contact(name: str, mail: str, row: int) -> Contact:
            """Store a contact."""
            self.act(f"store {mail}")
            return Contact(id=f"c{row}")

        @tool(name="crm.search_deals", side_effects="reads", category="crm")
        async def search_deals(company: str) -> dict[str, list[str]]:
            """The deals of a company."""
            return {"ids": [f"{company}-1", f"{company}-2"]}

        @tool(name="crm.update_deal", side_effects="writes", category="crm")
        async def update_deal(deal: str, stage: str) -> dict[str, str]:
            """Put a deal into another stage."""
            return {"deal": self.act(f"{deal} is in {stage}")}

        return validate_order, ship, find_address, store_contact, search_deals, update_deal

    # Travelling -------------------------------------------------------------------------------------------------------

    def _travel(self) -> Sequence[FunctionTool[..., Any]]:
        @tool(name="travel.book_flight", side_effects="writes", category="travel")
        async def book_flight(city: str) -> Booking:
            """Book a flight."""
            self.need("flight")
            return Booking(booking=self.act(f"flight to {city}"))

        @tool(name="travel.book_hotel", side_effects="writes", category="travel")
        async def book_hotel(city: str, nights: int) -> Booking:
            """Book a hotel."""
            self.need("hotel")
            return Booking(booking=self.act(f"{nights} nights in {city}"))

        @tool(name="travel.book_car", side_effects="writes", category="travel")
        async def book_car(city: str) -> Booking:
            """Book a car."""
            self.need("car")
            return Booking(booking=self.act(f"car in {city}"))

        @tool(name="travel.cancel", side_effects="writes", category="travel")
        async def cancel(booking: str) -> Booking:
            """Give something back that was booked."""
            return Booking(booking=self.act(f"cancel {booking}"))

        return book_flight, book_hotel, book_car, cancel

    # The office -------------------------------------------------------------------------------------------------------

    def _office(self) -> Sequence[FunctionTool[..., Any]]:
        @tool(name="finance.expense_limit", side_effects="reads", category="finance")
        async def expense_limit(employee: str) -> dict[str, float]:
            """How much an employee may spend without asking."""
            return {"usd": 500.0 if employee == "boss" else 50.0}

        @tool(name="finance.pay", side_effects="writes", category="finance")
        async def pay(employee: str, usd: float) -> dict[str, float]:
            """Pay an employee."""
            self.act(f"pay {employee} {usd:g}")
            return {"usd": usd}

        @tool(name="finance.notify", side_effects="writes", category="finance")
        async def notify(employee: str, text: str) -> dict[str, str]:
            """Tell somebody something."""
            self.act(f"tell {employee}: {text}")
            return {"sent": text}

        @tool(name="people.open_account", side_effects="writes", category="people")
        async def open_account(person: str, system: str) -> dict[str, str]:
            """Open an account in a system."""
            self.need(system)
            return {"account": self.act(f"{person}@{system}")}

        @tool(name="people.add_to_groups", side_effects="writes", category="people")
        async def add_to_groups(account: str) -> dict[str, list[str]]:
            """Give an account the groups that everybody has."""
            self.act(f"groups of {account}")
            return {"groups": ["everybody"]}

        @tool(name="people.welcome", side_effects="writes", category="people")
        async def welcome(person: str, accounts: list[str]) -> dict[str, str]:
            """Say welcome."""
            return {"text": self.act(f"welcome {person}: {', '.join(accounts)}")}

        @tool(name="branch.day", side_effects="reads", category="branch")
        async def day(branch: str) -> dict[str, float]:
            """What a branch has sold today."""
            self.need(branch)
            return {"usd": float(len(branch) * 100)}

        @tool(name="branch.close_day", side_effects="writes", category="branch")
        async def close_day(usd: float) -> dict[str, float]:
            """Write the day into the books."""
            self.act(f"close the day with {usd:g}")
            return {"usd": usd}

        @tool(name="branch.alarm", side_effects="writes", category="branch")
        async def alarm(text: str) -> dict[str, str]:
            """Tell the night watch something."""
            return {"sent": self.act(text)}

        return expense_limit, pay, notify, open_account, add_to_groups, welcome, day, close_day, alarm

    # Goods ------------------------------------------------------------------------------------------------------------

    def _stock(self) -> Sequence[FunctionTool[..., Any]]:
        @tool(name="stock.read", side_effects="reads", category="stock")
        async def read(supplier: str) -> dict[str, list[str]]:
            """The goods that a supplier has today."""
            self.need(supplier)
            return {"items": ["bolt", "nut"]}

        @tool(name="stock.read_archive", side_effects="reads", category="stock")
        async def read_archive(supplier: str) -> dict[str, list[str]]:
            """The goods that a supplier had yesterday."""
            return {"items": [f"old goods of {supplier}"]}

        @tool(name="stock.write", side_effects="writes", category="stock")
        async def write(items: list[str]) -> dict[str, int]:
            """Write the goods into our own list."""
            self.act(f"stock: {', '.join(items)}")
            return {"written": len(items)}

        @tool(name="supplier.send_quote", side_effects="writes", category="supplier")
        async def send_quote(supplier: str, usd: float) -> dict[str, str]:
            """Send an offer to the customer."""
            return {"quote": self.act(f"{supplier}: {usd:g}")}

        return read, read_archive, write, send_quote, *map(self._offering, ("north", "south", "west"))

    def _offering(self, supplier: str) -> FunctionTool[..., Any]:
        @tool(name=f"supplier.{supplier}", side_effects="reads", category="supplier")
        async def offer(part: str, count: int) -> dict[str, str | float]:
            """What a supplier wants for a part."""
            self.need(supplier)
            return {"supplier": supplier, "part": part, "usd": float(count * len(supplier))}

        return offer

    # Answers ----------------------------------------------------------------------------------------------------------

    def _desks(self) -> Sequence[FunctionTool[..., Any]]:
        @tool(name="desk.reply", side_effects="writes", category="desk")
        async def reply(text: str) -> dict[str, str]:
            """Send an answer."""
            return {"sent": self.act(text)}

        return reply, *map(self._desk, ("billing", "technical", "general"))

    def _desk(self, name: str) -> FunctionTool[..., Any]:
        @tool(name=f"desk.{name}", side_effects="reads", category="desk")
        async def answer(message: str) -> dict[str, str]:
            """What a desk answers."""
            return {"text": f"The {name} desk has read: {message}"}

        return answer

    def _market(self) -> Sequence[FunctionTool[..., Any]]:
        @tool(name="market.prices", side_effects="reads", category="market")
        async def prices(what: str) -> dict[str, list[float]]:
            """Prices of the last days."""
            self.asked[what] += 1
            return {"points": [1.0, 1.5, 1.25]}

        @tool(name="market.weather", side_effects="reads", category="market")
        async def weather(where: str) -> dict[str, str]:
            """The weather somewhere."""
            return {"weather": f"rain in {where}"}

        @tool(name="market.chart", side_effects="writes", category="market")
        async def chart(points: list[float]) -> dict[str, str]:
            """Draw a chart."""
            return {"url": self.act(f"chart of {len(points)} points")}

        return prices, weather, chart
