"""What may be told of a secret in the vault: everything but its value."""

from typing import Final, Literal, TypeAlias, get_args

from toolcrib.contracts.base.base import Contract, Timestamp

SecretScope: TypeAlias = Literal["user", "realm", "org"]
"""Whose a secret is: one user's in a realm, the realm's, or that of all realms."""

SECRET_SCOPES: Final[tuple[SecretScope, ...]] = get_args(SecretScope)
"""In the order in which a name is looked up."""


class SecretEntry(Contract):
    """A secret in the vault. Its value is written and used, never read back."""

    name: str
    scope: SecretScope
    version: int
    """How often it has been set."""
    made_by: str
    created_at: Timestamp
    """When this version was set."""
