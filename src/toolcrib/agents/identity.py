"""As whom an agent acts: its service account, or else whoever calls it (004, agent identity).

An account's grants are looked up whenever the run is taken up, so that what was taken away from it is gone at once.
"""

from typing import Protocol

from toolcrib.contracts import AgentImplementation, ErrorCode, Principal, Reason, ServiceAccount
from toolcrib.executor import CallFailed, error
from toolcrib.runs import RunContext


class Accounts(Protocol):
    """Finds service accounts."""

    def find(self, realm: str, name: str) -> ServiceAccount | None:
        """The account of a realm, or null."""
        ...


def identity_of(context: RunContext, agent: AgentImplementation, accounts: Accounts) -> Principal:
    """Who makes the calls of an agent's run.

    Raises:
        CallFailed: Its account does not exist or is disabled.
    """
    name, realm = agent.principal_ref, context.run.realm
    if name is None:
        return context.request.principal
    account = accounts.find(realm, name)
    if account is None or not account.enabled:
        state = "does not exist" if account is None else "is disabled"
        message = f"the agent acts as the account {name!r}, which {state} in realm {realm!r}; save it, or enable it"
        raise CallFailed(error(ErrorCode.POLICY_DENIED, Reason.PERMISSION_MISSING, message))
    return account.principal(realm)
