"""Connections to other systems: their authentication, their reference lists, and importers that make tools of them.

Pure functions over contracts, but for `Tokens`, which asks token endpoints through the session that it is given.
Nothing here stores a definition.
"""

from toolcrib.core.providers.auth.consents import Consents
from toolcrib.core.providers.auth.credentials import (
    CredentialOwner,
    Credentials,
    FindProvider,
    ProviderAccess,
    credentials_for,
)
from toolcrib.core.providers.auth.oauth import Client, answer_of, is_protected
from toolcrib.core.providers.auth.tokens import Tokens
from toolcrib.core.providers.imports import Group, ImportedApi
from toolcrib.core.providers.references import ReferenceItem, ReferenceList, closest, read_reference, resolve

__all__ = [
    "Client",
    "Consents",
    "CredentialOwner",
    "Credentials",
    "FindProvider",
    "Group",
    "ImportedApi",
    "ProviderAccess",
    "ReferenceItem",
    "ReferenceList",
    "Tokens",
    "answer_of",
    "closest",
    "credentials_for",
    "is_protected",
    "read_reference",
    "resolve",
]
