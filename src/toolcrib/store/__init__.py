"""Definitions, journal, cache, blobs: what must survive the process."""

from toolcrib.store._open import open_store
from toolcrib.store.memory import MemoryStore
from toolcrib.store.ports import (
    ApiKey,
    ApiKeys,
    Blobs,
    Claim,
    Definition,
    DefinitionKind,
    Definitions,
    Entry,
    Journal,
    Lease,
    ResultCache,
    RunChange,
    Store,
)

__all__ = [
    "ApiKey",
    "ApiKeys",
    "Blobs",
    "Claim",
    "Definition",
    "DefinitionKind",
    "Definitions",
    "Entry",
    "Journal",
    "Lease",
    "MemoryStore",
    "ResultCache",
    "RunChange",
    "Store",
    "open_store",
]
