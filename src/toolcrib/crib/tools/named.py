"""What a crib keeps by name: prompt fragments, service accounts, workflow steps and conditions; saved, listed, removed.

await crib.fragments.save(PromptFragment(name="tone", text="Answer briefly and kindly."))
await crib.accounts.save(ServiceAccount(name="deal-bot", grants=("ai://tools/crm/*/execute",)))
await crib.steps.save(StepRegistration(name="orders.validate", tool="validate_order"))
"""

from collections.abc import Callable, Sequence
from typing import Generic

from toolcrib.contracts import PermissionDenied, Principal, ServiceAccount
from toolcrib.core.executor import Clock
from toolcrib.core.policy import permits
from toolcrib.core.registry import ItemT, Named
from toolcrib.crib.container.entering import Enter


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
