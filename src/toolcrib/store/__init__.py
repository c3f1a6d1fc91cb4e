"""Definitions, journal, cache, blobs: what must survive the process."""

from toolcrib.store._open import open_store
from toolcrib.store.approvals import ApprovalFilter, Approvals
from toolcrib.store.conversations import ConversationFilter, Conversations
from toolcrib.store.counters import Charge, Counters, Reserved
from toolcrib.store.memory import MemoryStore
from toolcrib.store.ports import (
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
from toolcrib.store.retention import Family, Pruning, Retention, Root
from toolcrib.store.sealed import Place, SealedValue, SealedValues
from toolcrib.store.transactions import Doer, NoTransactions, Transactions, transactions_of

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
