"""Stores: definitions, journals, caches and blobs, in memory, SQLite or PostgreSQL.

It imports contracts only. Importing it loads no database driver. Decisions: docs/decisions/0003, 0030, 0032, 0033.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
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
        Journal,
        Lease,
        Removal,
        ResultCache,
        RunChange,
        Store,
        VersionState,
    )
    from toolcrib.infrastructure.store.ports.transactions import Doer, NoTransactions, Transactions, transactions_of
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.infrastructure.store._open": "open_store",
            "toolcrib.infrastructure.store.memory.memory_store": "MemoryStore",
            "toolcrib.infrastructure.store.ports.records": (
                "ApprovalFilter ApprovalStore Charge ConversationFilter ConversationStore Counters Reserved "
                "SealedKey SealedValue SealedValues"
            ),
            "toolcrib.infrastructure.store.ports.retention": "Family Pruning RetentionStore Root",
            "toolcrib.infrastructure.store.ports.store": (
                "ApiKey ApiKeys Blobs Changed Claim Definition DefinitionKind Definitions Journal Lease "
                "Removal ResultCache RunChange Store VersionState"
            ),
            "toolcrib.infrastructure.store.ports.transactions": "Doer NoTransactions Transactions transactions_of",
        },
    )

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
    "Family",
    "Journal",
    "Lease",
    "MemoryStore",
    "NoTransactions",
    "Pruning",
    "Removal",
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
