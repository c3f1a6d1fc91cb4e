"""A crib with one tool of one kind: what every case of the suite starts from."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from tests.contract.conformance.clock import TickingClock
from tests.contract.conformance.envelopes import check_envelope
from tests.contract.conformance.kind import NAME, Kind
from tests.contract.conformance.world import ENVIRONMENT, Behaviour, World
from toolcrib import Crib, EgressPolicy, Principal, Result, SharingOptions
from toolcrib.contracts import JsonObject, SecretReference, ToolEnvelope, ToolError, ToolRevision

KEY = SecretReference(name="key", reference="${env:KEY}")


class Stand:
    """The crib, its tool and the world."""

    def __init__(self, crib: Crib, kind: Kind) -> None:
        self.crib = crib
        self.kind = kind
        self.world = kind.world
        self.tool: ToolRevision

    async def define(self, **changes: Any) -> ToolRevision:
        """Save the tool, with changes."""
        definition = self.kind.definition().model_copy(update=changes)
        self.tool = await self.crib.save(type(definition).model_validate(definition.model_dump()))
        self.kind.bind(self.crib, self.tool)
        return self.tool

    async def start(
        self,
        behaviour: Behaviour = Behaviour.SUCCEED,
        *,
        arguments: JsonObject | None = None,
        principal: Principal | None = None,
        dry_run: bool = False,
    ) -> Result:
        """Make one call of the tool; the run may wait for somebody."""
        await self.kind.prepare(self.crib, behaviour)
        asked = self.kind.arguments(behaviour) if arguments is None else arguments
        crib = self.crib if principal is None else self.crib.acting_as(principal)
        return await crib.invoke(NAME, asked, dry_run=dry_run, as_call=True)

    async def call(self, behaviour: Behaviour = Behaviour.SUCCEED, **options: Any) -> ToolEnvelope:
        """Make one call of the tool to its end; its envelope, which is in order."""
        return self.ended(await self.kind.settle(self.crib, await self.start(behaviour, **options)))

    async def failure(self, behaviour: Behaviour = Behaviour.SUCCEED, **options: Any) -> ToolError:
        """The error of a call."""
        envelope = await self.call(behaviour, **options)
        assert envelope.error is not None
        return envelope.error

    def ended(self, result: Result) -> ToolEnvelope:
        """The envelope of a run that has ended, checked."""
        [envelope] = result.envelopes
        check_envelope(envelope, self.tool)
        assert result.error == envelope.error
        return envelope


@asynccontextmanager
async def standing(kind: type[Kind], **changes: Any) -> AsyncGenerator[Stand]:
    """A stand with its tool, until the end of the block."""
    made = kind(World())
    async with AsyncExitStack() as stack:
        await made.open(stack)
        crib = Crib(
            "memory://",
            clock=TickingClock(),
            sharing=SharingOptions(lease_s=100),
            environment=ENVIRONMENT,
            models=made.models(),
            egress=EgressPolicy(allow=made.addresses()),
        )
        await stack.enter_async_context(crib)
        await made.furnish(crib)
        stand = Stand(crib, made)
        await stand.define(**changes)
        try:
            yield stand
        finally:
            made.world.released.set()
