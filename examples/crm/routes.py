"""Which operation stands behind which method and path: the same list as in `openapi.yaml`, which a test compares."""

from dataclasses import dataclass
from typing import Final

from examples.crm import catalog, deals
from examples.crm.idempotency import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One operation of the API."""

    operation_id: str
    method: str
    path: str
    """With `{object_id}` where the path holds an id; the document may give it another name."""
    operation: Operation
    writes: bool = False
    """Whether it changes data, and so honours `Idempotency-Key`."""


ROUTES: Final = (
    Route(operation_id="search_deals", method="POST", path="/crm/v1/deals/search", operation=deals.search_deals),
    Route(
        operation_id="batch_update_deals",
        method="POST",
        path="/crm/v1/deals/batch/update",
        operation=deals.batch_update_deals,
        writes=True,
    ),
    Route(operation_id="create_deal", method="POST", path="/crm/v1/deals", operation=deals.create_deal, writes=True),
    Route(operation_id="get_deal", method="GET", path="/crm/v1/deals/{object_id}", operation=deals.get_deal),
    Route(
        operation_id="update_deal",
        method="PATCH",
        path="/crm/v1/deals/{object_id}",
        operation=deals.update_deal,
        writes=True,
    ),
    Route(
        operation_id="delete_deal",
        method="DELETE",
        path="/crm/v1/deals/{object_id}",
        operation=deals.delete_deal,
        writes=True,
    ),
    Route(
        operation_id="search_companies",
        method="POST",
        path="/crm/v1/companies/search",
        operation=catalog.search_companies,
    ),
    Route(
        operation_id="get_company",
        method="GET",
        path="/crm/v1/companies/{object_id}",
        operation=catalog.get_company,
    ),
    Route(
        operation_id="search_contacts",
        method="POST",
        path="/crm/v1/contacts/search",
        operation=catalog.search_contacts,
    ),
    Route(operation_id="list_owners", method="GET", path="/crm/v1/owners", operation=catalog.list_owners),
    Route(operation_id="list_pipelines", method="GET", path="/crm/v1/pipelines", operation=catalog.list_pipelines),
)
