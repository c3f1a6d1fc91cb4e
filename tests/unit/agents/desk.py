"""An agent over the small CRM, asked once by a model that follows a script."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from tests.unit.agents.crm import MODEL, Crm
from toolcrib import Crib, FunctionTool, Result, ScriptedModel
from toolcrib.contracts import AgentDefinition, Json, JsonObject, LLMConfig, Principal, ProgressMade
from toolcrib.llm import Script

Prepare = Callable[[Crib], Any]


def agent(name: str = "desk", **fields: Any) -> AgentDefinition:
    """An agent of the scripted model."""
    return AgentDefinition.model_validate({"name": name, "llm": LLMConfig(model=MODEL), **fields})


async def ask(
    script: Script | ScriptedModel,
    *others: FunctionTool[..., Any],
    crm: Crm | None = None,
    arguments: JsonObject | None = None,
    principal: Principal | None = None,
    dry_run: bool = False,
    beside: Sequence[AgentDefinition] = (),
    **fields: Any,
) -> tuple[Result, ScriptedModel]:
    """Ask an agent once, in a crib of its own.

    Args:
        script: What its model says.
        *others: Tools beside the CRM's.
        crm: The CRM.
        arguments: What the agent is asked.
        principal: Who asks.
        dry_run: Skip what writes.
        beside: Other agents, which have the same model.
        **fields: Of its definition; it may search and update deals unless they say what else.
    """
    model = script if isinstance(script, ScriptedModel) else ScriptedModel(script)
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(*(crm or Crm(2)).tools, *others, *(each.tool() for each in beside))
        said: Any = {"tools": ["search_deals", "update_deals"], **fields}
        await crib.agents.save(agent(**said))
        asked = arguments or {"message": "How many deals has Acme?"}
        asker = crib if principal is None else crib.acting_as(principal)
        return await asker.invoke("desk", asked, dry_run=dry_run), model


def noted(result: Result, kind: str) -> list[JsonObject]:
    """What the journal of a run has noted of a kind."""
    found = [entry.event for entry in result.events if isinstance(entry.event, ProgressMade)]
    return [cast("JsonObject", event.data) for event in found if event.kind == kind]


def output_of(result: Result) -> dict[str, Json]:
    """What an agent puts out."""
    return cast("dict[str, Json]", result.output)


def partial_of(result: Result) -> dict[str, Json]:
    """What an agent had done that did not complete."""
    assert result.output is None
    return cast("dict[str, Json]", result.partial)
