"""Providers: authentication, reference lists, connection tests, and what all importers share.

Pure, except `Tokens`, which requests tokens through a given session. No definition is stored here. It imports the
executor, the registry and infrastructure; agents, the kinds of tools and the crib import it.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.core.providers.auth.consents import Consents
    from toolcrib.core.providers.auth.credentials import (
        CredentialOwner,
        Credentials,
        FindProvider,
        ProviderAccess,
        credentials_for,
    )
    from toolcrib.core.providers.auth.oauth import BrowserAuth, Client, answer_of, is_protected
    from toolcrib.core.providers.auth.tokens import Tokens
    from toolcrib.core.providers.imports import Group, ImportedApi
    from toolcrib.core.providers.reference_lists import ReferenceItem, ReferenceList, closest, read_reference, resolve
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.core.providers.auth.consents": "Consents",
            "toolcrib.core.providers.auth.credentials": (
                "CredentialOwner Credentials FindProvider ProviderAccess credentials_for"
            ),
            "toolcrib.core.providers.auth.oauth": "BrowserAuth Client answer_of is_protected",
            "toolcrib.core.providers.auth.tokens": "Tokens",
            "toolcrib.core.providers.imports": "Group ImportedApi",
            "toolcrib.core.providers.reference_lists": "ReferenceItem ReferenceList closest read_reference resolve",
        },
    )

__all__ = [
    "BrowserAuth",
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
