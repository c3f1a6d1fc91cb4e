"""Stores: definitions, journals, caches and blobs, in memory, SQLite or PostgreSQL.

It imports contracts only. Importing it loads no database driver. Decisions: docs/decisions/0003, 0030, 0032, 0033.
"""

from toolcrib.infrastructure.store._open import open_store
from toolcrib.infrastructure.store.memory.memory_store import MemoryStore
from toolcrib.infrastructure.store.ports.records import (
    ApprovalFilter,
    ApprovalStore,
    Charge,
    ConversationFilter,
    ConversationStore,
    Counters,
    Reserved,
    SealedKey,
    SealedValue,
    SealedValues,
)
from toolcrib.infrastructure.store.ports.retention import Family, Pruning, RetentionStore, Root
from toolcrib.infrastructure.store.ports.store import (
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
from toolcrib.infrastructure.store.ports.transactions import Doer, NoTransactions, Transactions, transactions_of

__all__ = [
    "ApiKey",
    "ApiKeys",
    "ApprovalFilter",
    "ApprovalStore",
    "Blobs",
    "Changed",
    "Charge",
    "Claim",
    "ConversationFilter",
    "ConversationStore",
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
    "Pruning",
    "Reserved",
    "ResultCache",
    "RetentionStore",
    "Root",
    "RunChange",
    "SealedKey",
    "SealedValue",
    "SealedValues",
    "Store",
    "Transactions",
    "VersionState",
    "open_store",
    "transactions_of",
]
