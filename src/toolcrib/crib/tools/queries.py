"""Queries over everything that a crib lists: filters, sorts, pages and counts, by one grammar (docs/queries.md).

A principal finds and counts what it may see, and no page ends with the id of something that it may not.
"""

from __future__ import annotations

import builtins
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from toolcrib.core.policy import permits, visible_approvals
from toolcrib.crib.container.access import readable_runs
from toolcrib.crib.tools.resources import (
    KINDS,
    RESOURCES,
    QueriedStore,
    QueryPage,
    ResourceName,
    ResourceQuery,
    stored_page,
)
from toolcrib.infrastructure.queries.grammar import Condition, Every, equal
from toolcrib.infrastructure.store.ports.queried_fields import EVERYTHING

if TYPE_CHECKING:
    from toolcrib.contracts import Conversation, Principal
    from toolcrib.crib.container import Actor, CribServices

T = TypeVar("T")

_DRAFT_VERBS: Final = ("read", "write", "publish")


class QueriedConversations(Protocol):
    """What is asked of the conversations of the principal."""

    def readable(self, who: Principal, *, everybody: bool) -> Condition:
        """What is true of those that it may read."""
        ...

    async def settle_turns(self, found: Sequence[Conversation]) -> Sequence[Conversation]:
        """Conversations with their last turns counted."""
        ...


class Queries:
    """Finds and counts.

    Args:
        parts: The parts of the crib.
        actor: The principal that asks.
        conversations: Those of the principal.
        lists: Tells everything else that the principal's realm has, by resource; `tools` only what it may see.
    """

    def __init__(
        self,
        parts: CribServices,
        actor: Actor,
        conversations: Callable[[], QueriedConversations],
        lists: Callable[[ResourceName], Awaitable[Sequence[Any]]],
    ) -> None:
        self._store = parts.outside.store
        self._clock = parts.outside.clock
        self._actor = actor
        self._conversations = conversations
        self._lists = lists

    async def page(
        self,
        resource: ResourceName,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int = 50,
        everybody: bool = False,
        where: Condition = EVERYTHING,
    ) -> QueryPage[Any]:
        """A page of what a filter means, of all that the principal may see.

        Args:
            resource: `runs`, `tools`, `agents`…; `docs/queries.md` has them with their fields.
            filter: A condition such as `status eq 'failed' and cost_usd gt 1`; null for everything.
            sort: Fields such as `cost_usd desc`; null for the usual order: by name, or the newest first.
            after: `next` of the page before, with the same filter and sort.
            limit: At most so many.
            everybody: Conversations of all principals of the realm, and not only of the own ones.
            where: What must be true besides.

        Raises:
            InvalidInput: The filter, the sort or `after` is not valid; the message lists the fields.
            NotFound: There is no run, approval or conversation `after`.
            PermissionDenied: The principal may not read conversations.

        Example:
            await crib.invoke("search_deals", {"company": "Acme"})
            page = await crib.queries.page("runs", filter="tool eq 'search_deals'", sort="created_at desc")
            print([run.run_id for run in page.items], page.next)
        """
        query = ResourceQuery[Any](RESOURCES[resource], filter, sort, now=self._clock.now())
        who = await self._actor.authorize(newest=True)
        stored = self._stored(resource)
        if stored is None:
            rows = await self._rows(resource, who)
            return query.page(builtins.filter(query.test_of(where), rows), after=after, limit=limit)
        visible = self._visible(resource, who, everybody=everybody)
        page = await stored_page(stored, who.realm, query, Every((where, visible)), after=after, limit=limit)
        if resource != "conversations":
            return page
        return QueryPage(await self._conversations().settle_turns(page.items), page.next)

    async def count(
        self,
        resource: ResourceName,
        *,
        filter: str | None = None,
        everybody: bool = False,
        where: Condition = EVERYTHING,
    ) -> int:
        """How many a filter means, of all that the principal may see.

        Args:
            resource: As in `page`.
            filter: Likewise.
            everybody: Likewise.
            where: Likewise.

        Raises:
            InvalidInput: The filter is not valid; the message lists the fields.
            PermissionDenied: The principal may not read conversations.

        Example:
            await crib.invoke("search_deals", {"company": "Acme"})
            print(await crib.queries.count("runs", filter="status eq 'completed'"))
        """
        query = ResourceQuery[Any](RESOURCES[resource], filter, None, now=self._clock.now())
        who = await self._actor.authorize(newest=True)
        stored = self._stored(resource)
        if stored is None:
            rows = builtins.filter(query.test_of(where), await self._rows(resource, who))
            return sum(map(query.test_of(query.condition), rows))
        visible = self._visible(resource, who, everybody=everybody)
        return await stored.count(who.realm, Every((query.condition, where, visible)))

    def select(
        self,
        resource: ResourceName,
        rows: Iterable[T],
        *,
        filter: str | None = None,
        sort: str | None = None,
    ) -> Sequence[T]:
        """Those of some things that a filter means, in order; without a sort they stay in theirs.

        Args:
            resource: What they are.
            rows: The things.
            filter: As in `page`.
            sort: Likewise.

        Raises:
            InvalidInput: The filter or the sort is not valid; the message lists the fields.

        Example:
            deals = await crib.fragments.list()
            print(crib.queries.select("fragments", deals, filter="startswith(name,'deal')", sort="name desc"))
        """
        query = ResourceQuery[T](RESOURCES[resource], filter, sort, now=self._clock.now())
        given = list(rows)
        if not query.has_sort:
            return list(builtins.filter(query.test_of(query.condition), given))
        return query.page(given, after=None, limit=len(given)).items

    def _stored(self, resource: ResourceName) -> QueriedStore[Any] | None:
        store = self._store
        match resource:
            case "runs" | "instances":
                return store.journal
            case "approvals":
                return store.approvals
            case "conversations":
                return store.conversations
            case _:
                return None

    def _visible(self, resource: ResourceName, who: Principal, *, everybody: bool) -> Condition:
        """What is true of what the principal may see, and of nothing else."""
        caller = self._actor.caller
        match resource:
            case "runs":
                return EVERYTHING if caller is None else readable_runs(caller)
            case "instances":
                return Every((equal("kind", "workflow"), readable_runs(who)))
            case "approvals":
                return EVERYTHING if caller is None else visible_approvals(caller)
            case "conversations":
                return self._conversations().readable(who, everybody=everybody)
            case _:
                return EVERYTHING

    async def _rows(self, resource: ResourceName, who: Principal) -> Iterable[Any]:
        """All that the principal may see, of what is in memory."""
        if resource in KINDS:
            kind = KINDS[resource]
            tools = await self._lists(resource)
            return (each for each in tools if kind in {None, each.definition.implementation.kind})
        found = await self._lists(resource)
        if resource == "drafts":
            return (each for each in found if _may(who, "workflows", each.definition.name, *_DRAFT_VERBS))
        return (each for each in found if _may(who, resource, each.name, "read"))


def _may(who: Principal, plural: str, name: str, *verbs: str) -> bool:
    return any(permits(who.grants, f"ai://{plural}/{name}/{verb}") for verb in verbs)
