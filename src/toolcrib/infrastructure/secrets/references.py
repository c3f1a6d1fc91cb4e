"""References to secrets and where they resolve: released environment variables, and the vault.

A definition holds `${env:NAME}` or `${secret:NAME}`, never a value. The value is looked up for one call, after the
guard, and forgotten with it.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final

from toolcrib.contracts import SECRET_REFERENCE, InvalidDefinition, Principal
from toolcrib.infrastructure.secrets.sealing import VARIABLE
from toolcrib.infrastructure.secrets.vault import Vault

OWN_VARIABLES: Final = ("TOOLCRIB_PEPPER", VARIABLE)
"""Variables that hold secrets of the product itself: no definition gets them, whatever is released."""


def reference_parts(reference: str) -> tuple[str, str]:
    """Where a reference leads, `env` or `secret`, and the name that it has there.

    Raises:
        InvalidDefinition: The text is not a reference; it may be a secret itself, so it is not repeated.
    """
    match = SECRET_REFERENCE.fullmatch(reference)
    if match is None:
        size = len(reference)
        msg = (
            "a secret must be a reference such as ${env:CRM_TOKEN} or ${secret:CRM_TOKEN}; this is something else "
            f"({size} characters)"
        )
        raise InvalidDefinition(msg)
    return match[1], match[2]


class EnvironmentSecrets:
    """Environment variables, for names that match one of the released patterns.

    Args:
        environment: The variables, usually `os.environ`.
        released: Patterns such as `CRM_*`. A name that none matches does not resolve, so that a definition cannot
        read the server's own secrets.
    """

    def __init__(self, environment: Mapping[str, str], released: tuple[str, ...]) -> None:
        self._environment = environment
        self._released = released

    def find(self, name: str) -> str | None:
        """The value, or null if the variable is not set, is empty or not released."""
        return (self._environment.get(name) or None) if self.is_released(name) else None

    def is_released(self, name: str) -> bool:
        """Whether definitions may have a variable's value."""
        return name not in OWN_VARIABLES and any(fnmatchcase(name, pattern) for pattern in self._released)


class ScopedSecrets:
    """Resolves references of either kind.

    Args:
        environment: Finds `${env:NAME}`.
        vault: Finds `${secret:NAME}`.
    """

    def __init__(self, environment: EnvironmentSecrets, vault: Vault) -> None:
        self._environment = environment
        self._vault = vault

    async def resolve(self, reference: str, principal: Principal) -> str | None:
        """The value that a principal's calls get; null if there is none.

        Raises:
            InvalidDefinition: The text is no reference.
            InvalidSettings: The vault has it and cannot open it.
            Unavailable: The store cannot be read.
        """
        kind, name = reference_parts(reference)
        return self._environment.find(name) if kind == "env" else await self._vault.find(name, principal)
