"""What a service account may do at this moment, whatever it could when a run began that acts as it.

A run keeps the grants that its principal had. An account is looked up again before every call, so that what was taken
away from it is gone at once, in nested runs and in those that have waited too.
"""

from typing import Protocol

from toolcrib.contracts import Principal, ServiceAccount, account_of


class Accounts(Protocol):
    """Finds service accounts."""

    def find(self, realm: str, name: str) -> ServiceAccount | None:
        """The account of a realm, or null."""
        ...


class NoAccounts:
    """A place without service accounts."""

    def find(self, realm: str, name: str) -> ServiceAccount | None:
        """Null."""
        del realm, name


def as_of_now(principal: Principal, accounts: Accounts) -> Principal:
    """The principal with the grants that it has now: an account that is disabled or gone has none."""
    name = account_of(principal)
    if name is None:
        return principal
    account = accounts.find(principal.realm, name)
    grants = account.principal(principal.realm).grants if account is not None else ()
    return principal.model_copy(update={"grants": grants})
