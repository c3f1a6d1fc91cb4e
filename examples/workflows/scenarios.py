"""What the gallery's workflows do: one scenario each, from the call to the end, with the people who take part.

A scenario returns how the run stands at its end. What has really happened stands in the ledger of the world.
"""

from collections.abc import Awaitable, Callable, Mapping

from examples.workflows.world import World
from toolcrib import Crib
from toolcrib.contracts import AgentRequest, Principal
from toolcrib.contracts.workflows import WorkflowInstance

BEN = Principal(id="ben", grants=("ai://*",))
"""Approves, and publishes what others have written."""

Scenario = Callable[[Crib, World], Awaitable[WorkflowInstance]]


async def order_fulfillment(crib: Crib, world: World) -> WorkflowInstance:
    """An order with a bad address: an agent looks it up and decides, then it is shipped (the example of 004)."""
    return await crib.instances.start("order-fulfillment-standard", {"orderId": "4717"})


async def import_contacts(crib: Crib, world: World) -> WorkflowInstance:
    """A thousand contacts, 25 at once."""
    contacts = [{"name": f" Contact {number} ", "mail": f"C{number}@EXAMPLE.COM"} for number in range(1000)]
    return await crib.instances.start("import-contacts", {"contacts": contacts})


async def book_trip(crib: Crib, world: World) -> WorkflowInstance:
    """No car can be had: hotel and flight are given back, in this order."""
    world.broken.add("car")
    return await crib.instances.start("book-trip", {"city": "Oslo", "nights": 2})


async def expense_approval(crib: Crib, world: World) -> WorkflowInstance:
    """A large expense waits for a person, who allows a part of it."""
    asked = {"employee": "ann", "usd": 120, "what": "a drill"}
    waiting = await crib.instances.start("expense-approval", asked)
    inbox = await crib.acting_as(BEN).approvals.page()
    (request,) = [item for item in inbox.items if item.run_id == waiting.run_id]
    await crib.acting_as(BEN).approvals.decide(request.approval_id, approve=True, edited_input={"usd": 100})
    await crib.recover()
    return await crib.instances.get(waiting.run_id)


async def onboarding(crib: Crib, world: World) -> WorkflowInstance:
    """A workflow inside a workflow, once for each system."""
    return await crib.instances.start("onboarding", {"person": "kim", "systems": ["mail", "wiki", "crm"]})


async def sync_inventory(crib: Crib, world: World) -> WorkflowInstance:
    """A supplier that stays down is asked three times, and then yesterday's list is taken."""
    world.broken.add("acme")
    return await crib.instances.start("sync-inventory", {"supplier": "acme"})


async def payment_reminder(crib: Crib, world: World) -> WorkflowInstance:
    """Fourteen days pass, then somebody says that the money has come."""
    invoice = {"invoice": "R-1", "customer": "acme", "days": 14}
    waiting = await crib.instances.start("payment-reminder", invoice)
    await crib.clock.sleep(14 * 86_400)
    await crib.recover()
    await crib.instances.signal(waiting.run_id, "paid", {"usd": 250})
    await crib.recover()
    return await crib.instances.get(waiting.run_id)


async def triage(crib: Crib, world: World) -> WorkflowInstance:
    """A model says which way the message goes; one answer goes out."""
    return await crib.instances.start("triage", {"message": "Your app has had a crash."})


async def market_brief(crib: Crib, world: World) -> WorkflowInstance:
    """What an agent has looked up is wired to a chart by a pinned handle; what it did not look up is null."""
    return await crib.instances.start("market-brief", {"topic": "bolts"})


async def nightly_rollup(crib: Crib, world: World) -> WorkflowInstance:
    """One of four branches does not answer; next morning only that one is asked again."""
    world.broken.add("rome")
    night = await crib.instances.start("nightly-rollup", {"branches": ["oslo", "rome", "kiel", "bern"]})
    world.broken.clear()
    return await crib.instances.rerun(night.run_id, "days")


async def price_quote(crib: Crib, world: World) -> WorkflowInstance:
    """Three suppliers at once, of whom one does not answer; code in a sandbox finds the best offer."""
    world.broken.add("south")
    return await crib.instances.start("price-quote", {"part": "bolt", "count": 10})


async def fulfillment_by_agent(crib: Crib, world: World) -> WorkflowInstance:
    """An agent has a workflow as a tool, which a person must allow (the example of 004)."""
    asked = await crib.executions.execute("order-clerk", AgentRequest(message="Send A1 and A2."))
    (waiting,) = asked.approvals
    await crib.acting_as(BEN).approvals.decide(waiting.approval_id, approve=True)
    await crib.recover()
    page = await crib.instances.page(workflow="fulfill-orders")
    return await crib.instances.get(page.items[0].run_id)


async def authored_by_agent(crib: Crib, world: World) -> WorkflowInstance:
    """An agent writes a workflow, is told what is wrong with it, corrects it; a person publishes it; it runs."""
    await crib.executions.execute("workflow-author", AgentRequest(message="Greet our new people every week."))
    await crib.acting_as(BEN).workflows.publish("weekly-greeting")
    return await crib.instances.start("weekly-greeting", {"people": ["ann", "kim"]})


async def deal_update(crib: Crib, world: World) -> WorkflowInstance:
    """A tool with a model inside, of the deterministic mode, as the workflow that it is."""
    definition = await crib.workflows.of("deal-manager")
    await crib.workflows.publish(definition)
    return await crib.instances.start(definition.name, {"task": "Update all Acme deals to Negotiation."})


SCENARIOS: Mapping[str, Scenario] = {
    scenario.__name__: scenario
    for scenario in (
        order_fulfillment,
        import_contacts,
        book_trip,
        expense_approval,
        onboarding,
        sync_inventory,
        payment_reminder,
        triage,
        market_brief,
        nightly_rollup,
        price_quote,
        fulfillment_by_agent,
        authored_by_agent,
        deal_update,
    )
}
"""By name."""
