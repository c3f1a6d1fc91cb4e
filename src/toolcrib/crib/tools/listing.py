"""Lists and searches the catalogue, and keeps definitions by name: prompt fragments, service accounts, workflow steps.

Without a matching grant, a tool is not listed.

Example:
    from toolcrib.contracts import PromptFragment, ServiceAccount

    await crib.fragments.save(PromptFragment(name="tone", text="Answer briefly and kindly."))
    await crib.accounts.save(ServiceAccount(name="deal-bot", grants=("ai://tools/crm/*/execute",)))
    await crib.steps.save(StepRegistration(name="deals.find", tool="search_deals"))
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice
from typing import Final, Generic, get_args

from toolcrib.contracts import LifeCycle, PermissionDenied, Principal, ServiceAccount, ToolRevision
from toolcrib.core.executor import Clock
from toolcrib.core.policy import permits
from toolcrib.core.registry import Facet, Hit, ItemT, Named, Registry
from toolcrib.crib.container.access import Actor, Visibility
from toolcrib.crib.tools.resources import KINDS, RESOURCES, QueryPage, ResourceQuery, ToolResource

_ALL: Final = sys.maxsize - 1


@dataclass(frozen=True, slots=True)
class ToolsPage:
    """Some tools by name."""

    items: Sequence[ToolRevision]
    more: bool
    """Whether others follow; they come after the last name."""


class ToolListing:
    """The tools of a crib as a principal may see them.

    Args:
        registry: Has the tools.
        visibility: Tells which of them a principal may see.
        actor: The principal that reads.
        clock: Time.
    """

    def __init__(self, registry: Registry, visibility: Visibility, actor: Actor, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._visibility = visibility
        self._actor = actor

    async def page(
        self,
        *,
        after: str = "",
        limit: int = 50,
        text: str | None = None,
        facets: Mapping[Facet, str | None] | None = None,
        fits: Callable[[ToolRevision], bool] = lambda _: True,
        among: AbstractSet[str] | None = None,
    ) -> ToolsPage:
        """The tools that come after a name.

        Args:
            after: A name; empty for the beginning.
            limit: At most so many.
            text: Text to find in name, title, description or tags.
            facets: What a tool must have: category, tag, kind of implementation, status; null for any.
            fits: What else must be true of it.
            among: Only tools with these names; null for all.

        Example:
            page = await crib.listing.page(text="deals", facets={"kind": "python"}, limit=20)
            print([each.name for each in page.items], page.more)
        """
        who = await self._actor.authorize(newest=True)
        realm_index = self._registry.index(who.realm)
        sets = [realm_index.having(facet, value) for facet, value in (facets or {}).items() if value is not None]
        sets += [] if among is None else [among]
        found = realm_index.page(after=after, among=[*sets, *self._visibility.of(who)], text=text)
        items = list(islice((tool for tool in found if fits(tool)), limit + 1))
        return ToolsPage(items[:limit], len(items) > limit)

    async def visible(self) -> Sequence[ToolRevision]:
        """All tools that the principal may see, by name.

        Example:
            print([each.name for each in await crib.listing.visible()])
        """
        return (await self.page(limit=_ALL)).items

    async def query(
        self,
        resource: ToolResource = "tools",
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int = 50,
        text: str | None = None,
        facets: Mapping[Facet, str | None] | None = None,
        fits: Callable[[ToolRevision], bool] = lambda _: True,
    ) -> QueryPage[ToolRevision]:
        """A page of what a filter means; see `crib.queries`.

        Args:
            resource: Tools of every kind, or those of one.
            filter: A condition such as `category eq 'crm' and enabled`; null for all.
            sort: Fields such as `created_at desc`; null for the order of names.
            after: `next` of the page before, with the same filter and sort.
            limit: At most so many.
            text: As in `page`.
            facets: Likewise.
            fits: Likewise.

        Raises:
            InvalidInput: The filter, the sort or `after` is not valid; the message lists the fields.

        Example:
            page = await crib.listing.query("tools", filter="contains(text,'deal') and side_effects eq 'reads'")
            print([each.name for each in page.items], page.next)
        """
        query = ResourceQuery[ToolRevision](RESOURCES[resource], filter, sort, now=self._clock.now())
        test = query.test_of(query.condition)
        meant: dict[Facet, str | None] = {**(facets or {}), "kind": KINDS[resource] or (facets or {}).get("kind")}
        if query.has_sort:
            found = await self.page(limit=_ALL, text=text, facets=meant, fits=lambda tool: fits(tool) and test(tool))
            return query.page(found.items, after=after, limit=limit)
        place = query.place(after) if after else None
        start = "" if place is None else str(place[0])
        page = await self.page(
            after=start, limit=limit, text=text, facets=meant, fits=lambda tool: fits(tool) and test(tool)
        )
        return QueryPage(page.items, page.items[-1].name if page.more else None)

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        group: str | None = None,
        status: LifeCycle | None = "active",
        among: AbstractSet[str] | None = None,
    ) -> Sequence[tuple[ToolRevision, Hit]]:
        """The tools that do what a query says, best first.

        Args:
            query: Words in any order.
            limit: At most so many.
            group: Only tools of this group, or of those below it: `crm` for `crm/deals`.
            status: Tools in another life-cycle state are left out; null for tools in any.
            among: Only tools with these names; null for all.

        Example:
            for found, hit in await crib.listing.search("move deals to another stage", limit=3):
                print(found.name, hit.score)
        """
        who = await self._actor.authorize(newest=True)
        realm_index = self._registry.index(who.realm)
        index = await realm_index.ensure_search()
        states = get_args(LifeCycle) if status is None else (status,)
        names = frozenset[str]().union(*(realm_index.having("status", state) for state in states))
        for wanted in [*self._visibility.of(who), *([] if among is None else [among])]:
            names &= wanted
        hits = index.find(query, limit=limit, group=group, among=names)
        found = ((realm_index.find(hit.name, None), hit) for hit in hits)
        return [(tool, hit) for tool, hit in found if tool is not None]


class NamedThings(Generic[ItemT]):
    """What people do with things of one kind.

    Args:
        named: Has them.
        actor: The actor of the crib.
        clock: Time.
        check: Refuses what a principal may not save, or what could not be used.
    """

    def __init__(
        self,
        named: Named[ItemT],
        actor: Actor,
        clock: Clock,
        check: Callable[[ItemT, Principal], None] = lambda _item, _who: None,
    ) -> None:
        self._named = named
        self._actor = actor
        self._clock = clock
        self._check = check

    async def save(self, item: ItemT, *, after: int | None = None) -> int:
        """Store a new revision, which is used from now on; returns its number.

        Args:
            item: What is stored, in place of the one with its name.
            after: Number of the revision that the author has changed, 0 for none; null to save over whatever is there.

        Raises:
            Conflict: Another revision has been saved since `after`.
            PermissionDenied: It is an account with a grant that the caller does not have.
            InvalidDefinition: It is a word of the workflow vocabulary that no step could use.
            NotFound: It names a tool that does not exist.

        Example:
            from toolcrib.contracts import PromptFragment

            await crib.fragments.save(PromptFragment(name="tone", text="Answer briefly and kindly."))
        """
        who = await self._actor.authorize(newest=True)
        self._check(item, who)
        return await self._named.save(item, realm=who.realm, made_by=who.id, at=self._clock.now(), after=after)

    async def revision(self, name: str) -> int:
        """The number of the newest revision.

        Raises:
            NotFound: The name is unknown.

        Example:
            from toolcrib.contracts import PromptFragment

            first = await crib.fragments.save(PromptFragment(name="tone", text="Answer briefly."))
            assert await crib.fragments.revision("tone") == first
        """
        return self._named.revision((await self._actor.authorize(newest=True)).realm, name)

    async def get(self, name: str) -> ItemT:
        """The newest revision.

        Raises:
            NotFound: The name is unknown.

        Example:
            from toolcrib.contracts import ServiceAccount

            await crib.accounts.save(ServiceAccount(name="deal-bot", grants=("ai://tools/crm/*/execute",)))
            print((await crib.accounts.get("deal-bot")).grants)
        """
        return self._named.require((await self._actor.authorize(newest=True)).realm, name)

    async def list(self) -> Sequence[ItemT]:
        """All of the realm, by name.

        Example:
            await crib.steps.save(StepRegistration(name="deals.find", tool="search_deals"))
            print([each.name for each in await crib.steps.list()])
        """
        return self._named.current((await self._actor.authorize(newest=True)).realm)

    async def remove(self, name: str) -> None:
        """Remove one. Runs that have started keep their fragments; an account is removed with immediate effect.

        Raises:
            NotFound: The name is unknown.

        Example:
            is_won = ConditionBinding(name="is_won", parameters=("stage",), expression="${stage == 'Won'}")
            await crib.conditions.save(is_won)
            await crib.conditions.remove("is_won")
        """
        await self._named.remove((await self._actor.authorize()).realm, name)


def check_grants(account: ServiceAccount, who: Principal) -> None:
    """Check that a principal gives an account only grants that it has itself.

    Raises:
        PermissionDenied: The account would have a grant that its author does not have.
    """
    lacking = [grant for grant in account.grants if not permits(who.grants, grant)]
    if lacking:
        msg = f"account {account.name!r} would have the grant {lacking[0]!r}, which {who.id!r} has not"
        raise PermissionDenied(f"{msg}; leave it out, or ask a principal that has it to save the account")
