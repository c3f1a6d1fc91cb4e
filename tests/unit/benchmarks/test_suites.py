"""The players of foreign suites, on a suite of our own: a shop with a state, tasks with known calls, and a judge."""

from typing import Any

import pytest

from benchmarks.suites.playing import Turn, play, play_again
from benchmarks.suites.verdicts import Verdict, verdict_table
from toolcrib import FunctionTool, tools_of

pytestmark = pytest.mark.requirement("benchmarks.suites")


class Shop:
    """Sells from a stock; a task is solved if the right things are sold to the right people."""

    def __init__(self) -> None:
        self.stock = {"pen": 2, "ink": 1}
        self.orders: list[tuple[str, str]] = []
        self.buyer: str | None = None

    def enter(self, buyer: str) -> str:
        """Serve somebody."""
        self.buyer = buyer
        return f"Good day, {buyer}."

    def sell(self, item: str, count: int = 1) -> dict[str, Any]:
        """Sell to whoever is served."""
        if self.buyer is None or self.stock.get(item, 0) < count:
            raise ValueError(f"there is no {item}, or nobody to sell to")
        self.stock[item] -= count
        self.orders.append((self.buyer, item))
        return {"left": self.stock[item]}

    def count(self) -> dict[str, int]:
        """What is in stock."""
        return self.stock

    @property
    def tools(self) -> list[FunctionTool[..., Any]]:
        """Its methods."""
        return tools_of(self, output_schema=None)


TURNS = [
    Turn("Ann is here.", [("enter", {"buyer": "Ann"})], hidden=frozenset({"count"})),
    Turn("A pen and two inks.", [("sell", {"item": "pen"}), ("sell", {"item": "ink", "count": 2})], "No ink."),
    Turn("What is left?", [("count", {})]),
]


async def test_a_task_is_played_replayed_and_played_again_to_the_same_state():
    shop, fresh = Shop(), Shop()

    played = await play(shop.tools, TURNS)
    again = await play_again(fresh.tools, TURNS, played)

    assert (shop.orders, shop.stock) == ([("Ann", "pen")], {"pen": 1, "ink": 1})
    assert vars(fresh) == vars(shop)
    assert played.replayed
    assert again.replayed
    assert played.answers == ["Done.", "No ink.", "Done."]
    assert [[envelope.name for envelope in turn] for turn in played.turns] == [["enter"], ["sell", "sell"], ["count"]]
    assert [envelope.status for envelope in played.turns[1]] == ["success", "error"]
    assert played.turns[2][0].output == {"pen": 1, "ink": 1}


async def test_a_call_that_is_left_out_leaves_another_state_and_a_hidden_tool_is_denied():
    shop = Shop()

    played = await play(shop.tools, [Turn("Hello?", [("count", {})], hidden=frozenset({"count"})), TURNS[1]])

    assert shop.orders == []
    assert played.turns[0][0].status == "denied"


def test_verdicts_are_counted_passed_on_and_shown():
    verdict = Verdict("shop", tools=3)
    verdict.count("one", TURNS, live=True, replayed=True, again=True)
    assert verdict.whole
    verdict.count("two", TURNS, live=True, replayed=False, again=True)

    assert not verdict.whole
    assert (verdict.tasks, verdict.turns, verdict.calls, verdict.failed) == (2, 6, 8, ["two"])
    assert Verdict.read(verdict.line()) == verdict
    assert "| ours | shop | 3 | 2 | 6 | 8 | 2/2 | 1/2 | 2/2 | 0/0 | 1.0 |" in verdict_table([("ours", verdict, 1.0)])
