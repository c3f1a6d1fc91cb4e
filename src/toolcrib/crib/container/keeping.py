"""What keeps and finds credentials, wired: variables, the vault, connections, and the way to providers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from toolcrib.core.executor import Clock
from toolcrib.core.providers import Consents, FindProvider, ProviderAccess, Tokens
from toolcrib.infrastructure.net import HttpSession
from toolcrib.infrastructure.secrets import EnvironmentSecrets, MasterKeys, Safe, ScopedSecrets, Vault
from toolcrib.infrastructure.store import Store


@dataclass(frozen=True, slots=True)
class Keeping:
    """All of it, for one crib."""

    variables: EnvironmentSecrets
    vault: Vault
    secrets: ScopedSecrets
    consents: Consents
    access: ProviderAccess

    @classmethod
    def wire(
        cls,
        store: Store,
        session: HttpSession,
        find: FindProvider,
        *,
        environment: Mapping[str, str],
        released: tuple[str, ...],
        clock: Clock,
    ) -> Self:
        """Make all of it.

        Args:
            store: Keeps what is sealed.
            session: The way out.
            find: Finds providers.
            environment: Has variables and master keys.
            released: Patterns of the variables that definitions may use.
            clock: Time.

        Raises:
            InvalidSettings: The master keys cannot be used.
        """
        variables = EnvironmentSecrets(environment, released)
        safe = Safe(store.sealed, MasterKeys.read(environment))
        vault = Vault(safe)
        secrets = ScopedSecrets(variables, vault)
        tokens = Tokens(session, clock)
        consents = Consents(tokens.endpoints, safe, clock)
        return cls(variables, vault, secrets, consents, ProviderAccess(find, secrets, tokens, consents))
