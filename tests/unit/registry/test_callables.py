"""What holds something already, as a tool: methods of an object, partials, objects that can be called."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pytest

from tests.unit.registry.test_functions import CONTEXT
from toolcrib import Crib
from toolcrib.contracts import InvalidDefinition, JsonSchema
from toolcrib.kinds.python.functions import tool, tools_of


class Account:
    """A balance."""

    def __init__(self, balance: int = 0) -> None:
        self.balance = balance

    def deposit(self, amount: int, note: str = "") -> dict[str, int]:
        """Put money in.

        :param amount: How much.
        """
        self.balance += amount
        return {"balance": self.balance}

    async def close(self) -> None:
        """Close the account."""
        self.balance = 0

    @staticmethod
    def currency() -> str:
        """What money is counted in."""
        return "EUR"

    @property
    def owner(self) -> str:
        raise AssertionError("nobody asked")

    def _audit(self) -> None: ...


class Doubler:
    def __call__(self, number: int) -> int:
        """Twice."""
        return 2 * number


def transfer(source: Account, target: Account, amount: int) -> int:
    """Move money."""
    source.balance -= amount
    target.balance += amount
    return amount


@pytest.mark.requirement("registry.function_bound")
async def test_a_bound_method_is_a_tool_of_its_object():
    account = Account()
    deposit = tool(account.deposit)

    definition = deposit.definition

    assert (definition.name, definition.description) == ("deposit", "Put money in.")
    assert definition.input_schema["properties"]["amount"] == {"type": "integer", "description": "How much."}
    assert definition.input_schema["required"] == ["amount"]
    assert await deposit.run({"amount": 3}, CONTEXT) == {"balance": 3}
    assert account.balance == 3
    assert definition.sequential
    assert not tool(sequential=False)(account.deposit).definition.sequential
    assert not tool(account.currency).definition.sequential


@pytest.mark.requirement("registry.function_bound")
async def test_what_a_partial_holds_is_no_argument():
    first, second = Account(5), Account()
    held: list[tuple[Callable[..., int], list[str]]] = [
        (partial(transfer, source=first, target=second), ["amount"]),
        (partial(transfer, first, target=second), ["amount"]),
        (partial(partial(transfer, first), target=second, amount=1), []),
    ]

    for function, names in held:
        move = tool(function)
        assert move.definition.name == "transfer"
        assert list(move.definition.input_schema["properties"]) == names
        assert await move.run(dict.fromkeys(names, 1), CONTEXT) == 1
    assert (first.balance, second.balance) == (2, 3)


@pytest.mark.requirement("registry.function_bound")
async def test_an_object_that_can_be_called_is_a_tool_named_after_its_class():
    double = tool(Doubler())

    assert (double.definition.name, double.definition.description) == ("Doubler", "Twice.")
    assert await double.run({"number": 4}, CONTEXT) == 8


@pytest.mark.requirement("registry.function_bound")
async def test_the_public_methods_of_an_object_are_tools_that_run_one_at_a_time():
    account = Account()
    async with Crib("memory://") as crib:
        crib.add(*tools_of(account, side_effects="writes"))
        assert (await crib.call("deposit", amount=3)).output == {"balance": 3}
        await crib.call("close")

    assert account.balance == 0
    assert [found.definition.name for found in tools_of(account)] == ["close", "currency", "deposit"]
    assert all(found.definition.sequential for found in tools_of(account))
    assert not tools_of(account, "deposit", sequential=False)[0].definition.sequential


@pytest.mark.requirement("registry.function_refused")
def test_methods_that_are_not_there_and_functions_that_tell_nothing_are_refused():
    with pytest.raises(InvalidDefinition, match="Account has no method 'withdraw'; it has: close, currency, deposit"):
        tools_of(Account(), "deposit", "withdraw")
    with pytest.raises(InvalidDefinition, match=r"Account'> has no public methods; pass an object"):
        tools_of(Account)
    with pytest.raises(InvalidDefinition, match="does not declare its parameters; wrap it"):
        _ = tool(iter).definition
    with pytest.raises(InvalidDefinition, match="'upper' of 'str' objects> does not declare its parameters; wrap it"):
        tool(str.upper)
    with pytest.raises(InvalidDefinition, match=r"expected a function, got Account: .* pass a function"):
        tool(cast("Any", Account()))


@pytest.mark.requirement("registry.function_given_schema")
async def test_a_function_with_given_schemas_gets_its_arguments_as_they_came():
    def record(**fields: Any) -> int:
        """Write a record."""
        return fields  # pyright: ignore[reportReturnType] - functions of others do that

    schema: JsonSchema = {"type": "object", "properties": {"amount": {"type": "number"}}}
    given = tool(input_schema=schema, output_schema=None)(record)

    assert given.definition.input_schema == schema
    assert given.definition.output_schema is None
    assert await given.run({"amount": 3, "more": [1]}, CONTEXT) == {"amount": 3, "more": [1]}


class Ratio:
    """A number of another library."""

    def __float__(self) -> float:
        return 0.5


class Count:
    def __index__(self) -> int:
        return 3


class Row:
    def tolist(self) -> list[int]:
        return [1, 2]


def measure() -> Any:
    """Numbers as other libraries have them."""
    return {"ratio": Ratio(), "count": Count(), "row": Row()}


def reveal() -> Any:
    """What JSON has no form for."""
    return [1, ...]


@pytest.mark.requirement("registry.function_run")
async def test_numbers_and_arrays_of_other_libraries_are_those_of_json():
    assert await tool(measure).run({}, CONTEXT) == {"ratio": 0.5, "count": 3, "row": [1, 2]}


@pytest.mark.requirement("registry.function_given_schema")
async def test_what_json_has_no_form_for_is_text_only_where_nobody_said_what_comes_back():
    assert await tool(output_schema=None)(reveal).run({}, CONTEXT) == [1, "Ellipsis"]
    with pytest.raises(TypeError, match="a ellipsis has no form in JSON; return text"):
        await tool(reveal).run({}, CONTEXT)


@pytest.mark.requirement("registry.function_bound")
def test_a_decorated_function_can_be_made_another_tool():
    first = tool(name="first", side_effects="reads")(Account().deposit)
    _ = first.definition

    second = tool(name="second")(first)

    assert (first.definition.name, first.definition.side_effects) == ("first", "reads")
    assert (second.definition.name, second.definition.side_effects) == ("second", "writes")
