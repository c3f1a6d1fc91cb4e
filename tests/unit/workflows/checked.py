"""A crib with tools of known schemas, in which definitions are checked."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from toolcrib import Crib, ScriptedModel, tool
from toolcrib.contracts import AllocatedTool, JsonObject, JsonSchema, LLMConfig, ToolDefinition
from toolcrib.contracts.tools.agent_definitions import AgentDefinition
from toolcrib.contracts.workflows import WorkflowProblem
from toolcrib.kinds.python.shape import PythonImplementation

MODEL = "scripted:m"
ORDER: JsonSchema = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "total": {"type": "integer"},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": "string"}}}},
        "note": {"type": ["string", "null"]},
        "state": {"enum": ["new", "paid"]},
    },
    "required": ["id", "total", "lines"],
}


def described(name: str, takes: JsonSchema, gives: JsonSchema | None = None, **fields: Any) -> ToolDefinition:
    """A tool that is only looked at."""
    schema = {"type": "object", "properties": takes, "required": list(takes), "additionalProperties": False}
    options: dict[str, Any] = {"side_effects": "reads", **fields}
    made = PythonImplementation(function=name)
    return ToolDefinition(name=name, input_schema=schema, output_schema=gives, implementation=made, **options)


@tool(side_effects="reads")
async def anything(value: Any = None) -> Any:
    """Gives back what it gets."""
    return value


TOOLS = (
    described("get_order", {"id": {"type": "string"}}, ORDER),
    described("pay", {"amount": {"type": "number"}}, {"type": "null"}, side_effects="writes"),
    described("tag", {"label": {"enum": ["old", "lost"]}}),
    described("ship", {"order": {"type": "object", "required": ["id", "address"]}}),
    described("mail", {"to": {"type": "array", "items": {"type": "string"}}}),
    described("say", {"text": {"type": "string"}}),
)


@asynccontextmanager
async def house() -> AsyncGenerator[Crib]:
    """A crib with the tools and an agent."""
    async with Crib("memory://", models={MODEL: ScriptedModel([])}) as crib:
        crib.add(anything, *TOOLS)
        desk = AgentDefinition(name="desk", llm=LLMConfig(model=MODEL), tools=(AllocatedTool(tool="say"),))
        await crib.agents.save(desk)
        yield crib


async def problems(*steps: JsonObject, crib: Crib | None = None, **fields: Any) -> Sequence[WorkflowProblem]:
    """What is wrong with a workflow of these steps."""
    if crib is None:
        async with house() as made:
            return await problems(*steps, crib=made, **fields)
    graph = await crib.workflows.check({"name": "flow", **fields, "steps": list(steps)})
    return graph.problems


async def told(*steps: JsonObject, crib: Crib | None = None, **fields: Any) -> Sequence[str]:
    """The same as lines; a warning begins with `warning `."""
    found = await problems(*steps, crib=crib, **fields)
    return [("" if problem.is_error else "warning ") + str(problem) for problem in found]
