"""Plans of an older release: carried out as they are recorded, made anew if nothing of them was begun, and replayed."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from tests.contract.old_runs import rows
from tests.contract.old_runs.case import KEPT, Process, carried_on, expected, opened, replays
from tests.contract.old_runs.plans import DONE, plan
from toolcrib.contracts import GuardDecision, JsonObject, LimitReached, ModelStarted
from toolcrib.core.engines.replay.event_comparison import with_recorded_values

pytestmark = pytest.mark.requirement("agents.recorded_plans")

LATER: Final = 1769860872234000
"""When a lease was over."""
READING: Final = [
    {"words": "Move", "use": "request"},
    {"words": "Acme's deals", "use": "condition", "value": "Acme"},
    {"words": "to Negotiation", "use": "change", "value": "3003"},
]
CHECKED: Final = {
    "v1": {"words": "to Negotiation", "stated": "yes"},
    "v2": {"words": "Acme's deals", "stated": "yes"},
    "w3": {"says": "already read"},
}


def kept() -> dict[str, Any]:
    """The rows of the store."""
    return rows.read(KEPT / "sqlite.json.xz")


def of_run(document: dict[str, Any], table: str, name: str) -> list[dict[str, Any]]:
    """The rows of a run in a table."""
    found = document["tables"][table]
    every = (dict(zip(found["columns"], row, strict=True)) for row in found["rows"])
    return [row for row in every if row["run_id"] == document["runs"][name]]


def put(document: dict[str, Any], table: str, name: str, changed: Sequence[dict[str, Any]]) -> None:
    """Have a run these rows in a table."""
    found = document["tables"][table]
    place = found["columns"].index("run_id")
    others = [row for row in found["rows"] if row[place] != document["runs"][name]]
    found["rows"] = [*others, *([row[column] for column in found["columns"]] for row in changed)]


def cut_off(name: str, last: int) -> dict[str, Any]:
    """The store, in which a process has died over a run after one of its events."""
    document = kept()
    put(document, "events", name, [row for row in of_run(document, "events", name) if row["number"] <= last])
    died = {"status": "running", "result": None, "last_event": last, "claimable_at": LATER, "owner": "dead"}
    put(document, "runs", name, [{**row, **died} for row in of_run(document, "runs", name)])
    return document


async def on(
    document: dict[str, Any], folder: Path, name: str, *says: JsonObject, act: Callable[[Process, str], Any]
) -> Any:
    """Do something with a run in a store, whose model says this."""
    url = f"sqlite:///{folder}/crib.db"
    rows.load(url, document)
    async with opened(url, folder, {**expected(), name: {"says": {name: says}}}) as process:
        return await act(process, document["runs"][name])


async def go_on(process: Process, run_id: str) -> tuple[JsonObject, list[str]]:
    """Carry a run on; what there is to tell of it, and where its model was asked."""
    told = await carried_on(process, run_id, [[]])
    events = [entry.event for entry in await process.crib.store.journal.events(run_id)]
    return told, [event.position for event in events if isinstance(event, ModelStarted)]


async def test_a_plan_of_which_nothing_was_begun_is_made_anew(tmp_path: Path):
    anew = {"reading": READING, **plan()}

    told, asked = await on(cut_off("plan_batches", 3), tmp_path, "plan_batches", anew, CHECKED, DONE, act=go_on)

    assert asked == ["plan", "plan.anew", "plan.anew.check", "format"]
    assert told["output"] == DONE
    assert told["effects"] == ["update_deals d0,d1,d2 3003", "update_deals d3,d4,d5 3003", "update_deals d6 3003"]
    assert told["replays"] is True


async def test_a_plan_that_is_made_anew_is_held_to_what_new_ones_are(tmp_path: Path):
    skipping = {"reading": READING, **plan(search_deals={"skip": True}, update_deals={"skip": True})}

    told, asked = await on(cut_off("plan_batches", 3), tmp_path, "plan_batches", *([skipping] * 6), act=go_on)

    assert "format" not in asked
    assert told["effects"] == []
    assert told["replays"] is True


@pytest.mark.parametrize("last", [7, 8])
async def test_a_plan_that_was_begun_goes_on_without_what_was_left_out(tmp_path: Path, last: int):
    told, asked = await on(cut_off("plan_left_out", last), tmp_path, "plan_left_out", DONE, act=go_on)

    assert asked == ["plan", "format"]
    assert told["effects"] == ["update_deals d0,d1,d2 3003", "update_deals d3,d4,d5 3003", "update_deals d6 3003"]
    assert told["replays"] is True


async def test_a_call_of_an_old_plan_that_stands_otherwise_in_its_journal_is_found(tmp_path: Path):
    document = kept()
    events = of_run(document, "events", "plan_batches")
    body = orjson.loads(events[5]["body"])
    body["input"]["ids"] = ["d0", "d1", "d6"]
    events[5]["body"] = orjson.dumps(body).decode()
    put(document, "events", "plan_batches", events)

    found = await on(document, tmp_path, "plan_batches", act=replays)

    assert "field='update_deals[0].input.ids[2]'" in found


def asked_for(text: str, tokens: int, position: str) -> ModelStarted:
    """A request."""
    decision = GuardDecision(outcome="allow", rule="allowed", inputs={"iterations": 1, "input_tokens": tokens})
    return ModelStarted(position=position, purpose="planning", model="m", system=text, history=1, decision=decision)


@pytest.mark.parametrize(
    ("position", "planned", "same"),
    [
        ("plan", frozenset({"plan"}), {"system", "input_tokens"}),
        ("search.review", frozenset({"plan"}), {"input_tokens"}),
        ("plan", frozenset[str](), set[str]()),
        ("plan", None, set[str]()),
    ],
    ids=["a plan of an older release", "another request of its run", "a run that was planned anew", "a new run"],
)
def test_of_an_old_plan_only_what_was_asked_for_it_is_given(
    position: str, planned: frozenset[str] | None, same: set[str]
):
    recorded, made = asked_for("then", 100, position), asked_for("now", 200, position)

    got = with_recorded_values(recorded, made, planned)

    assert got["system"] == ("then" if "system" in same else "now")
    assert got["decision"]["inputs"]["input_tokens"] == (100 if "input_tokens" in same else 200)


def test_what_a_limit_says_of_a_request_for_an_old_plan_is_given():
    recorded, made = (
        LimitReached(limit="max_total_tokens", value=value, maximum=100, message=f"{value}") for value in (120, 130)
    )

    assert with_recorded_values(recorded, made, frozenset())["value"] == 120
    assert with_recorded_values(recorded, made, None)["value"] == 130
