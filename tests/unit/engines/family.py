"""Runs on two levels: a parent that starts one child, in one house; and stores whose journal is another one."""

from decimal import Decimal
from typing import Any

from tests.twins import make_definition
from tests.unit.runs.house import House, ask
from toolcrib.contracts import AgenticImplementation, Json, LLMConfig, ToolRevision
from toolcrib.core.runs import RunContext
from toolcrib.infrastructure.store import MemoryStore, Store

AGENT = make_definition(
    "agent",
    side_effects="writes",
    implementation=AgenticImplementation(mode="agentic", llm=LLMConfig(model="scripted:none"), system_prompt=""),
)


class Family:
    """A parent's and a child's program, which one house runs."""

    def __init__(
        self, child: Any, behaviour: Any = None, *, other: "Family | None" = None, owner: str = "first"
    ) -> None:
        self.child = child
        self.agent: ToolRevision | None = other.agent if other else None
        self.house = House(self._program, *([behaviour] if behaviour else []), other=other and other.house, owner=owner)

    async def _program(self, context: RunContext) -> Json:
        if context.request.parent_run_id is not None:
            return await self.child(context)
        assert self.agent is not None
        started = context.start_child("c1", self.agent, {"task": "it"})
        (result,) = await context.wait_all([started])
        return [result.status, result.output, str(context.budget.cost_usd), context.budget.tool_calls]

    async def prepare(self) -> None:
        self.agent = await self.house.save(AGENT)
        await self.house.save(make_definition("act", side_effects="writes", cost_usd_per_call=Decimal("0.25")))

    async def start(self) -> Any:
        await self.prepare()
        return (await self.house.start()).result


async def acts(context: RunContext) -> Json:
    await context.call(ask("a", "act"))
    return "acted"


def other_store(journal: type[Any]) -> Store:
    """A store in memory with another journal."""

    class Other(MemoryStore):
        def __init__(self) -> None:
            super().__init__()
            self.other = journal(super().journal)

        @property
        def journal(self) -> Any:
            return self.other

    return Other()
