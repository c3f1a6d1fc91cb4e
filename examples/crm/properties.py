"""The closed map from the API's property names to columns.

Every column name that reaches SQL comes from this file; nothing a client sends ever does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from examples.crm.values import Json, Kind, Stored, decode


@dataclass(frozen=True, slots=True)
class Property:
    """One property of an object type."""

    name: str
    column: str
    """The SQL column, with its table."""
    kind: Kind
    writable: bool = False
    clearable: bool = False
    """Whether a writable property may be set to null, and may be left out when an object is created."""


@dataclass(frozen=True, slots=True)
class ObjectType:
    """A kind of object that can be searched."""

    name: str
    source: str
    """The SQL FROM clause, joins included."""
    key: str
    """The SQL column of the id."""
    revision: str | None
    """The SQL column of the revision, for objects that clients can change."""
    properties: Mapping[str, Property]

    def show(self, row_id: int, revision: int | None, values: Mapping[str, Stored]) -> dict[str, Json]:
        """The object as the API shows it."""
        properties: dict[str, Json] = {
            name: decode(self.properties[name].kind, value) for name, value in values.items()
        }
        shown: dict[str, Json] = {"id": str(row_id), "properties": properties}
        if revision is not None:
            shown["revision"] = revision
        return shown


def _named(*properties: Property) -> Mapping[str, Property]:
    return {entry.name: entry for entry in properties}


DEALS: Final = ObjectType(
    name="deal",
    source="deals JOIN companies ON companies.id = deals.company_id",
    key="deals.id",
    revision="deals.revision",
    properties=_named(
        Property("name", "deals.name", Kind.TEXT, writable=True),
        Property("amount", "deals.amount_cents", Kind.MONEY, writable=True, clearable=True),
        Property("stage", "deals.stage_id", Kind.STAGE, writable=True),
        Property("pipeline", "deals.pipeline_id", Kind.PIPELINE, writable=True),
        Property("close_date", "deals.close_date", Kind.DATE, writable=True, clearable=True),
        Property("owner_id", "deals.owner_id", Kind.ID, writable=True, clearable=True),
        Property("company_id", "deals.company_id", Kind.ID, writable=True),
        Property("company_name", "companies.name", Kind.TEXT),
        Property("created_at", "deals.created_at", Kind.TIMESTAMP),
        Property("updated_at", "deals.updated_at", Kind.TIMESTAMP),
    ),
)

COMPANIES: Final = ObjectType(
    name="company",
    source="companies",
    key="companies.id",
    revision=None,
    properties=_named(
        Property("name", "companies.name", Kind.TEXT),
        Property("domain", "companies.domain", Kind.TEXT),
        Property("industry", "companies.industry", Kind.TEXT),
        Property("city", "companies.city", Kind.TEXT),
        Property("employees", "companies.employees", Kind.COUNT),
        Property("owner_id", "companies.owner_id", Kind.ID),
        Property("created_at", "companies.created_at", Kind.TIMESTAMP),
    ),
)

CONTACTS: Final = ObjectType(
    name="contact",
    source="contacts JOIN companies ON companies.id = contacts.company_id",
    key="contacts.id",
    revision=None,
    properties=_named(
        Property("first_name", "contacts.first_name", Kind.TEXT),
        Property("last_name", "contacts.last_name", Kind.TEXT),
        Property("email", "contacts.email", Kind.TEXT),
        Property("job_title", "contacts.job_title", Kind.TEXT),
        Property("company_id", "contacts.company_id", Kind.ID),
        Property("company_name", "companies.name", Kind.TEXT),
        Property("created_at", "contacts.created_at", Kind.TIMESTAMP),
    ),
)
