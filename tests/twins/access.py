"""The way to providers, with everything behind it in memory."""

from toolcrib.contracts import OWNER, ProviderDefinition
from toolcrib.core.executor import Clock, SecretResolver
from toolcrib.core.providers import Consents, CredentialOwner, FindProvider, ProviderAccess, Tokens
from toolcrib.infrastructure.net import HttpSession
from toolcrib.infrastructure.secrets import MasterKeys, Safe, new_master_key
from toolcrib.infrastructure.store import MemoryStore, SealedValues

MASTER_KEYS = new_master_key("test")
"""Of all tests of one process."""


def make_safe(values: SealedValues | None = None) -> Safe:
    """A safe with master keys; empty if it is given no values."""
    keys = MasterKeys.read({"TOOLCRIB_MASTER_KEYS": MASTER_KEYS})
    return Safe(MemoryStore().sealed if values is None else values, keys)


def make_access(
    session: HttpSession,
    clock: Clock,
    secrets: SecretResolver,
    find: FindProvider | ProviderDefinition,
    *,
    safe: Safe | None = None,
) -> ProviderAccess:
    """The access of one process to providers, or to one provider of every realm."""
    tokens = Tokens(session, clock)
    consents = Consents(tokens.endpoints, safe or make_safe(), clock)
    if not isinstance(find, ProviderDefinition):
        return ProviderAccess(find, secrets, tokens, consents)
    known = find
    return ProviderAccess(lambda _realm, name: known if name == known.name else None, secrets, tokens, consents)


def make_holder(session: HttpSession, clock: Clock, secrets: SecretResolver) -> CredentialOwner:
    """What the owner may take credentials from."""
    return make_access(session, clock, secrets, lambda _realm, _name: None).holder(OWNER)
