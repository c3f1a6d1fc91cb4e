"""Secrets: kept sealed, resolved by reference for one call, and taken out of everything that leaves it."""

from toolcrib.secrets.redaction import PLACEHOLDER, Redactor
from toolcrib.secrets.references import OWN_VARIABLES, EnvironmentSecrets, ScopedSecrets, reference_parts
from toolcrib.secrets.safe import Opened, Safe
from toolcrib.secrets.sealing import MasterKeys, new_master_key
from toolcrib.secrets.vault import Vault

__all__ = [
    "OWN_VARIABLES",
    "PLACEHOLDER",
    "EnvironmentSecrets",
    "MasterKeys",
    "Opened",
    "Redactor",
    "Safe",
    "ScopedSecrets",
    "Vault",
    "new_master_key",
    "reference_parts",
]
