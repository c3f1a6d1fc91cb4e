"""The gallery in a crib: its tools, agents and workflows, saved and published.

The workflows are files, as people keep them in a repository; what they name besides is defined here.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import yaml

from examples.workflows.agents import askers, helpers
from examples.workflows.models import scripts
from examples.workflows.world import World
from toolcrib import AgenticStep, CompositeRoute, Crib, ToolDefinition, code_tool
from toolcrib.contracts.workflows import WorkflowDefinition
from toolcrib.core.executor import Clock
from toolcrib.kinds.composite.checks import composite_definition

FOLDER = Path(__file__).parent / "definitions"
INNER_FIRST = ("open_account", "order_fulfillment")
"""Files of the workflows that others name."""

BEST_OFFER = """
def main(offers):
    there = [offer for offer in offers if offer is not None]
    return min(there, key=lambda offer: offer["usd"])
"""


def definitions() -> Iterator[WorkflowDefinition]:
    """The workflows of the folder, those that others name first."""
    for file in sorted(FOLDER.iterdir(), key=lambda file: (file.stem not in INNER_FIRST, file.name)):
        text = file.read_text(encoding="utf-8")
        document = json.loads(text) if file.suffix == ".json" else yaml.safe_load(text)
        yield WorkflowDefinition.model_validate(document)


def open_crib(world: World, store: str = "memory://", *, clock: Clock | None = None) -> Crib:
    """A crib with the gallery's tools and models.

    Args:
        world: What the tools act on.
        store: Where definitions and runs are kept.
        clock: Time, for those who do not want to wait for days.
    """
    crib = Crib(store, models=scripts(), clock=clock)
    crib.add(*world.tools(), best_offer())
    return crib


async def publish(crib: Crib) -> None:
    """Save everything that the workflows name, and publish them."""
    for agent in helpers():
        await crib.agents.save(agent)
    for definition in definitions():
        await crib.workflows.publish(definition)
    crib.add(fulfillment_as_a_tool())
    crib.agentic_tool(
        "deal-manager",
        mode="deterministic",
        model="scripted:planner",
        steps=[
            AgenticStep(id="search", tool="crm.search_deals", purpose="Find the deals."),
            AgenticStep(id="update", tool="crm.update_deal", purpose="Put each into its new stage."),
        ],
    )
    for agent in askers():
        await crib.agents.save(agent)


def best_offer() -> ToolDefinition:
    """A tool of a few lines of code, which runs in a sandbox."""
    offer = {
        "type": "object",
        "properties": {"supplier": {"type": "string"}, "usd": {"type": "number"}},
        "required": ["supplier", "usd"],
    }
    offers = {"type": "object", "properties": {"offers": {"type": "array"}}, "required": ["offers"]}
    return code_tool(
        "best_offer",
        BEST_OFFER,
        description="The cheapest of several offers.",
        input_schema=offers,
        output_schema=offer,
        side_effects="none",
    )


def fulfillment_as_a_tool() -> ToolDefinition:
    """A workflow under the name and the arguments that an agent shall see, with a person's leave."""
    schema = {
        "type": "object",
        "properties": {"orderIds": {"type": "array", "items": {"type": "string"}, "minItems": 1}},
        "required": ["orderIds"],
    }
    route = CompositeRoute(id="fulfill", tool="fulfill-orders", input={"orderIds": "${input.orderIds}"})
    return composite_definition(
        "execute_fulfillment_workflow",
        schema,
        [route],
        description="Triggers the standard order fulfillment workflow for a set of order IDs",
        requires_confirmation=True,
    )
