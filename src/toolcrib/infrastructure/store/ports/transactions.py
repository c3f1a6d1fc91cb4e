"""The port for work of a tool that commits together with the record that it was done.

The work runs in the transaction that records it, so both are committed or neither. A process that has lost its run
writes nothing, and a repeated request returns the recorded result. Not for the store's own tables.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from toolcrib.contracts import InvalidSettings, Json

if TYPE_CHECKING:
    import sqlalchemy as sa

Work: TypeAlias = "Callable[[sa.Connection], Json]"
"""Runs in a thread of the store, which writes nothing else meanwhile: it must be short, and touch its own tables only.
It may be run again if the transaction was spoiled, so it does nothing outside of the database."""


class Doer(Struct, frozen=True):
    """Which call does the work, and who may."""

    run_id: str
    epoch: int
    """As the process that works on the run has claimed it."""
    key: str
    """The call's idempotency key: the work is done once for it."""
    made_by: str


class Transactions(Protocol):
    """Runs work in the store's own transactions."""

    async def transact(self, doer: Doer, work: Work) -> Json:
        """What the work brings, or has brought before for the same key; durable on return.

        Raises:
            Fenced: Another process has the run; nothing was written.
            InvalidSettings: The store has no database that could be shared.
            Exception: What the work raises; then nothing of it stays.
        """
        ...


@runtime_checkable
class Transacting(Protocol):
    """A store that can do it."""

    @property
    def transactions(self) -> Transactions:
        """Runs work in its transactions."""
        ...


class NoTransactions:
    """What other stores have in its place."""

    async def transact(self, doer: Doer, work: Work) -> Json:
        """Refuse."""
        del doer, work
        msg = "the store of this crib is not a database that tools can write to; use sqlite:///FILE or postgresql://…"
        raise InvalidSettings(msg)


def transactions_of(store: object) -> Transactions:
    """The transactions of a store, or what refuses them."""
    return store.transactions if isinstance(store, Transacting) else NoTransactions()
