"""Where a caller saves definitions: with its own grants, and under the operator's rules for what comes over HTTP."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from toolcrib.contracts import JsonObject, Principal, ToolDefinition, ToolRevision
from toolcrib.contracts.workflows import Publication, WorkflowDefinition, WorkflowDraft
from toolcrib.core.policy import require_publish
from toolcrib.crib import Crib
from toolcrib.interfaces.server.http.context import (
    demand_secrets,
    demand_sight,
    demand_write,
    refuse_code,
    refuse_local_model,
)
from toolcrib.interfaces.server.http.context_part import Caller, House


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

    async def draft(
        self, definition: WorkflowDefinition | JsonObject, *, note: str = "", after: int | None = None
    ) -> WorkflowDraft:
        """Keep a workflow without publishing it.

        Raises:
            PermissionDenied: The caller may not see a tool that it calls, or use a secret that it names.
            InvalidDefinition: It could not be published.
            Conflict: Another revision of the draft has been saved since `after`.
        """
        await self.demand_parts(definition)
        return await self.crib.workflows.draft(definition, note=note, principal=self.caller, after=after)

    async def publish(
        self,
        name: str,
        definition: WorkflowDefinition | JsonObject | None,
        *,
        after: int | None = None,
        draft: int | None = None,
    ) -> Publication:
        """Publish a workflow, or its draft, in the revision that was looked at if its number is given.

        Raises:
            NotFound: There is no draft of this name.
            PermissionDenied: The caller may not publish it, or not change the tool of another kind that it replaces,
                or not see a tool that it calls, or not use a secret that it names.
            InvalidDefinition: Something is wrong with it.
            Conflict: Another revision has been saved since `after`, or of the draft since `draft`.
        """
        require_publish(self.caller, name)
        await self.crib.enter(self.caller, newest=True)
        known = self.crib.registry.named(self.caller.realm, name)
        if known is not None:
            demand_write(self.caller, known.definition)
        workflows = self.crib.workflows
        if definition is not None:
            await self.demand_parts(definition)
            return await workflows.publish(definition, principal=self.caller, after=after)
        drafted = await workflows.get_draft(name, principal=self.caller)
        await self.demand_parts(drafted.definition)
        seen = drafted.revision if draft is None else draft  # what is published is what was held against the grants
        return await workflows.publish(name, principal=self.caller, after=after, draft=seen)

    async def demand_parts(self, definition: WorkflowDefinition | JsonObject) -> None:
        """Let pass who may see the tools that a workflow calls, whose schemas its check tells of, and use its secrets.

        What does not have the shape of a definition names none, and is held against none.
        """
        if not isinstance(definition, WorkflowDefinition):
            return
        demand_secrets(self.caller, (secret.reference for secret in definition.secrets))
        handlers = {handler.name: handler for handler in await self.crib.steps.list(principal=self.caller)}
        for ref in {step.callee(handlers) for step in definition.steps} - {None}:
            tool = self.crib.registry.named(self.caller.realm, str(ref))
            if tool is not None:
                demand_sight(self.caller, tool.definition)

    def check(self, definition: ToolDefinition) -> None:
        """Refuse what may not come over HTTP."""
        refuse_code(definition)
        if not self.allow_local_models:
            refuse_local_model(definition)


def _desk(request: Request, crib: House, caller: Caller) -> Desk:
    return Desk(crib, caller, request.app.state.allow_local_models)


Author = Annotated[Desk, Depends(_desk)]
