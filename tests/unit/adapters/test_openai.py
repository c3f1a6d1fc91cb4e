"""Tools of a crib in the OpenAI Agents SDK, its tools in a crib, and definitions of functions in a crib."""

from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest
from agents import Agent, FunctionTool, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
from agents.tool_context import ToolContext
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from tests.unit.adapters.crm import small_crm
from toolcrib import Crib, code_tool
from toolcrib.contracts import InvalidDefinition, JsonObject, NotFound
from toolcrib.interfaces.adapters import openai_agents, openai_functions

OUTWARD = pytest.mark.requirement("adapters.outward")
ERRORS = pytest.mark.requirement("adapters.errors")
INWARD = pytest.mark.requirement("adapters.inward")
QUIET = RunConfig(tracing_disabled=True)


class Scripted(Model):
    """A model that says what it is given."""

    def __init__(self, *answers: Any) -> None:
        self._answers = iter(answers)
        self.heard: list[Any] = []

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:  # noqa: A002 - the SDK's name
        """The next answer."""
        self.heard = list(input)
        return ModelResponse(output=[next(self._answers)], usage=Usage(), response_id=None)

    async def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        """Nothing."""
        raise NotImplementedError
        yield


def asks(name: str, arguments: str) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(name=name, arguments=arguments, call_id=f"{name}-1", type="function_call")


def says(text: str) -> ResponseOutputMessage:
    content: list[Any] = [ResponseOutputText(text=text, type="output_text", annotations=[])]
    return ResponseOutputMessage(id="m", content=content, role="assistant", status="completed", type="message")


async def call(tool: FunctionTool, arguments: str) -> Any:
    context = ToolContext[Any](context=None, tool_name=tool.name, tool_call_id="c1", tool_arguments=arguments)
    return await tool.on_invoke_tool(context, arguments)


@pytest.mark.requirement("adapters.agents")
async def test_an_agent_of_openais_sdk_moves_a_deal():
    async with small_crm() as crm:
        model = Scripted(
            asks("find_deals", '{"company": "Acme", "stage": null}'),
            asks("move_deal", '{"deal": "d1", "to_stage": "won"}'),
            says("Moved."),
        )
        agent = Agent("desk", model=model, tools=[*await openai_agents.load(crm.ann)])
        result = await Runner.run(agent, "Win Acme's deal", run_config=QUIET)

        outputs = [item["output"] for item in model.heard if item.get("type") == "function_call_output"]
        assert result.final_output == "Moved."
        assert outputs == ['[{"id":"d1","company":"Acme","stage":"open"}]', '{"moved":"d1"}']
        assert crm.moved == ["d1 won"]
        assert await crm.runs() == [
            ("ann", "find_deals", {"company": "Acme"}),
            ("ann", "move_deal", {"deal": "d1", "to_stage": "won"}),
        ]


@OUTWARD
async def test_tools_are_strict_only_if_nothing_is_lost():
    schema: JsonObject = {"type": "object", "properties": {"x": {"type": "object"}}}
    async with small_crm() as crm:
        await crm.crib.save(
            code_tool("free", "def main(**given): return 1").model_copy(update={"input_schema": schema})
        )
        find, free = await openai_agents.load(crm.crib, "find_deals", "free")

    assert (find.strict_json_schema, free.strict_json_schema) == (True, False)
    assert find.params_json_schema["required"] == ["company", "stage"]
    assert free.params_json_schema == schema


@OUTWARD
async def test_a_principal_gets_its_tools_only():
    async with small_crm() as crm:
        assert [tool.name for tool in await openai_agents.load(crm.bob)] == ["find_deals"]
        with pytest.raises(NotFound, match="move_deal"):
            await openai_agents.load(crm.bob, "move_deal")


@ERRORS
@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("find_deals", "{", "VALIDATION_ERROR: the arguments of 'find_deals' are not JSON"),
        ("find_deals", "[]", "VALIDATION_ERROR: the arguments of 'find_deals' must be a JSON object"),
        ("find_deals", '{"compny": "A"}', "VALIDATION_ERROR: "),
        ("find_deals", '{"company": "Nobody"}', "UNKNOWN: "),
        ("send_offer", '{"deal": "d1"}', "awaiting_approval: 'send_offer' waits for a person to approve it"),
    ],
    ids=str,
)
async def test_a_model_is_told_of_a_failure_with_its_code(name: str, arguments: str, told: str):
    async with small_crm() as crm:
        [tool] = await openai_agents.load(crm.crib, name)
        assert (await call(tool, arguments)).startswith(told)


# Inward ---------------------------------------------------------------------------------------------------------------


@function_tool(failure_error_function=None)
def exchange_rate(currency: str) -> str:
    """Look up an exchange rate.

    Args:
        currency: ISO code.
    """
    if currency == "XXX":
        raise LookupError("no such currency")
    return "1.1"


@INWARD
async def test_a_function_tool_is_a_tool_of_a_crib():
    async with Crib("memory://") as crib:
        crib.add(*openai_agents.tools(exchange_rate, side_effects="reads"))
        envelope = await crib.call("exchange_rate", currency="USD")
        wrong = await crib.call("exchange_rate", currency=3)
        failed = await crib.call("exchange_rate", currency="XXX")
        definition = crib.registry.require("default", "exchange_rate").definition

    assert envelope.output == "1.1"
    assert definition.description == "Look up an exchange rate."
    assert definition.input_schema["properties"]["currency"]["description"] == "ISO code."
    assert wrong.error is not None
    assert wrong.error.code == "VALIDATION_ERROR"
    assert failed.error is not None
    assert "no such currency" in failed.error.message


@pytest.mark.requirement("adapters.round_trip")
async def test_a_tool_that_went_out_comes_back_with_its_schema_and_description():
    async with small_crm() as crm:
        [out] = await openai_agents.load(crm.ann, "move_deal")
        [back] = openai_agents.tools(out)
        own = crm.crib.registry.require("default", "move_deal").definition
        async with Crib("memory://") as other:
            other.add(back)
            envelope = await other.call("move_deal", deal="d1", to_stage="won")

    assert back.definition.input_schema == own.input_schema
    assert back.definition.description == out.description.strip()
    assert (crm.moved, envelope.output) == (["d1 won"], '{"moved":"d1"}')


PARAMETERS: JsonObject = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
FUNCTION: JsonObject = {"name": "double", "description": "Double a number.", "parameters": PARAMETERS}


def double(x: int) -> int:
    """Something else."""
    return 2 * x


async def double_later(x: int) -> int:
    """Something else."""
    return 2 * x


def begin_double(x: int) -> Awaitable[int]:
    """Something else."""
    return double_later(x)


@INWARD
@pytest.mark.parametrize(
    "definition",
    [FUNCTION, {"type": "function", "function": FUNCTION}, {"type": "function", "strict": True, **FUNCTION}],
    ids=["function", "chat", "responses"],
)
@pytest.mark.parametrize("function", [double, double_later, begin_double], ids=["sync", "async", "begun"])
async def test_a_definition_of_a_function_and_its_callable_are_a_tool(definition: JsonObject, function: Any):
    made = openai_functions.function_tool(definition, function, side_effects="none")
    async with Crib("memory://") as crib:
        crib.add(made)
        envelope = await crib.call("double", x=4)
        wrong = await crib.call("double", x="four")

    assert envelope.output == 8
    assert (made.definition.description, made.definition.input_schema) == ("Double a number.", PARAMETERS)
    assert wrong.error is not None
    assert wrong.error.code == "VALIDATION_ERROR"


@INWARD
def test_a_function_without_parameters_takes_none():
    made = openai_functions.function_tool({"name": "now"}, lambda: 1)

    assert made.definition.input_schema == {"type": "object", "properties": {}}


@INWARD
@pytest.mark.parametrize(
    "definition",
    [{}, {"type": "web_search"}, {"type": "web_search", "name": "x"}, {"name": "x", "parameters": []}, {"function": 1}],
    ids=str,
)
def test_what_is_no_definition_of_a_function_is_refused(definition: JsonObject):
    with pytest.raises(InvalidDefinition, match="is not a definition of a function"):
        openai_functions.function_tool(definition, double)


@pytest.mark.requirement("adapters.round_trip")
@pytest.mark.parametrize("form", ["openai", "openai_responses"])
async def test_an_export_comes_back_with_its_schema_and_description(form: Any):
    async with small_crm() as crm:
        [exported] = await crm.crib.export("move_deal", form=form)
        own = crm.crib.registry.require("default", "move_deal").definition
    back = openai_functions.function_tool(exported, double)

    assert back.definition.name == "move_deal"
    assert back.definition.input_schema == own.input_schema
    assert back.definition.description == exported.get("function", exported)["description"]
