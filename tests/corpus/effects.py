"""What a plan does to a system: its steps carried out by the system's own tools, without any run."""

from collections.abc import Mapping
from typing import Final, cast

from tests.corpus.corpus import Task
from tests.corpus.plans import right_plan
from tests.corpus.systems import System, system_of
from toolcrib.agents.evidence.plan_schema import StepPlan, expand
from toolcrib.agents.evidence.word_matching import replace_labels
from toolcrib.agents.toolset.schema_narrowing import enums_of
from toolcrib.contracts import Json, JsonObject
from toolcrib.kinds.python.context import ToolContext

_NO_CONTEXT: Final = cast("ToolContext", None)
"""No tool here asks for one."""


async def effect_of(task: Task, plan: JsonObject) -> Json:
    """The records that a plan leaves, or, of a plan that changes nothing, those that it finds; comparable by `==`."""
    system = system_of(task.system)
    system.reset()
    before = {name: dict(record) for name, record in system.records.items()}
    outputs = await carry_out(system, task, plan)
    if system.records != before or task.action != "read":
        return [record for _, record in sorted(system.records.items(), key=lambda item: str(item[0]))]
    return [outputs]


async def right_effect(task: Task) -> Json:
    """What the right plan does."""
    return await effect_of(task, right_plan(task))


async def carry_out(system: System, task: Task, plan: JsonObject) -> Mapping[str, Json]:
    """Carry out a plan's steps, with ids in place of labels.

    Args:
        system: Whose records it changes.
        task: Says which steps there are.
        plan: What is wanted of each.
    """
    lists = enums_of(await system.lists())
    tools = {tool.definition.name: tool for tool in system.tools}
    outputs: dict[str, Json] = {}
    for name in system.steps(task.action):
        step = StepPlan.read(plan[name])
        wanted = StepPlan(step.skip, step.for_each, cast("JsonObject", replace_labels(step.input, lists)))
        for arguments in expand(wanted, tools[name].definition.input_schema, outputs):
            outputs[name] = await tools[name].invoke(tools[name].values_of(arguments, _NO_CONTEXT))
    return outputs
