"""What the suite needs to know of one kind of tool: how to make a tool of it that does the world's act."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, ClassVar

from tests.contract.conformance.world import Behaviour, World
from toolcrib import Crib, Result
from toolcrib.contracts import ClientResult, JsonObject, JsonSchema, ToolDefinition, ToolRevision
from toolcrib.llm import LanguageModel

NAME = "act"
INPUT: JsonSchema = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}


class Kind(ABC):
    """One kind. Everything that a crib can do with its tool is the suite's business.

    Args:
        world: What the tool acts on.
    """

    name: ClassVar[str]
    cannot: ClassVar[Mapping[Behaviour, str]] = {}
    """Behaviours that a tool of this kind has no way to show, and why."""
    only_reads: ClassVar[str | None] = None
    """Why its tool cannot write, if it cannot."""
    prices_itself: ClassVar[bool] = False
    """Whether its runs know what they cost."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.result: ClientResult | None = None
        """What a client brings instead of what was prepared."""

    async def open(self, stack: AsyncExitStack) -> None:  # noqa: B027 - most kinds need no counterpart
        """Start what the tool talks to, until the stack closes."""

    def addresses(self) -> tuple[str, ...]:
        """`host:port` that the crib must be allowed to reach."""
        return ()

    def models(self) -> Mapping[str, LanguageModel]:
        """Models that the crib is given."""
        return {}

    async def furnish(self, crib: Crib) -> None:  # noqa: B027 - see above
        """Save what the tool needs beside it."""

    @abstractmethod
    def definition(self) -> ToolDefinition:
        """The tool, named `act`, which reads."""

    def bind(self, crib: Crib, revision: ToolRevision) -> None:  # noqa: B027 - see above
        """Make a saved revision executable."""

    async def prepare(self, crib: Crib, behaviour: Behaviour) -> None:  # noqa: B027 - see above
        """Make the world ready to behave so, where the arguments alone do not."""

    def arguments(self, behaviour: Behaviour) -> JsonObject:
        """The arguments that ask for a behaviour."""
        return {"text": behaviour.value}

    def said(self, output: Any) -> str:
        """What the act said, from the tool's output."""
        return output["said"]

    def hasty(self) -> JsonObject:
        """Changes of the definition after which its calls have no time."""
        return {"timeout_s": 0.05}

    def writing(self) -> JsonObject:
        """Changes of the definition after which the tool writes."""
        return {"side_effects": "writes"}

    async def settle(self, crib: Crib, result: Result) -> Result:
        """Do what a run of this kind waits for by its nature."""
        return result
