"""Composite tools over a function."""

from typing import ClassVar

from tests.contract.conformance.kind import INPUT, NAME, Kind
from tests.contract.conformance.kind_python import PythonKind, acting
from toolcrib import CompositeRoute, Crib
from toolcrib.contracts import ToolDefinition
from toolcrib.kinds.composite.shape import CompositeImplementation


class CompositeKind(Kind):
    """One route that is always taken."""

    name = "composite"
    cannot: ClassVar = PythonKind.cannot

    async def furnish(self, crib: Crib) -> None:
        crib.add(acting(self.world, "inner"))
        await crib.open()

    def definition(self) -> ToolDefinition:
        return ToolDefinition(
            name=NAME,
            input_schema=INPUT,
            side_effects="reads",
            implementation=CompositeImplementation(routes=(CompositeRoute(id="only", tool="inner"),)),
        )
