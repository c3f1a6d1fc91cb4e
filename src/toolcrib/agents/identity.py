"""As whom an agent acts: its service account, or else whoever calls it (004, agent identity).

An account's grants are looked up whenever the run is taken up, so that what was taken away from it is gone at once.
"""

from typing import Protocol

from toolcrib.contracts import AgentImplementation, ErrorCode, Principal, Reason, ServiceAccount
from toolcrib.executor import CallFailed, error


class Accounts(Protocol):
    """Finds service accounts."""

    def find(self, realm: str, name: str) -> ServiceAccount | None:
        """The account of a realm, or null."""
        ...


def identity_of(agent: AgentImplementation, caller: Principal, accounts: Accounts) -> Principal:
    """Who makes the calls of an agent.

    Args:
        agent: What its definition says.
        caller: Who has asked it, in the realm where it runs.
        accounts: Finds its account.

    Raises:
        CallFailed: Its account does not exist or is disabled.
    """
    name, realm = agent.principal_ref, caller.realm
    if name is None:
        return caller
    account = accounts.find(realm, name)
    if account is None or not account.enabled:
        state = "does not exist" if account is None else "is disabled"
        message = f"the agent acts as the account {name!r}, which {state} in realm {realm!r}; save it, or enable it"
        raise CallFailed(error(ErrorCode.POLICY_DENIED, Reason.PERMISSION_MISSING, message))
    return account.principal(realm)
