"""Orders, found by a filter in words (`status eq 'Packed' and total gt 500`); labels are stored as people say them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import BaseModel, Field

from tests.corpus import records
from tests.corpus.corpus import Action, Change, Condition, Op, Value
from tests.corpus.systems.base import System
from toolcrib import FunctionTool, tool
from toolcrib.contracts import InvalidInput, Json, JsonObject

CUSTOMERS: Final = (
    *("Café Lumière", "Café Luna", "Harbor Hotel", "Harbor Tools", "Green Grocer"),
    *("Kiosk 24", "Mountain Lodge", "Pixel Print", "Studio Nord", "Velo Max"),
)
STATUSES: Final = ("Placed", "Paid", "Packed", "Shipped", "Delivered", "Returned", "Cancelled")
WAREHOUSES: Final = ("Antwerp", "Gdansk", "Lyon", "Porto", "Turin")
CARRIERS: Final = ("DHL", "DPD", "UPS", "PostNord", "Own van")
COUNTRIES: Final = ("Belgium", "France", "Germany", "Italy", "Poland", "Portugal", "Sweden")
HANDLERS: Final = (
    *("Beatriz Almeida", "Boris Hansen", "Dana Fischer", "Emeka Okafor", "Ines Silva", "Ivan Petrov", "Kofi Abara"),
    *("Luca Moreau", "Mei Wang", "Nadia Cohen", "Rafael Ito", "Rosa Novák", "Rosa García", "Tariq Haddad"),
    *("Viktor Bauer", "Zoë Jansen"),
)

Status: TypeAlias = Literal["Placed", "Paid", "Packed", "Shipped", "Delivered", "Returned", "Cancelled"]
Warehouse: TypeAlias = Literal["Antwerp", "Gdansk", "Lyon", "Porto", "Turin"]
Carrier: TypeAlias = Literal["DHL", "DPD", "UPS", "PostNord", "Own van"]
Handler: TypeAlias = Literal[
    "Beatriz Almeida",
    "Boris Hansen",
    "Dana Fischer",
    "Emeka Okafor",
    "Ines Silva",
    "Ivan Petrov",
    "Kofi Abara",
    "Luca Moreau",
    "Mei Wang",
    "Nadia Cohen",
    "Rafael Ito",
    "Rosa Novák",
    "Rosa García",
    "Tariq Haddad",
    "Viktor Bauer",
    "Zoë Jansen",
]

_WORDS: Final[Mapping[Op, str]] = {
    "is": "eq",
    "on": "eq",
    "is_not": "ne",
    "more_than": "gt",
    "after": "gt",
    "at_least": "ge",
    "on_or_after": "ge",
    "less_than": "lt",
    "before": "lt",
    "at_most": "le",
    "on_or_before": "le",
}
_OPS: Final[Mapping[str, Op]] = {
    "eq": "is",
    "ne": "is_not",
    "gt": "more_than",
    "ge": "at_least",
    "lt": "less_than",
    "le": "at_most",
}
_TEXT: Final = r"'((?:[^']|'')*)'"
_TERM: Final = re.compile(
    rf"\s*(?:(?P<sought>\w+)\s+(?P<op>eq|ne|gt|ge|lt|le)\s+(?:{_TEXT}|(?P<day>\d{{4}}-\d\d-\d\d)|(?P<number>-?\d+))"
    rf"|contains\((?P<field>\w+)\s*,\s*{_TEXT}\))\s*(?P<more>and\s|$)"
)


class FoundOrders(BaseModel):
    """What a search brings."""

    orders: list[dict[str, Any]]


class OrderChanges(BaseModel):
    """What can be changed of an order."""

    status: Status | None = None
    warehouse: Warehouse | None = None
    carrier: Carrier | None = None
    handler: Handler | None = None
    ship_by: str | None = None
    note: str | None = None


def read_filter(text: str) -> Iterator[Condition]:
    """The conditions of a filter, all of which must be met.

    Raises:
        InvalidInput: It is no filter.
    """
    place = 0
    while place < len(text):
        found = _TERM.match(text, place)
        if found is None:
            raise InvalidInput(f"no filter: {text[place : place + 60]!r}; write e.g. total gt 5 and status eq 'Paid'")
        texts = next((item for item in (found[3], found[7]) if item is not None), None)
        value: Value = found["day"] or (int(found["number"]) if found["number"] else (texts or "").replace("''", "'"))
        yield Condition(found["field"] or found["sought"], _OPS.get(found["op"] or "", "contains"), value)
        place = found.end()


class Orders(System):
    """The order database of a wholesaler."""

    name = "orders"
    comparisons: ClassVar = _WORDS
    fields = (
        records.Field("id", "id"),
        records.Field("customer", "label", CUSTOMERS),
        records.Field("status", "label", STATUSES),
        records.Field("warehouse", "label", WAREHOUSES),
        records.Field("carrier", "label", CARRIERS),
        records.Field("handler", "label", HANDLERS),
        records.Field("country", "label", COUNTRIES),
        records.Field("total", "number"),
        records.Field("items", "number"),
        records.Field("ordered_on", "day"),
        records.Field("ship_by", "day"),
        records.Field("note", "text", optional=True),
    )

    @classmethod
    def new_id(cls, number: int) -> Value:
        """Ids are numbers."""
        return 41_003 + number * 13

    def steps(self, action: Action) -> tuple[str, str]:
        """One tool for each action."""
        return "search_orders", {"delete": "delete_orders", "create": "create_order"}.get(action, "update_orders")

    def selecting(self, where: Sequence[Condition], *, spoken: bool) -> JsonObject:
        """A filter in words; there are no labels but the stored ones."""
        return {"filter": " and ".join(map(_term, where))}

    def writing(self, action: Action, changes: Sequence[Change], ids: Sequence[Json], *, spoken: bool) -> JsonObject:
        """Ids, and the changes beside them."""
        values: JsonObject = {one.field: one.value for one in changes}
        if action == "create":
            return values
        return {"ids": list(ids)} if action == "delete" else {"ids": list(ids), "changes": values}

    def make_tools(self) -> Sequence[FunctionTool[..., Any]]:
        """Search, update, delete, create."""

        @tool(side_effects="reads")
        async def search_orders(filter: str) -> FoundOrders:
            """Find orders by a filter such as: status eq 'Packed' and total gt 500 and contains(note,'gift').

            Fields: id, customer, status, warehouse, carrier, handler, country, total, items, ordered_on, ship_by, note.
            """
            return FoundOrders(orders=self.find(list(read_filter(filter))))

        @tool(side_effects="writes", deletes=False, idempotent=True)
        async def update_orders(
            ids: Annotated[list[int], Field(min_length=1, max_length=15)], changes: OrderChanges
        ) -> dict[str, Any]:
            """Change up to 15 orders alike."""
            return self.change(ids, changes.model_dump(exclude_none=True))

        @tool(side_effects="writes", deletes=True, idempotent=True)
        async def delete_orders(ids: Annotated[list[int], Field(min_length=1, max_length=15)]) -> dict[str, Any]:
            """Delete up to 15 orders for good."""
            return self.remove(ids)

        @tool(side_effects="writes", deletes=False)
        async def create_order(
            customer: str,
            items: int,
            *,
            total: float | None = None,
            handler: Handler | None = None,
            country: str | None = None,
            carrier: Carrier | None = None,
            warehouse: Warehouse | None = None,
            ship_by: str | None = None,
            status: Status | None = None,
        ) -> dict[str, Any]:
            """Place an order."""
            given: JsonObject = {"customer": customer, "items": items, "total": total, "handler": handler}
            given |= {"country": country, "carrier": carrier, "warehouse": warehouse}
            return self.create({**given, "ship_by": ship_by, "status": status})

        return search_orders, update_orders, delete_orders, create_order


def _term(condition: Condition) -> str:
    value = condition.value
    is_day = re.fullmatch(r"\d{4}-\d\d-\d\d", str(value))
    written = str(value) if is_day or isinstance(value, int) else "'" + value.replace("'", "''") + "'"
    if condition.op == "contains":
        return f"contains({condition.field},{written})"
    return f"{condition.field} {_WORDS[condition.op]} {written}"
