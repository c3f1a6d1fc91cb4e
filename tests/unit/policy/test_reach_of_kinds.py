"""Agents and workflows have URIs of their own: grants for tools do not reach them, and the other way round."""

from random import Random

import pytest

from tests.twins.shelves import NOON, laid_out
from toolcrib.contracts import LLMConfig, ToolDefinition, ToolRevision, Verb
from toolcrib.contracts.tools.agent_definitions import AgentDefinition
from toolcrib.contracts.workflows import WorkflowDefinition, WorkflowStep
from toolcrib.core.policy import VisibleTools, permits
from toolcrib.kinds.python.shape import PythonImplementation

NAMES = ("deal", "desk", "flow", "other")
SEGMENTS = ("*", "tools", "agents", "workflows", "crm", *NAMES, "execute", "read")
VERBS: tuple[Verb, ...] = ("execute", "read", "write", "publish")


def made(kind: str, name: str) -> ToolRevision:
    match kind:
        case "agent":
            definition = AgentDefinition(name=name, category="crm", llm=LLMConfig(model="openai:m")).tool()
        case "workflow":
            step = WorkflowStep(name="a", output=1)
            definition = WorkflowDefinition(name=name, category="crm", steps=(step,)).tool()
        case _:
            definition = ToolDefinition(name=name, category="crm", implementation=PythonImplementation(function="f"))
    return ToolRevision(
        definition=definition,
        revision=1,
        content_hash=definition.content_hash(),
        realm="acme",
        made_by="ann",
        created_at=NOON,
    )


@pytest.mark.requirement("policy.reach", "workflow_checks.reach")
@pytest.mark.parametrize("seed", range(20))
def test_what_grants_reach_is_what_they_permit_whatever_the_kind(seed: int):
    random = Random(seed)
    tools = [made(random.choice(("tool", "agent", "workflow")), name) for name in NAMES]
    reach = VisibleTools(laid_out(tools))
    for _ in range(200):
        grants = tuple(
            "ai://" + "/".join(random.choices(SEGMENTS, k=random.randrange(1, 5))) for _ in range(random.randrange(3))
        )
        verbs = random.sample(VERBS, k=random.randrange(1, 4))

        found = reach.of(grants, verbs)

        allowed = {
            tool.name for tool in tools if any(permits(grants, tool.definition.security(verb)) for verb in verbs)
        }
        assert (set(NAMES) if found is None else found) == allowed
