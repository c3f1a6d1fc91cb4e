"""What a service account may do at the moment of a call."""

import pytest

from toolcrib.contracts import Principal, ServiceAccount
from toolcrib.core.policy import NoAccounts, as_of_now

pytestmark = pytest.mark.requirement("policy.accounts")

BOT = ServiceAccount(name="bot", grants=("ai://tools/*",))


class OneAccount:
    """A realm with one account."""

    def __init__(self, account: ServiceAccount) -> None:
        self._account = account

    def find(self, realm: str, name: str) -> ServiceAccount | None:
        return self._account if (realm, name) == ("default", self._account.name) else None


@pytest.mark.parametrize(
    ("now", "grants"),
    [
        (BOT, BOT.grants),
        (BOT.model_copy(update={"grants": ("ai://tools/crm/*",)}), ("ai://tools/crm/*",)),
        (BOT.model_copy(update={"enabled": False}), ()),
        (BOT.model_copy(update={"name": "other"}), ()),
    ],
)
def test_an_account_has_the_grants_that_it_has_now(now: ServiceAccount, grants: tuple[str, ...]):
    began_as = BOT.principal("default")

    found = as_of_now(began_as, OneAccount(now))

    assert (found.id, found.kind, found.grants) == (began_as.id, "service", grants)
    assert as_of_now(BOT.principal("elsewhere"), OneAccount(now)).grants == ()


def test_everybody_else_keeps_the_grants_that_they_came_with():
    for principal in (Principal(id="ann"), Principal(id="bot"), Principal(id="bot", kind="service")):
        assert as_of_now(principal, NoAccounts()) == principal
    assert as_of_now(BOT.principal("default"), NoAccounts()).grants == ()
