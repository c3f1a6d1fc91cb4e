"""Secrets: stored encrypted, resolved by reference for one call, and redacted from its results.

It imports the store's ports and contracts. Core, kinds and the crib import it.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.infrastructure.secrets.references import (
        OWN_VARIABLES,
        PLACEHOLDER,
        EnvironmentSecrets,
        Redactor,
        ScopedSecrets,
        VariableRelease,
        reference_parts,
    )
    from toolcrib.infrastructure.secrets.sealing import MasterKeys, new_master_key
    from toolcrib.infrastructure.secrets.vault import Opened, Safe, Vault
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.infrastructure.secrets.references": (
                "EnvironmentSecrets OWN_VARIABLES PLACEHOLDER Redactor ScopedSecrets VariableRelease reference_parts"
            ),
            "toolcrib.infrastructure.secrets.sealing": "MasterKeys new_master_key",
            "toolcrib.infrastructure.secrets.vault": "Opened Safe Vault",
        },
    )

__all__ = [
    "OWN_VARIABLES",
    "PLACEHOLDER",
    "EnvironmentSecrets",
    "MasterKeys",
    "Opened",
    "Redactor",
    "Safe",
    "ScopedSecrets",
    "VariableRelease",
    "Vault",
    "new_master_key",
    "reference_parts",
]
