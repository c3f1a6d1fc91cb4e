"""Which call fills a pinned handle."""

from typing import Any

import pytest

from tests.unit.runs.journals import envelope
from toolcrib.contracts import InvalidDefinition, Json, PinnedHandle, PinSelector, PinStrategy
from toolcrib.core.runs.views.handles import check_pins, find_unfilled, resolve_pins

CALLS = [
    envelope("c1", "search", status="error"),
    envelope("c2", "search", output="first"),
    envelope("c3", "fetch", output="other"),
    envelope("c4", "search", output="second"),
    envelope("c5", "search", status="denied"),
    envelope("c6", "broken", output="before"),
    envelope("c7", "broken", status="error"),
    envelope("c8", "dry", status="skipped"),
]


def pin(tool: str, strategy: PinStrategy = "latest", **fields: Any) -> PinnedHandle:
    selector = PinSelector(tool=tool, strategy=strategy, call_id=fields.pop("call_id", None))
    return PinnedHandle(name=fields.pop("name", "handle"), selector=selector, **fields)


@pytest.mark.requirement("pins.strategies")
@pytest.mark.parametrize(
    ("handle", "value"),
    [
        (pin("search"), "second"),
        (pin("search", "first_success"), "first"),
        (pin("search", "by_call_id", call_id="#c2"), "first"),
        (pin("search", "by_call_id", call_id="#c1"), None),
        (pin("broken"), None),
        (pin("broken", "first_success"), "before"),
    ],
    ids=["latest", "first", "id", "id-failed", "latest-failed", "first-beside-failed"],
)
def test_a_call_fills_the_handle_of_its_tool(handle: PinnedHandle, value: Json):
    assert find_unfilled([handle], CALLS) == []
    assert resolve_pins([handle], CALLS, {"handle": "earlier"}) == {"handle": value}


@pytest.mark.requirement("pins.strategies", "pins.missing")
@pytest.mark.parametrize(
    "handle",
    [
        pin("nowhere"),
        pin("dry"),
        pin("search", "by_call_id", call_id="#c5"),
        pin("search", "by_call_id", call_id="#c3"),
        pin("nowhere", "first_success"),
    ],
    ids=["never-called", "skipped", "denied", "of-another-tool", "no-success"],
)
def test_what_was_not_executed_fills_nothing(handle: PinnedHandle):
    assert find_unfilled([handle], CALLS) == [handle]
    assert resolve_pins([handle], CALLS, {}) == {"handle": None}
    assert resolve_pins([handle], CALLS, {"handle": "earlier"}) == {"handle": "earlier"}


@pytest.mark.requirement("pins.well_formed")
@pytest.mark.parametrize(
    ("pins", "problem"),
    [
        ([pin("a", name="x"), pin("b", name="x")], "two pinned handles of the name 'x'"),
        ([pin("a", "by_call_id")], "has strategy 'by_call_id' and no call_id"),
        ([pin("a", call_id="#1")], "has strategy 'latest' and a call_id"),
    ],
)
def test_pins_that_cannot_be_told_apart_or_select_nothing_are_refused(pins: list[PinnedHandle], problem: str):
    with pytest.raises(InvalidDefinition, match=problem):
        check_pins("agent", pins)


@pytest.mark.requirement("pins.well_formed")
def test_well_formed_pins_pass():
    check_pins("agent", [pin("a", name="x"), pin("a", "by_call_id", name="y", call_id="#1")])
