"""What a composite tool calls, with which arguments, and what comes back."""

from typing import Any

import pytest

from toolcrib import CompositeRoute, Crib, Result, tool
from toolcrib.contracts import CallStarted, ErrorCode, JsonSchema, Reason

FIND: JsonSchema = {
    "type": "object",
    "properties": {
        "kind": {"type": "string"},
        "text": {"type": "string"},
        "limit": {"type": "integer"},
        "owner": {"type": ["string", "null"]},
    },
    "required": ["kind"],
}
DEALS = CompositeRoute(
    id="deals",
    when="${input.kind == 'deal'}",
    tool="search_deals",
    input={"company": "${input.text}", "limit": "${input.limit}", "owner": "${input.owner}"},
)
PEOPLE = CompositeRoute(id="people", when="${input.kind == 'person'}", tool="search_people")


@tool(side_effects="reads")
async def search_deals(company: str, limit: int = 10, owner: str | None = "anybody") -> Any:
    """Deals of a company."""
    return {"company": company, "limit": limit, "owner": owner}


@tool(side_effects="reads")
async def search_people(text: str, kind: str = "?") -> Any:
    """People by name."""
    if text == "nobody":
        raise ValueError("there is nobody")
    return {"text": text, "kind": kind}


async def traced(*routes: CompositeRoute, **arguments: Any) -> tuple[Result, list[tuple[str, str]]]:
    """Run a composite tool of these routes; the result, and the calls of its nested run."""
    async with Crib("memory://") as crib:
        crib.add(search_deals, search_people)
        find = crib.composite_tool("find", input_schema=FIND, routes=routes or (DEALS, PEOPLE))
        result = await find(**arguments)
        events = [entry.event for entry in await crib.store.journal.events(result.envelopes[0].metadata["run_id"])]
        return result, [(event.position, event.name) for event in events if isinstance(event, CallStarted)]


async def run(*routes: CompositeRoute, **arguments: Any) -> Result:
    """The result of a composite tool of these routes."""
    return (await traced(*routes, **arguments))[0]


@pytest.mark.requirement("composites.routing", "composites.arguments")
async def test_the_first_route_whose_condition_holds_is_called_with_typed_arguments():
    result, calls = await traced(kind="deal", text="Acme", limit=3, owner="ann")

    assert result.output == {"company": "Acme", "limit": 3, "owner": "ann"}
    assert calls == [("deals", "search_deals")]
    assert result.envelopes[0].metadata["tool_calls"] == 1


@pytest.mark.requirement("composites.arguments")
async def test_without_a_mapping_the_operation_gets_the_arguments_that_it_takes():
    result = await run(kind="person", text="Ann", limit=3)

    assert result.output == {"text": "Ann", "kind": "person"}


@pytest.mark.requirement("composites.arguments")
async def test_a_null_that_the_operation_does_not_take_is_left_out_and_one_that_it_takes_is_given():
    result = await run(kind="deal", text="Acme")

    assert result.output == {"company": "Acme", "limit": 10, "owner": None}


@pytest.mark.requirement("composites.arguments")
async def test_defaults_of_a_route_stand_where_its_mapping_gives_nothing():
    route = DEALS.model_copy(update={"defaults": {"limit": 7, "company": "Initech"}})

    assert (await run(route, kind="deal")).unwrap()["limit"] == 7
    assert (await run(route, kind="deal")).unwrap()["company"] == "Initech"
    assert (await run(route, kind="deal", text="Acme", limit=1)).output == {
        "company": "Acme",
        "limit": 1,
        "owner": None,
    }


@pytest.mark.requirement("composites.no_route")
async def test_arguments_for_which_no_condition_holds_are_refused_with_conditions_and_values():
    result, calls = await traced(kind="invoice", text="x" * 1000)

    assert result.error is not None
    assert (result.error.code, result.error.reason) == (ErrorCode.VALIDATION_ERROR, Reason.NO_ROUTE)
    assert "deals: ${input.kind == 'deal'}; people: ${input.kind == 'person'}" in result.error.message
    assert '"kind":"invoice"' in result.error.message
    assert len(result.error.message) < 1000
    assert calls == []


@pytest.mark.requirement("composites.output")
async def test_a_route_shapes_its_output_of_input_and_output():
    route = PEOPLE.model_copy(update={"output": "${input.kind}: ${output.text}"})
    typed = PEOPLE.model_copy(update={"output": "${[output.text, input.limit]}"})

    assert (await run(route, kind="person", text="Ann")).output == "person: Ann"
    assert (await run(typed, kind="person", text="Ann", limit=2)).output == ["Ann", 2]


@pytest.mark.requirement("composites.failures")
async def test_the_operations_failure_is_the_failure_of_the_call():
    result = await run(kind="person", text="nobody")

    assert result.error is not None
    assert (result.error.code, result.error.reason) == (ErrorCode.UNKNOWN, Reason.TOOL_FAILED)
    assert "there is nobody" in result.error.message


@pytest.mark.requirement("composites.failures")
@pytest.mark.parametrize(
    ("route", "field", "code"),
    [
        (DEALS.model_copy(update={"when": "${input.text > 1}"}), "when", ErrorCode.VALIDATION_ERROR),
        (DEALS.model_copy(update={"input": {"company": "${input.text.name}"}}), "input", ErrorCode.VALIDATION_ERROR),
        (DEALS.model_copy(update={"output": "${output.nothing}"}), "output", ErrorCode.PROVIDER_ERROR),
    ],
)
async def test_an_expression_without_a_value_names_the_route_and_the_field(
    route: CompositeRoute, field: str, code: ErrorCode
):
    result = await run(route, kind="deal", text="Acme")

    assert result.error is not None
    assert result.error.code is code
    assert f"{field} of route 'deals'" in result.error.message
