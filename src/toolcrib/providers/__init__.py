"""Connections to other systems: their authentication, their reference lists, and importers that make tools of them.

Pure functions over contracts: nothing here opens a connection or stores a definition.
"""

from toolcrib.providers.auth import Credentials, credentials_for
from toolcrib.providers.openapi import ImportedApi, Loss, ToolOverride, import_openapi
from toolcrib.providers.references import ReferenceItem, ReferenceList, closest, read_reference, resolve

__all__ = [
    "Credentials",
    "ImportedApi",
    "Loss",
    "ReferenceItem",
    "ReferenceList",
    "ToolOverride",
    "closest",
    "credentials_for",
    "import_openapi",
    "read_reference",
    "resolve",
]
