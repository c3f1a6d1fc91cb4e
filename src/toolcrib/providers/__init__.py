"""Connections to other systems: their authentication, their reference lists, and importers that make tools of them.

Pure functions over contracts, but for `Tokens`, which asks token endpoints through the session that it is given.
Nothing here stores a definition.
"""

from toolcrib.providers.access import FindProvider, ProviderAccess
from toolcrib.providers.auth import Credentials, Holder, credentials_for
from toolcrib.providers.authorization import answer_of, is_protected
from toolcrib.providers.consents import Consents
from toolcrib.providers.imported import Group, ImportedApi
from toolcrib.providers.oauth import Client
from toolcrib.providers.openapi import Bounds, Fetch, ToolOverride, fetch_documents, import_openapi
from toolcrib.providers.references import ReferenceItem, ReferenceList, closest, read_reference, resolve
from toolcrib.providers.tokens import Tokens

__all__ = [
    "Bounds",
    "Client",
    "Consents",
    "Credentials",
    "Fetch",
    "FindProvider",
    "Group",
    "Holder",
    "ImportedApi",
    "ProviderAccess",
    "ReferenceItem",
    "ReferenceList",
    "Tokens",
    "ToolOverride",
    "answer_of",
    "closest",
    "credentials_for",
    "fetch_documents",
    "import_openapi",
    "is_protected",
    "read_reference",
    "resolve",
]
