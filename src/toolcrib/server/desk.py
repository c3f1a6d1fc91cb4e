"""Where a caller saves definitions: with its own grants, and under the operator's rules for what comes over HTTP."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from toolcrib.contracts import Principal, ToolDefinition, ToolRevision
from toolcrib.crib import Crib
from toolcrib.server.context import Caller, House
from toolcrib.server.rules import demand_secrets, demand_write, refuse_code, refuse_local_model


@dataclass(frozen=True, slots=True)
class Desk:
    """One request's way of saving."""

    crib: Crib
    caller: Principal
    allow_local_models: bool

    async def save(self, definition: ToolDefinition, *, after: int | None = None) -> ToolRevision:
        """Store a definition as a new revision.

        Raises:
            PermissionDenied: The caller has no grant to write the tool or for a secret that it names, or its model is
                on a local address.
            InvalidDefinition: It is Python code, or not well formed.
            Conflict: Another revision has been saved since `after`.
        """
        demand_write(self.caller, definition)
        demand_secrets(self.caller, (secret.reference for secret in definition.secrets))
        self.check(definition)
        return await self.crib.save(definition, principal=self.caller, after=after)

    def check(self, definition: ToolDefinition) -> None:
        """Refuse what may not come over HTTP."""
        refuse_code(definition)
        if not self.allow_local_models:
            refuse_local_model(definition)


def _desk(request: Request, crib: House, caller: Caller) -> Desk:
    return Desk(crib, caller, request.app.state.allow_local_models)


Author = Annotated[Desk, Depends(_desk)]
