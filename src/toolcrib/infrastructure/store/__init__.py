"""Definitions, journal, cache, blobs: what must survive the process."""

from toolcrib.infrastructure.store._open import open_store
from toolcrib.infrastructure.store.memory.store import MemoryStore
from toolcrib.infrastructure.store.ports.approvals import ApprovalFilter, Approvals
from toolcrib.infrastructure.store.ports.counters import Charge, Counters, Reserved
from toolcrib.infrastructure.store.ports.ports import (
    ApiKey,
    ApiKeys,
    Blobs,
    Changed,
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
    VersionState,
)
from toolcrib.infrastructure.store.ports.records import ConversationFilter, Conversations
from toolcrib.infrastructure.store.ports.retention import Family, Pruning, Retention, Root
from toolcrib.infrastructure.store.ports.sealed import Place, SealedValue, SealedValues
from toolcrib.infrastructure.store.ports.transactions import Doer, NoTransactions, Transactions, transactions_of

__all__ = [
    "ApiKey",
    "ApiKeys",
    "ApprovalFilter",
    "Approvals",
    "Blobs",
    "Changed",
    "Charge",
    "Claim",
    "ConversationFilter",
    "Conversations",
    "Counters",
    "Definition",
    "DefinitionKind",
    "Definitions",
    "Doer",
    "Entry",
    "Family",
    "Journal",
    "Lease",
    "MemoryStore",
    "NoTransactions",
    "Place",
    "Pruning",
    "Reserved",
    "ResultCache",
    "Retention",
    "Root",
    "RunChange",
    "SealedValue",
    "SealedValues",
    "Store",
    "Transactions",
    "VersionState",
    "open_store",
    "transactions_of",
]
