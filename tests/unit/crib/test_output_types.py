"""Answers as instances of a type: schemas, validators, corrections, and what is refused."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, field_validator
from typing_extensions import TypedDict

from toolcrib import Crib, ScriptedModel, tool, use_tools_with_ai
from toolcrib.contracts import InvalidDefinition
from toolcrib.llm import Message, ToolCall
from toolcrib.testing import approve, new_crib

pytestmark = pytest.mark.requirement("results.output_type")
MODEL = "scripted:m"


class Order(BaseModel):
    number: str
    total: float

    @field_validator("total")
    @classmethod
    def _positive(cls, total: float) -> float:
        if total <= 0:
            msg = "total must be positive"
            raise ValueError(msg)
        return total


@dataclass
class Person:
    name: str
    age: int = 0


class Point(TypedDict):
    x: int
    y: int


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Node(BaseModel):
    name: str
    below: list["Node"] = []


GOOD, BAD = '{"number": "1", "total": 2}', '{"number": "1", "total": -2}'


def crib_with(*answers: Message | str) -> tuple[Crib, ScriptedModel]:
    model = ScriptedModel(answers)
    return new_crib(models={MODEL: model}), model


@pytest.mark.parametrize(
    ("wanted", "answer", "output"),
    [
        (Order, GOOD, Order(number="1", total=2)),
        (Person, '{"name": "Ann"}', Person("Ann")),
        (Point, '{"x": 1, "y": 2}', {"x": 1, "y": 2}),
        (Colour, '{"result": "red"}', Colour.RED),
        (Literal["yes", "no"], '{"result": "no"}', "no"),
        (list[Order], f'{{"result": [{GOOD}]}}', [Order(number="1", total=2)]),
        (int, '{"result": 7}', 7),
        (int | None, '{"result": null}', None),
        (Order | Person, '{"result": {"name": "Ann", "age": 3}}', Person("Ann", 3)),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (Node, '{"result": {"name": "a", "below": [{"name": "b"}]}}', Node(name="a", below=[Node(name="b")])),
        (str, "words", "words"),
    ],
    ids=str,
)
async def test_an_answer_is_an_instance_of_the_type(wanted: Any, answer: str, output: Any):
    crib, model = crib_with(answer)
    async with crib:
        result = await crib.agent("desk", model=MODEL, output_type=wanted)("Which?")

    assert (result.ok, result.output, len(model.requests)) == (True, output, 1)
    assert type(result.unwrap()) is type(output)


async def test_what_a_validator_refuses_is_told_to_the_model_which_may_answer_again():
    crib, model = crib_with(BAD, BAD, GOOD)
    async with crib:
        result = await crib.agent("desk", model=MODEL, output_type=Order)("Which?")
        replay = await crib.replay(result.run_id)

    assert result.output == Order(number="1", total=2)
    told = [request.messages[-1].text for request in model.requests[1:]]
    assert all(
        "That cannot be used: the answer is not a valid Order: total: total must be positive" in each for each in told
    )
    assert replay.same


async def test_an_answer_that_stays_invalid_fails_the_run_and_says_so():
    crib, _ = crib_with(BAD, BAD, BAD, BAD)
    async with crib:
        result = await crib.agent("desk", model=MODEL, output_type=Order)("Which?")

    assert (result.status, result.output) == ("failed", None)
    assert result.error is not None
    assert "total must be positive" in result.error.message
    assert "pydantic" not in result.error.message


async def test_a_validator_that_breaks_is_an_answer_that_cannot_be_used():
    class Broken(BaseModel):
        number: str

        @field_validator("number")
        @classmethod
        def _lookup(cls, number: str) -> str:
            return {"2": "two"}[number]

    crib, _ = crib_with(*['{"number": "1"}'] * 4)
    async with crib:
        result = await crib.agent("desk", model=MODEL, output_type=Broken)("Which?")

    assert result.status == "failed"
    assert "its validator raised KeyError" in str(result.error)


async def test_an_agentic_tool_and_a_workflow_have_output_types():
    @tool(side_effects="reads")
    def order(total: float) -> dict[str, Any]:
        """An order."""
        return {"number": "1", "total": total}

    crib, _ = crib_with(BAD, GOOD)
    async with crib:
        crib.add(order)
        helper = crib.agentic_tool("helper", mode="agentic", model=MODEL, tools=["order"], output_type=Order)
        steps = [{"name": "one", "tool": "order", "input": {"total": "${input.total}"}}]
        flow = crib.workflow("flow", steps=steps, output="${one}", output_type=Order)
        helped, flowed, refused = await helper("Which?"), await flow(total=2), await flow(total=-2)

    assert helped.output == flowed.output == Order(number="1", total=2)
    assert (refused.status, refused.output, refused.partial) == ("failed", None, {"number": "1", "total": -2})
    assert "total must be positive" in str(refused.error)


async def test_one_request_with_tools_has_an_output_type():
    result = await use_tools_with_ai(ScriptedModel(['{"result": [1, 2]}']), [], "", "Which?", output_type=list[int])

    assert result.output == [1, 2]


async def test_a_result_that_waited_has_the_type_when_it_is_approved():
    @tool(side_effects="writes", requires_confirmation=True)
    def pay() -> str:
        """Pays."""
        return "paid"

    crib, _ = crib_with(Message("assistant", (ToolCall("c1", "pay", "{}"),)), GOOD)
    async with crib:
        desk = crib.agent("desk", model=MODEL, tools=[pay], output_type=Order)
        waiting = await desk("Pay")
        done = await approve(crib, waiting)
        again, plain = await desk.resume(waiting.run_id), await crib.resume(waiting.run_id)

    assert done.output == again.output == desk.read(plain).output == Order(number="1", total=2)
    assert plain.output == {"number": "1", "total": 2}


async def test_a_schema_gives_a_dictionary():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    crib, _ = crib_with('{"n": 2}', '{"a": 1}')
    async with crib:
        structured = await crib.agent("desk", model=MODEL, response_schema=schema)("Which?")
        free = await crib.agent("clerk", model=MODEL, response_format="json")("Which?")

    assert (structured.output, free.output) == ({"n": 2}, {"a": 1})


class Opaque:
    pass


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"output_type": Opaque},
            "output_type of agent 'desk' is Opaque, which has no JSON Schema; use a pydantic model",
        ),
        ({"output_type": Callable[[], int]}, "which has no JSON Schema"),
        ({"output_type": {"type": "object"}}, "is a JSON Schema; pass it as response_schema="),
        ({"output_type": "Order"}, "is 'Order'; pass a type"),
        ({"output_type": lambda: 1}, "pass a type"),
        ({"output_type": Order, "response_schema": {}}, "has both output_type and response_schema; give one"),
        ({"response_schema": Order}, "is Order, which is not a JSON Schema; use output_type=Order"),
    ],
)
def test_what_is_no_type_of_an_answer_is_refused_there_and_then(options: Any, said: str):
    crib, _ = crib_with()
    with pytest.raises(InvalidDefinition) as caught:
        crib.agent("desk", model=MODEL, **options)

    assert said in str(caught.value)
    assert crib.additions == ()
