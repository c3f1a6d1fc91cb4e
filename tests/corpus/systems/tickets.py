"""Tickets, found by flat parameters, one for each field and comparison; labels are words of the schema, people ids."""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from tests.corpus import records
from tests.corpus.corpus import Action, Change, Condition, Op, Value
from tests.corpus.systems.base import System
from toolcrib import FunctionTool, tool
from toolcrib.contracts import Json, JsonObject, ReferenceSource

CUSTOMERS: Final = (
    *("Northwind Traders", "Northwind Foods", "Contoso", "Fabrikam", "Litware"),
    *("Proseware", "Tailspin Toys", "Wingtip", "Adventure Works", "Blue Yonder"),
)
STATUSES: Final = ("New", "Open", "Waiting for customer", "On hold", "Solved", "Closed")
PRIORITIES: Final = ("Low", "Normal", "High", "Urgent")
TOPICS: Final = ("Billing", "Login", "Delivery", "Defect", "Feature request", "Question")
TAGS: Final = ("vip", "outage", "refund", "legal")
ASSIGNEES: Final = {
    name: 9000 + (number * 37) % 101
    for number, name in enumerate(
        (
            *("Aisha Bauer", "Aisha Haddad", "Alan Moreau", "Elif Kaya", "Farid Cohen", "Grace Okafor", "Hana Tanaka"),
            *("Ivan Marek", "Jana Dubois", "Kofi Mensah", "Nadia Patel", "Noah Kim", "Noah Schmidt", "Olga Ivanova"),
            *("Omar Castro", "Viktor Hansen"),
        )
    )
}

Status: TypeAlias = Literal["new", "open", "waiting_for_customer", "on_hold", "solved", "closed"]
Priority: TypeAlias = Literal["low", "normal", "high", "urgent"]
Topic: TypeAlias = Literal["billing", "login", "delivery", "defect", "feature_request", "question"]
Tag: TypeAlias = Literal["vip", "outage", "refund", "legal"]

_LABEL_SUFFIXES: Final[dict[Op, str]] = {"is": "", "is_not": "_not"}
_DAY_SUFFIXES: Final[dict[Op, str]] = {
    "on": "_on",
    "on_or_after": "_from",
    "on_or_before": "_to",
    "after": "_after",
    "before": "_before",
}
_NUMBER_SUFFIXES: Final[dict[Op, str]] = {
    "is": "",
    "at_least": "_min",
    "at_most": "_max",
    "more_than": "_over",
    "less_than": "_under",
}


class TicketSearch(BaseModel):
    """What tickets can be found by; all that is given must be met."""

    model_config = ConfigDict(extra="forbid")

    customer: str | None = None
    customer_not: str | None = None
    status: Status | None = None
    status_not: Status | None = None
    priority: Priority | None = None
    priority_not: Priority | None = None
    topic: Topic | None = None
    topic_not: Topic | None = None
    tag: Tag | None = None
    tag_not: Tag | None = None
    assignee_id: int | None = None
    assignee_id_not: int | None = None
    subject_contains: str | None = None
    reopened: int | None = None
    reopened_min: int | None = None
    reopened_max: int | None = None
    reopened_over: int | None = None
    reopened_under: int | None = None
    opened_on: str | None = None
    opened_from: str | None = None
    opened_to: str | None = None
    opened_after: str | None = None
    opened_before: str | None = None
    due_on: str | None = None
    due_from: str | None = None
    due_to: str | None = None
    due_after: str | None = None
    due_before: str | None = None


class FoundTickets(BaseModel):
    """What a search brings."""

    tickets: list[dict[str, Any]]


def parameter_of(condition: Condition) -> str:
    """The parameter of the search that says a condition."""
    match condition.field:
        case "opened_on" | "due_on":
            return condition.field.removesuffix("_on") + _DAY_SUFFIXES[condition.op]
        case "reopened":
            return condition.field + _NUMBER_SUFFIXES[condition.op]
        case "subject":
            return "subject_contains"
        case "assignee":
            return "assignee_id" + _LABEL_SUFFIXES[condition.op]
        case field:
            return field + _LABEL_SUFFIXES[condition.op]


def _conditions() -> dict[str, tuple[str, Op]]:
    """What each parameter says."""
    found: dict[str, tuple[str, Op]] = {"subject_contains": ("subject", "contains")}
    compared = {"opened_on": _DAY_SUFFIXES, "due_on": _DAY_SUFFIXES, "reopened": _NUMBER_SUFFIXES}
    for field, suffixes in {**compared, **dict.fromkeys(_LABELLED, _LABEL_SUFFIXES)}.items():
        found |= {parameter_of(Condition(field, op, "")): (field, op) for op in suffixes}
    return found


_LABELLED: Final = ("customer", "status", "priority", "topic", "tag", "assignee")
_CONDITIONS: Final = _conditions()


class Tickets(System):
    """The help desk."""

    name = "tickets"
    fields = (
        records.Field("customer", "label", CUSTOMERS),
        records.Field("subject", "text"),
        records.Field("status", "label", STATUSES),
        records.Field("priority", "label", PRIORITIES),
        records.Field("topic", "label", TOPICS),
        records.Field("assignee", "label", tuple(ASSIGNEES)),
        records.Field("tag", "label", TAGS, optional=True),
        records.Field("opened_on", "day"),
        records.Field("due_on", "day"),
        records.Field("reopened", "number"),
    )
    names: ClassVar = {"assignee": "assignee_id"}
    values: ClassVar = {
        "assignee": ASSIGNEES,
        **{
            field: {label: label.lower().replace(" ", "_") for label in labels}
            for field, labels in {"status": STATUSES, "priority": PRIORITIES, "topic": TOPICS}.items()
        },
    }
    references = (
        ReferenceSource(name="agents", tool="list_agents", label="name", applies_to=("assignee_id", "assignee_id_not")),
    )
    listed = frozenset({"assignee"})

    @classmethod
    def new_id(cls, number: int) -> Value:
        """Ids have letters and digits."""
        return f"T-{2041 + number * 3}"

    def steps(self, action: Action) -> tuple[str, str]:
        """One tool for each action."""
        return "search_tickets", {"delete": "delete_tickets", "create": "create_ticket"}.get(action, "update_tickets")

    def selecting(self, where: Sequence[Condition], *, spoken: bool) -> JsonObject:
        """A parameter for each condition."""
        return {parameter_of(one): self.own(one.field, one.value, spoken=spoken) for one in where}

    def writing(self, action: Action, changes: Sequence[Change], ids: Sequence[Json], *, spoken: bool) -> JsonObject:
        """Ids, and flat values beside them."""
        values = {self.called(one.field): self.own(one.field, one.value, spoken=spoken) for one in changes}
        return values if action == "create" else {"ticket_ids": list(ids), **values}

    def make_tools(self) -> Sequence[FunctionTool[..., Any]]:
        """Search, update, create, delete, and the list of people."""

        @tool(side_effects="reads", input_schema=TicketSearch.model_json_schema())
        async def search_tickets(**given: Any) -> FoundTickets:
            """Find tickets that meet all that is given."""
            said = TicketSearch.model_validate(given).model_dump(exclude_none=True)
            return FoundTickets(tickets=self.find([self._condition(name, value) for name, value in said.items()]))

        @tool(side_effects="writes", deletes=False, idempotent=True)
        async def update_tickets(
            ticket_ids: Annotated[list[str], Field(min_length=1, max_length=20)],
            *,
            status: Status | None = None,
            priority: Priority | None = None,
            topic: Topic | None = None,
            tag: Tag | None = None,
            assignee_id: int | None = None,
            due_on: str | None = None,
        ) -> dict[str, Any]:
            """Change up to 20 tickets alike."""
            labels: JsonObject = {"status": status, "priority": priority, "topic": topic, "tag": tag}
            return self.change(ticket_ids, {**labels, "assignee_id": assignee_id, "due_on": due_on})

        @tool(side_effects="writes", deletes=True, idempotent=True)
        async def delete_tickets(
            ticket_ids: Annotated[list[str], Field(min_length=1, max_length=20)],
        ) -> dict[str, Any]:
            """Delete up to 20 tickets for good."""
            return self.remove(ticket_ids)

        return (search_tickets, update_tickets, delete_tickets, *self._more_tools())

    def _more_tools(self) -> Sequence[FunctionTool[..., Any]]:
        @tool(side_effects="writes", deletes=False)
        async def create_ticket(
            customer: str,
            subject: str,
            topic: Topic,
            *,
            priority: Priority | None = None,
            tag: Tag | None = None,
            status: Status | None = None,
            assignee_id: int | None = None,
        ) -> dict[str, Any]:
            """Open a ticket for a customer."""
            given: JsonObject = {"customer": customer, "subject": subject, "topic": topic, "priority": priority}
            return self.create({**given, "tag": tag, "status": status, "assignee_id": assignee_id})

        @tool(side_effects="reads")
        async def list_agents() -> list[dict[str, Any]]:
            """The people who work on tickets."""
            return [{"id": one["id"], "name": one["label"]} for one in self.listing("assignee")]

        return create_ticket, list_agents

    def field_called(self, name: str) -> str:
        """The field of a parameter."""
        return _CONDITIONS[name][0] if name in _CONDITIONS else super().field_called(name)

    def ops_called(self, word: str) -> frozenset[Op]:
        """How a parameter compares."""
        return frozenset({_CONDITIONS[word][1]}) if word in _CONDITIONS else frozenset()

    def _condition(self, parameter: str, value: Json) -> Condition:
        field, op = _CONDITIONS[parameter]
        return Condition(field, op, self.meant(field, value))
