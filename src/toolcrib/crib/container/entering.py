"""How a part of a crib comes to know who acts."""

from typing import Protocol

from toolcrib.contracts import Principal


class Enter(Protocol):
    """Opens the store, and has the definitions of a principal's realm at hand."""

    async def __call__(self, principal: Principal | None, *, newest: bool = False) -> Principal:
        """Who acts: the crib's own principal if null.

        Args:
            principal: Who wants something.
            newest: Whether what other processes have saved meanwhile must be seen.
        """
        ...
