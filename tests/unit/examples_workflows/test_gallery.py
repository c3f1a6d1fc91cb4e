"""The gallery of workflows: every scenario ends as its docstring says, and does what the ledger says."""

import json
from pathlib import Path

import pytest

from examples.workflows import demo
from examples.workflows.gallery import FOLDER, definitions
from examples.workflows.scenarios import SCENARIOS
from toolcrib.contracts.workflows import WorkflowInstance

pytestmark = pytest.mark.requirement("workflow_examples.gallery")


def statuses(instance: WorkflowInstance) -> dict[str, str]:
    return {step.step: step.status for step in instance.steps}


@pytest.mark.requirement("workflow_examples.literal_example")
async def test_an_agent_decides_on_an_order_that_something_is_wrong_with():
    instance, world = await demo.play("order_fulfillment")

    assert instance.output == {"order": "4717", "resolution": "ship", "shipped": True}
    assert statuses(instance) == {
        "validate_orders": "succeeded",
        "evaluate_exception": "succeeded",
        "ship": "succeeded",
    }
    assert world.done == ["ship 4717"]


@pytest.mark.requirement("workflow_examples.literal_example")
def test_the_step_of_the_specification_stands_in_the_file_word_for_word():
    document = json.loads((FOLDER / "order_fulfillment.json").read_text(encoding="utf-8"))
    step = next(step for step in document["steps"] if step["name"] == "evaluate_exception")

    assert step == {
        "name": "evaluate_exception",
        "handlerRef": "quantum.ai.invokeAgent",
        "input": {
            "agentRef": "exception-handling-agent",
            "prompt": "Order ${orderId} failed validation: ${validationErrors}. Determine resolution.",
            "context": {"orderId": "${input.orderId}", "validationErrors": "${validate.errors}"},
        },
        "dependsOn": ["validate_orders"],
        "condition": "${validate.errors.length > 0}",
    }


async def test_a_thousand_contacts_are_stored_once_each_and_told_in_their_order():
    instance, world = await demo.play("import_contacts")

    assert instance.output == {"stored": 1000, "first": "c0", "last": "c999"}
    assert sorted(world.done) == sorted(f"store c{number}@example.com" for number in range(1000))


async def test_what_was_booked_is_given_back_in_reverse_order_when_a_later_booking_fails():
    instance, world = await demo.play("book_trip")

    assert (instance.status, instance.output) == ("completed", {"booked": False, "failed": "car"})
    assert world.done == ["flight to Oslo", "2 nights in Oslo", "cancel 2 nights in Oslo", "cancel flight to Oslo"]


async def test_a_person_allows_a_part_of_an_expense():
    instance, world = await demo.play("expense_approval")

    assert (instance.status, instance.output) == ("completed", {"paid": 100})
    assert world.done == ["pay ann 100"]
    assert statuses(instance)["refuse"] == "cut_off"


async def test_a_workflow_runs_inside_another_one_for_each_system():
    instance, world = await demo.play("onboarding")

    assert instance.output == {
        "accounts": ["kim@mail", "kim@wiki", "kim@crm"],
        "greeting": "welcome kim: kim@mail, kim@wiki, kim@crm",
    }
    assert len(world.done) == 7


async def test_a_supplier_that_stays_down_is_asked_three_times_and_then_replaced():
    instance, world = await demo.play("sync_inventory")

    assert instance.output == {"written": 1, "fresh": False}
    assert world.asked["acme"] == 3
    assert world.done == ["stock: old goods of acme"]


async def test_days_pass_and_a_payment_is_told_from_outside():
    instance, world = await demo.play("payment_reminder")

    assert instance.output == {"paid": True, "usd": 250}
    assert world.done == ["tell acme: Invoice R-1"]


async def test_a_message_goes_the_way_that_a_model_says():
    instance, world = await demo.play("triage")

    assert instance.output["topic"] == "technical"
    assert world.done == ["The technical desk has read: Your app has had a crash."]
    assert statuses(instance)["billing"] == "skipped"


async def test_a_pinned_handle_is_wired_to_a_chart_and_one_that_nothing_fills_is_null():
    instance, world = await demo.play("market_brief")

    assert instance.output == {"text": "Bolts are up.", "chart": "chart of 3 points", "looked_up": 1, "weather": None}
    assert world.done == ["chart of 3 points"]


async def test_a_branch_that_did_not_answer_is_asked_again_the_next_morning():
    instance, world = await demo.play("nightly_rollup")

    assert (instance.status, instance.output["status"]) == ("completed", "succeeded")
    assert world.done == ["1 of 4 branches did not answer", "close the day with 1600"]


async def test_the_best_of_the_offers_that_came_is_sent():
    instance, _ = await demo.play("price_quote")

    assert instance.output == "west: 40"
    assert statuses(instance)["south"] == "failed"


async def test_an_agent_starts_a_workflow_after_a_person_has_allowed_it():
    instance, world = await demo.play("fulfillment_by_agent")

    assert instance.output == {"shipped": [True, True]}
    assert sorted(world.done) == ["ship A1", "ship A2"]


async def test_an_agent_writes_a_workflow_that_a_person_publishes_and_that_runs():
    instance, world = await demo.play("authored_by_agent")

    assert instance.status == "completed"
    assert sorted(world.done) == ["welcome ann: ", "welcome kim: "]


async def test_a_deterministic_agentic_tool_runs_as_the_workflow_that_it_is():
    instance, world = await demo.play("deal_update")

    assert instance.status == "completed"
    assert world.done == ["Acme-1 is in Negotiation", "Acme-2 is in Negotiation"]


def test_the_gallery_has_more_than_twelve_workflows_and_no_file_that_nothing_runs():
    assert len(SCENARIOS) >= 12
    assert len(list(definitions())) == len(list(Path(FOLDER).iterdir()))


@pytest.mark.requirement("workflow_examples.demo")
async def test_the_command_tells_each_scenario_in_a_line(capsys: pytest.CaptureFixture[str]):
    await demo.main(["triage", "book_trip"])

    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("triage                 completed  ")
    assert second.endswith("effects: 4")
