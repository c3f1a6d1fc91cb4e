"""Looking around in the catalogue: page by page, and by what tools do. Nobody sees what no grant of theirs names.

What a crib keeps by name: prompt fragments, service accounts, workflow steps and conditions; saved, listed, removed.

await crib.fragments.save(PromptFragment(name="tone", text="Answer briefly and kindly."))
await crib.accounts.save(ServiceAccount(name="deal-bot", grants=("ai://tools/crm/*/execute",)))
await crib.steps.save(StepRegistration(name="orders.validate", tool="validate_order"))
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice
from typing import Generic

from toolcrib.contracts import LOOKS, LifeCycle, PermissionDenied, Principal, ServiceAccount, ToolRevision
from toolcrib.core.executor import Clock
from toolcrib.core.policy import VisibleTools, permits
from toolcrib.core.registry import Facet, Hit, ItemT, Named, Registry
from toolcrib.crib.container.access import Enter


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
        enter: Has the definitions of a principal's realm at hand.
    """

    def __init__(self, registry: Registry, enter: Enter) -> None:
        self._registry = registry
        self._enter = enter
        self._reaches: dict[str, VisibleTools] = {}

    async def page(
        self,
        *,
        after: str = "",
        limit: int = 50,
        text: str | None = None,
        facets: Mapping[Facet, str | None] | None = None,
        fits: Callable[[ToolRevision], bool] = lambda _: True,
        principal: Principal | None = None,
    ) -> ToolsPage:
        """The tools that come after a name.

        Args:
            after: A name; empty for the beginning.
            limit: At most so many.
            text: What must stand in name, title, description or tags.
            facets: What a tool must have: category, tag, kind of implementation, status; null for any.
            fits: What else must be true of it.
            principal: Who looks.
        """
        who = await self._enter(principal, newest=True)
        realm_index = self._registry.index(who.realm)
        among = [realm_index.having(facet, value) for facet, value in (facets or {}).items() if value is not None]
        found = realm_index.page(after=after, among=[*among, *self._visible(who)], text=text)
        items = list(islice((tool for tool in found if fits(tool)), limit + 1))
        return ToolsPage(items[:limit], len(items) > limit)

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        group: str | None = None,
        status: LifeCycle = "active",
        principal: Principal | None = None,
    ) -> Sequence[tuple[ToolRevision, Hit]]:
        """The tools that do what a query says, best first.

        Args:
            query: Words in any order.
            limit: At most so many.
            group: Only tools of this group, or of those below it: `crm` for `crm/deals`.
            status: Tools in another life-cycle state are left out.
            principal: Who looks.
        """
        who = await self._enter(principal, newest=True)
        realm_index = self._registry.index(who.realm)
        index = await realm_index.ensure_search()
        among = realm_index.having("status", status)
        for visible in self._visible(who):
            among &= visible
        hits = index.find(query, limit=limit, group=group, among=among)
        found = ((realm_index.find(hit.name, None), hit) for hit in hits)
        return [(tool, hit) for tool, hit in found if tool is not None]

    def _visible(self, who: Principal) -> Sequence[AbstractSet[str]]:
        """The names that a principal may see; nothing if that is all of them."""
        realm_index = self._registry.index(who.realm)
        reach = self._reaches.get(who.realm)
        if reach is None or reach.realm_index is not realm_index:
            reach = self._reaches[who.realm] = VisibleTools(realm_index)
        names = reach.of(who.grants, LOOKS)
        return [] if names is None else [names]


class NamedThings(Generic[ItemT]):
    """What people do with things of one kind.

    Args:
        named: Has them.
        enter: Has the definitions of a principal's realm at hand, and says who acts.
        clock: Time.
        check: Refuses what a principal may not save, or nobody could use.
    """

    def __init__(
        self,
        named: Named[ItemT],
        enter: Enter,
        clock: Clock,
        check: Callable[[ItemT, Principal], None] = lambda _item, _who: None,
    ) -> None:
        self._named = named
        self._enter = enter
        self._clock = clock
        self._check = check

    async def save(self, item: ItemT, *, principal: Principal | None = None) -> None:
        """Store a new revision, which is used from now on.

        Raises:
            PermissionDenied: It is an account with a grant that the caller does not have.
            InvalidDefinition: It is a word of the workflow vocabulary that no step could use.
            NotFound: It names a tool that does not exist.
        """
        who = await self._enter(principal, newest=True)
        self._check(item, who)
        await self._named.save(item, realm=who.realm, made_by=who.id, at=self._clock.now())

    async def get(self, name: str, *, principal: Principal | None = None) -> ItemT:
        """The newest revision.

        Raises:
            NotFound: There is none of this name.
        """
        return self._named.require((await self._enter(principal, newest=True)).realm, name)

    async def list(self, *, principal: Principal | None = None) -> Sequence[ItemT]:
        """All of the realm, by name."""
        return self._named.current((await self._enter(principal, newest=True)).realm)

    async def remove(self, name: str, *, principal: Principal | None = None) -> None:
        """Take one out. Runs that have begun keep their fragments; an account is gone at once.

        Raises:
            NotFound: There is none of this name.
        """
        await self._named.remove((await self._enter(principal)).realm, name)


def check_grants(account: ServiceAccount, who: Principal) -> None:
    """Nobody gives away what they do not have.

    Raises:
        PermissionDenied: The account would have a grant that its author has not.
    """
    lacking = [grant for grant in account.grants if not permits(who.grants, grant)]
    if lacking:
        msg = f"account {account.name!r} would have the grant {lacking[0]!r}, which {who.id!r} has not"
        raise PermissionDenied(f"{msg}; leave it out, or have somebody save the account who has it")
