"""Functions of the application."""

from typing import Any, ClassVar

import orjson

from tests.contract.conformance.kind import INPUT, NAME, Kind
from tests.contract.conformance.world import Behaviour, Flaky, Mischief, Unreachable, World
from toolcrib import Crib, FunctionTool, Result, tool
from toolcrib.contracts import ClientResult, Json, SideEffects, ToolDefinition, ToolEnvelope, ToolRevision
from toolcrib.infrastructure.net import NetworkError


class PythonKind(Kind):
    """A decorated function."""

    name = "python"
    cannot: ClassVar = {Behaviour.REFUSE_CREDENTIALS: "a function has no provider; what it raises is its own"}

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.function = acting(world)

    def definition(self) -> ToolDefinition:
        return self.function.definition.model_copy(update={"input_schema": INPUT, "output_schema": None})

    def bind(self, crib: Crib, revision: ToolRevision) -> None:
        crib._parts.functions.bind(revision.content_hash, self.function)  # pyright: ignore[reportPrivateUsage] - a definition changed by hand has no other way to its function


class ClientKind(PythonKind):
    """A function that prepares what a client does; the client does what was prepared."""

    name = "client"

    def definition(self) -> ToolDefinition:
        return super().definition().model_copy(update={"runs_on": "client"})

    async def settle(self, crib: Crib, result: Result) -> Result:
        """Do what was prepared."""
        while result.summary.status == "awaiting_client":
            for prepared in await crib.pending_handoffs(result.run_id):
                done = self.result or ClientResult(output=await self._whole(crib, prepared))
                assert await crib.return_client_result(result.run_id, prepared.position, done)
            result = await crib.resume(result.run_id)
        return result

    async def _whole(self, crib: Crib, prepared: ToolEnvelope) -> Json:
        if not prepared.truncated:
            return prepared.output
        kept = await crib.store.blobs.get(
            crib.principal.realm, prepared.attachments[-1].url.removeprefix("blob:sha256:")
        )
        return orjson.loads(kept)


def acting(world: World, name: str = NAME, side_effects: SideEffects = "reads") -> FunctionTool[..., Any]:
    """A function that acts."""

    @tool(name=name, side_effects=side_effects)
    async def act(text: str) -> Any:
        """Act."""
        try:
            return await world.act(text)
        except Flaky:
            raise TimeoutError from None
        except Unreachable:
            raise NetworkError("nobody answers at 127.0.0.1:1") from None
        except Mischief as mischief:
            if isinstance(mischief.what, BaseException):
                raise mischief.what from None
            return mischief.what

    return act
