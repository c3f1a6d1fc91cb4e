"""Deals, found by groups of filters and changed in batches; stages, pipelines and owners are ids that lists explain."""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import BaseModel, Field

from tests.corpus import records
from tests.corpus.corpus import Action, Change, Condition, Op, Value
from tests.corpus.systems.base import System
from toolcrib import FunctionTool, tool
from toolcrib.contracts import Json, JsonObject, ReferenceSource

COMPANIES: Final = (
    *("Acme Corp", "Acme Motors", "Corp of Acme", "TechCo", "Globex", "Initech"),
    *("Umbra Logistics", "Hooloo", "Vandelay Imports", "Wernham Paper"),
)
STAGES: Final = {
    "New lead": "stg_41a7",
    "Qualified": "stg_09c2",
    "Demo held": "stg_7be0",
    "Proposal sent": "stg_5d13",
    "Negotiation": "stg_a8f4",
    "Closed won": "stg_2e96",
    "Closed lost": "stg_c30b",
    "Upcoming": "stg_f1d5",
    "Offer sent": "stg_6a48",
}
PIPELINES: Final = {"Sales": "pl_17", "Renewals": "pl_23"}
OWNERS: Final = {
    name: str(501 + number * 3)
    for number, name in enumerate(
        (
            *("Boris Chowdhury", "Rafael Lindqvist", "Rafael Wang", "Luca García", "Beatriz Lindqvist", "Freya García"),
            *("Beatriz Ito", "Priya Kowalski", "Dana Quinn", "Hugo Rossi", "Maya Kaya", "Diego Ito", "Petra Novák"),
            *("Dana Almeida", "Rafael Eriksen", "Ines Petrov", "Priya Novák", "Tove Silva", "Emeka Farouk"),
            *("Chen Fischer", "Rafael Petrov", "Sofia O'Brien", "Emeka Mensah", "Lena Andersen", "Carmen Wang"),
        )
    )
}

Property: TypeAlias = Literal["name", "company_name", "amount", "stage", "pipeline", "owner_id", "close_date"]
Operator: TypeAlias = Literal["EQ", "NEQ", "GT", "GTE", "LT", "LTE", "CONTAINS"]

_OPERATORS: Final[dict[Op, Operator]] = {
    "is": "EQ",
    "on": "EQ",
    "is_not": "NEQ",
    "more_than": "GT",
    "after": "GT",
    "at_least": "GTE",
    "on_or_after": "GTE",
    "less_than": "LT",
    "before": "LT",
    "at_most": "LTE",
    "on_or_before": "LTE",
    "contains": "CONTAINS",
}
_OPS: Final[dict[Operator, Op]] = {
    "EQ": "is",
    "NEQ": "is_not",
    "GT": "more_than",
    "GTE": "at_least",
    "LT": "less_than",
    "LTE": "at_most",
    "CONTAINS": "contains",
}


class Filter(BaseModel):
    """One condition."""

    property: Property
    operator: Operator
    value: str | int | float | None = None
    values: list[str] | None = None


class FilterGroup(BaseModel):
    """Conditions that must all be met."""

    filters: list[Filter]


class FoundDeals(BaseModel):
    """What a search brings."""

    results: list[dict[str, Any]]


class DealProperties(BaseModel):
    """What can be changed of a deal."""

    name: str | None = None
    amount: float | None = None
    stage: str | None = None
    pipeline: str | None = None
    owner_id: str | None = None
    close_date: str | None = None


class DealUpdate(BaseModel):
    """The change of one deal."""

    id: str
    properties: DealProperties


class Crm(System):
    """The sales system."""

    name = "crm"
    fields = (
        records.Field("name", "text"),
        records.Field("company", "label", COMPANIES),
        records.Field("amount", "number"),
        records.Field("stage", "label", tuple(STAGES)),
        records.Field("pipeline", "label", tuple(PIPELINES)),
        records.Field("owner", "label", tuple(OWNERS)),
        records.Field("close_date", "day"),
    )
    names: ClassVar = {"company": "company_name", "owner": "owner_id"}
    comparisons: ClassVar = _OPERATORS
    values: ClassVar = {"stage": STAGES, "pipeline": PIPELINES, "owner": OWNERS}
    references = (
        ReferenceSource(name="deal_stages", tool="list_stages", applies_to=("stage",)),
        ReferenceSource(name="pipelines", tool="list_pipelines", applies_to=("pipeline",)),
        ReferenceSource(name="owners", tool="list_owners", applies_to=("owner_id",)),
    )
    listed = frozenset({"stage", "pipeline", "owner"})

    @classmethod
    def new_id(cls, number: int) -> Value:
        """Ids are texts of digits."""
        return str(4_100_001 + number * 7)

    def steps(self, action: Action) -> tuple[str, str]:
        """One tool for each action."""
        return "search_deals", {"delete": "delete_deals", "create": "create_deal"}.get(action, "update_deals")

    def selecting(self, where: Sequence[Condition], *, spoken: bool) -> JsonObject:
        """One group with a filter for each condition."""
        filters: list[JsonObject] = [
            {
                "property": self.called(condition.field),
                "operator": _OPERATORS[condition.op],
                "value": self.own(condition.field, condition.value, spoken=spoken),
            }
            for condition in where
        ]
        return {"filter_groups": [{"filters": filters}]}

    def writing(self, action: Action, changes: Sequence[Change], ids: Sequence[Json], *, spoken: bool) -> JsonObject:
        """A batch of changes, a list of ids, or the new deal's values."""
        values = {self.called(one.field): self.own(one.field, one.value, spoken=spoken) for one in changes}
        if action == "create":
            return values
        if action == "delete":
            return {"ids": list(ids)}
        return {"inputs": [{"id": name, "properties": values} for name in ids]}

    def make_tools(self) -> Sequence[FunctionTool[..., Any]]:
        """Search, update, create, delete, and what lists valid values."""

        @tool(side_effects="reads")
        async def search_deals(filter_groups: list[FilterGroup]) -> FoundDeals:
            """Find deals. The groups are alternatives; a deal must meet all filters of one."""
            found = [deal for group in filter_groups for deal in self.find(list(map(self._condition, group.filters)))]
            return FoundDeals(results=list({deal["id"]: deal for deal in found}.values()))

        @tool(side_effects="writes", deletes=False, idempotent=True)
        async def update_deals(
            inputs: Annotated[list[DealUpdate], Field(min_length=1, max_length=10)],
        ) -> dict[str, Any]:
            """Change properties of up to 10 deals."""
            for change in inputs:
                self.change([change.id], change.properties.model_dump(exclude_none=True))
            return {"changed": len(inputs)}

        @tool(side_effects="writes", deletes=True, idempotent=True)
        async def delete_deals(ids: Annotated[list[str], Field(min_length=1, max_length=10)]) -> dict[str, Any]:
            """Delete up to 10 deals for good."""
            return self.remove(ids)

        return (search_deals, update_deals, delete_deals, self._creating(), *self._listings())

    def _creating(self) -> FunctionTool[..., Any]:
        @tool(side_effects="writes", deletes=False)
        async def create_deal(
            company_name: str,
            name: str,
            *,
            pipeline: str | None = None,
            stage: str | None = None,
            amount: float | None = None,
            owner_id: str | None = None,
            close_date: str | None = None,
        ) -> dict[str, Any]:
            """Add a deal to a company."""
            given: JsonObject = {"company_name": company_name, "name": name, "pipeline": pipeline, "stage": stage}
            return self.create({**given, "amount": amount, "owner_id": owner_id, "close_date": close_date})

        return create_deal

    def _listings(self) -> Sequence[FunctionTool[..., Any]]:
        @tool(side_effects="reads")
        async def list_stages() -> list[dict[str, Any]]:
            """The stages that a deal can have."""
            return self.listing("stage")

        @tool(side_effects="reads")
        async def list_pipelines() -> list[dict[str, Any]]:
            """The pipelines that a deal can be in."""
            return self.listing("pipeline")

        @tool(side_effects="reads")
        async def list_owners() -> list[dict[str, Any]]:
            """The people who can own a deal."""
            return self.listing("owner")

        return list_stages, list_pipelines, list_owners

    def _condition(self, given: Filter) -> Condition:
        field = {"company_name": "company", "owner_id": "owner"}.get(given.property, given.property)
        return Condition(field, _OPS[given.operator], self.meant(field, given.value))
