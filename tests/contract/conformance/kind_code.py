"""Code in a sandbox, which calls a function of the application."""

from typing import ClassVar

from tests.contract.conformance.kind import INPUT, NAME, Kind
from tests.contract.conformance.kind_python import acting
from tests.contract.conformance.world import Behaviour
from toolcrib import Crib
from toolcrib.contracts import JsonObject, ToolDefinition
from toolcrib.kinds.code.shape import CodeImplementation

_OWN = "what its tools do is for the code to judge; that it did not catch it is the code's failure"


class CodeKind(Kind):
    """A program of two lines."""

    name = "code"
    cannot: ClassVar = {
        Behaviour.BE_UNREACHABLE: _OWN,
        Behaviour.REFUSE_CREDENTIALS: _OWN,
        Behaviour.FAIL_ONCE: _OWN,
    }

    async def furnish(self, crib: Crib) -> None:
        crib.add(acting(self.world, "inner"))
        await crib.open()

    def definition(self) -> ToolDefinition:
        source = "def main(text):\n    return inner(text=text)\n"
        return ToolDefinition(
            name=NAME,
            input_schema=INPUT,
            side_effects="reads",
            implementation=CodeImplementation(source=source, tools=("inner",)),
        )

    def hasty(self) -> JsonObject:
        return {"timeout_s": 0.2}
