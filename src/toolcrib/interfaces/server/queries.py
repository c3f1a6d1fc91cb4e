"""Parameters and bodies of queries, and the routes that every resource has for them: `POST …/query`, `GET …/count`."""

import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, TypeAlias, TypeVar

from fastapi import Query
from pydantic import Field

from toolcrib.contracts import Contract
from toolcrib.crib.tools.resources import QueryPage, ResourceName
from toolcrib.infrastructure.queries.grammar import Condition, Every, equal
from toolcrib.interfaces.server.http.caller_rights import CribDep
from toolcrib.interfaces.server.http.requests import Routes

PageT = TypeVar("PageT", bound=Contract)

_MOST = 4000
_FILTER = "A condition, such as `status eq 'failed' and created_at gt now() sub duration'P1D'`."
_SORT = "Fields, such as `created_at desc`; the usual order if not given."

Filter: TypeAlias = Annotated[str | None, Query(max_length=_MOST, description=_FILTER)]
Sort: TypeAlias = Annotated[str | None, Query(max_length=_MOST, description=_SORT)]
After: TypeAlias = Annotated[str | None, Query(max_length=_MOST, description="`next` of the page before.")]
Limit: TypeAlias = Annotated[int, Query(ge=1, le=200)]

ListLimit: TypeAlias = Annotated[int | None, Query(ge=1, le=200, description="All if not given.")]
"""Of lists that were whole from the beginning."""
ALL: Final = sys.maxsize - 1


class QueryBody(Contract):
    """Which page of what."""

    filter: str | None = Field(default=None, max_length=_MOST)
    """A condition by the grammar of all queries; null for everything."""
    sort: str | None = Field(default=None, max_length=_MOST)
    """Fields, such as `created_at desc`; null for the usual order."""
    after: str | None = Field(default=None, max_length=_MOST)
    """`next` of the page before, with the same filter and sort."""
    limit: int = Field(default=50, ge=1, le=200)


class Count(Contract):
    """How many there are, of those that the caller may see."""

    count: int


def to_page(page_type: type[PageT], page: QueryPage[Any], view: Callable[[Any], Any] = lambda item: item) -> PageT:
    """The response with a page: a type with `items` and `next`."""
    values: dict[str, Any] = {"items": tuple(map(view, page.items)), "next": page.next}
    return page_type(**values)


def conditions(given: Mapping[str, str | None]) -> Condition:
    """The condition that fields have the values that are given."""
    return Every(tuple(equal(name, value) for name, value in given.items() if value is not None))


def add_queries(
    router: Routes,
    resource: ResourceName,
    page_type: type[Contract],
    view: Callable[[Any], Any] = lambda item: item,
) -> None:
    """Add the routes of queries to a router, in front of those whose path is a name.

    Args:
        router: Has the resource's prefix.
        resource: What is queried.
        page_type: The response with a page.
        view: Makes the view of one thing.
    """
    noun = resource.replace("-", "_")
    pages = f"{resource.replace('_', ' ')} that a filter means, page by page."

    @router.post("/query", name=f"query_{noun}", response_model=page_type, description=f"The {pages}")
    async def query(body: QueryBody, crib: CribDep) -> Any:
        page = await crib.queries.page(resource, filter=body.filter, sort=body.sort, after=body.after, limit=body.limit)
        return to_page(page_type, page, view)

    add_count(router, resource)


def add_count(router: Routes, resource: ResourceName) -> None:
    """Add the route that counts to a router."""
    noun = resource.replace("-", "_")
    said = f"How many {resource.replace('_', ' ')} a filter means, of those that the caller may see."

    @router.get("/count", name=f"count_{noun}", description=said)
    async def count(crib: CribDep, filter: Filter = None) -> Count:
        return Count(count=await crib.queries.count(resource, filter=filter))
