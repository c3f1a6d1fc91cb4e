"""As whom an agent acts: its service account, or else whoever calls it (004, agent identity).

It must be there and enabled whenever the run is taken up; what it may do is looked up anew before every call.
"""

from toolcrib.contracts import AgentImplementation, ErrorCode, Principal, Reason
from toolcrib.core.executor import CallFailed, error
from toolcrib.core.policy import Accounts


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
