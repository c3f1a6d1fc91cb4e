"""Ways to get around caps on spending, or to break what they count on, by what a tool says that it has cost."""

from pathlib import Path

import pytest

from toolcrib import Crib, SharingOptions, tool
from toolcrib.contracts import ErrorCode, JsonObject, SecretReference

pytestmark = pytest.mark.requirement("shared_state.caps_bind")


@tool(side_effects="reads", cost_from="$.cost")
def ask(cost: str) -> JsonObject:
    """Say what it costs."""
    return {"cost": cost}


def pay(amount: int) -> int:
    """Pays."""
    return amount


@pytest.mark.parametrize("store", ["memory://", "sqlite:///{}/crib.db"])
@pytest.mark.parametrize("cost", ["1e300", "9e12", "1e30"])
async def test_a_cost_that_no_counter_can_hold_uses_up_the_cap_and_breaks_nothing(
    tmp_path: Path, store: str, cost: str
):
    async with Crib(
        store.format(tmp_path), sharing=SharingOptions(budgets=["realm 50 usd/day", "tool=ask 500 usd/month"])
    ) as crib:
        crib.add(ask)
        first, second = [await crib.call("ask", {"cost": cost}) for _ in range(2)]

    assert (first.status, second.status) == ("success", "denied")
    assert second.error is not None
    assert second.error.reason == "budget_exceeded"


@pytest.mark.parametrize("cost", ["-1000000", "-1e30", "NaN", "-Infinity"])
async def test_a_tool_gives_no_money_back(cost: str):
    async with Crib("memory://", sharing=SharingOptions(budgets=["realm 1 usd/day"])) as crib:
        crib.add(ask)
        told = [(await crib.call("ask", {"cost": each})).status for each in (cost, "1.5", "0")]

    assert told == ["success", "success", "denied"]


async def test_calls_that_lack_a_secret_are_not_sent_and_use_no_budget():
    environment: dict[str, str] = {}
    refund = tool(side_effects="writes", secrets=(SecretReference(name="token", reference="${env:PAY_TOKEN}"),))(pay)
    sharing = SharingOptions(budgets=["realm 1 calls/day"])
    async with Crib("memory://", sharing=sharing, environment=environment) as crib:
        crib.add(refund)
        lacking = [await crib.call("pay", {"amount": 1}) for _ in range(3)]
        environment["PAY_TOKEN"] = "a token"
        made = [(await crib.call("pay", {"amount": 1})).status for _ in range(2)]

    assert [each.error.code for each in lacking if each.error] == [ErrorCode.AUTH_REQUIRED] * 3
    assert "${env:PAY_TOKEN}, which is not set or not released" in str(lacking[0].error)
    assert made == ["success", "denied"]
