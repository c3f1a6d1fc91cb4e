"""What a replay names when a recording is not what the code makes: what is derived, and nothing that is given."""

import io
import json
from collections.abc import Mapping
from random import Random

import pytest

from tests.unit.agents.crm import MODEL, asks
from tests.unit.bundles.corpus import MOVE, SEARCH, crashes, crib_of, nested
from tests.unit.bundles.test_format import entries_of, packed
from toolcrib.contracts import Json, JsonObject, Replay
from toolcrib.crib.runs.bundles import replay_file


async def an_agents_run() -> bytes:
    """The bundle of an agent that asks for two tools at once."""
    async with crib_of(asks(SEARCH, MOVE), "Moved.") as crib:
        tools = ["search_deals", "update_deals"]
        crib.agentic_tool("agent", mode="agentic", model=MODEL, tools=tools, grounding="off")
        result = await crib.invoke("agent", {"task": "go"})
        file = io.BytesIO()
        await crib.export_run(result.run_id, file)
        return file.getvalue()


def events_of(data: bytes) -> list[JsonObject]:
    """The events of the only run of a bundle."""
    (text,) = (text for name, text in entries_of(data).items() if name.startswith("runs/"))
    return [json.loads(line) for line in text.split(b"\n")[1:]]


def with_events(data: bytes, events: list[JsonObject]) -> bytes:
    """The bundle with other events, numbered anew."""
    entries = entries_of(data)
    (name,) = (name for name in entries if name.startswith("runs/"))
    lines = [json.dumps({**entry, "number": number}).encode() for number, entry in enumerate(events, start=1)]
    return packed({**entries, name: b"\n".join([entries[name].split(b"\n")[0], *lines])})


async def replayed(data: bytes) -> Replay:
    """What a bundle comes to."""
    return await replay_file(io.BytesIO(data))


def changed(value: Json) -> Json:
    """Another value of the same kind."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}!"
        case _:
            return value


DERIVED: Mapping[str, tuple[str, ...]] = {
    "model_started": ("system", "history", "tools"),
    "call_started": ("call_id", "name", "version", "idempotency_key", "content_hash"),
    "run_finished": ("status", "iterations", "tool_calls", "cost_usd"),
}


@pytest.mark.requirement("bundles.divergence")
@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind, fields in DERIVED.items() for field in fields])
async def test_a_derived_field_that_was_changed_is_named_with_event_expected_and_got(kind: str, field: str):
    data = await an_agents_run()
    events = events_of(data)
    entry = next(one for one in events if one["event"]["type"] == kind)
    was, now = entry["event"][field], changed(entry["event"][field])
    if field == "status":
        now = "failed"
    entry["event"][field] = now

    found = (await replayed(with_events(data, events))).divergence

    assert found is not None
    place = entry["event"].get("position", "")
    assert (found.event, found.field) == (entry["number"], f"{place}.{field}" if place else field)
    assert (found.expected, found.got) == (now, was)


@pytest.mark.requirement("bundles.divergence")
async def test_a_prompt_an_argument_and_a_position_that_were_changed_are_named():
    data = await an_agents_run()
    parts = (("call_started", ("input", "company")), ("model_started", ("messages",)), ("call_started", ("position",)))
    for kind, path in parts:
        events = events_of(data)
        entry = next(one for one in events if one["event"]["type"] == kind)
        part = entry["event"]
        for name in path[:-1]:
            part = part[name]
        part[path[-1]] = changed(part[path[-1]]) if isinstance(part[path[-1]], str) else None

        found = (await replayed(with_events(data, events))).divergence

        assert found is not None
        assert found.event >= entry["number"] - 1
        assert path[-1] in found.field or "call_started" in found.field


@pytest.mark.requirement("bundles.divergence", "runs.replay_divergence")
async def test_an_event_that_is_missing_or_too_many_is_named():
    data = await an_agents_run()
    events = events_of(data)
    less = [one for one in events if one["event"].get("position") != "t1.c2" or one["event"]["type"] != "call_started"]
    note = {**events[1], "event": {"type": "progress_made", "key": "k", "kind": "note", "data": None}}

    missing = (await replayed(with_events(data, less))).divergence
    surplus = (await replayed(with_events(data, [*events[:-1], note, events[-1]]))).divergence

    assert missing is not None
    assert surplus is not None
    assert (missing.field, missing.expected) == ("call_started t1.c2", None)
    assert (surplus.field, surplus.got) == ("progress_made k", None)


@pytest.mark.requirement("bundles.divergence")
async def test_a_first_event_that_tells_of_another_request_than_the_run_has_is_named():
    data = await an_agents_run()
    events = events_of(data)
    events[0]["event"]["request"]["input"]["task"] = "stop"

    found = (await replayed(with_events(data, events))).divergence

    assert found is not None
    assert (found.event, found.field) == (1, "request.input.task")
    assert (found.expected, found.got) == ("stop", "go")


@pytest.mark.requirement("bundles.divergence")
async def test_a_null_where_there_was_nothing_is_named_too():
    data = await an_agents_run()
    events = events_of(data)
    output = events[-1]["event"]["output"]
    events[-1]["event"]["output"] = {**output, "more": None}

    found = (await replayed(with_events(data, events))).divergence

    assert found is not None
    assert (found.field, found.expected, found.got) == ("output", {**output, "more": None}, output)


@pytest.mark.requirement("bundles.divergence")
async def test_what_the_world_gave_is_taken_as_it_was_given():
    data = await an_agents_run()
    events = events_of(data)
    for entry in events:
        if entry["event"]["type"] == "call_finished":
            entry["event"]["envelope"]["timings"]["execute"] = 42.0

    assert (await replayed(with_events(data, events))).same


@pytest.mark.requirement("bundles.divergence")
async def test_a_life_that_a_crash_cut_off_is_held_against_what_it_had_written():
    data = next(iter((await crashes(Random(0))).values()))
    events = events_of(data)
    assert [one["event"]["type"] for one in events].count("run_resumed") == 1
    started = next(one for one in events if one["event"]["type"] == "call_started")
    started["event"]["idempotency_key"] = "another"

    assert (await replayed(data)).same
    found = (await replayed(with_events(data, events))).divergence

    assert found is not None
    assert (found.event, found.expected) == (started["number"], "another")


@pytest.mark.requirement("bundles.nested")
async def test_a_nested_run_that_is_another_one_makes_the_whole_one_another():
    data = next(iter((await nested(Random(2))).values()))
    found = await replayed(data)

    assert found.same
    assert [one.same for one in found.nested] == [True] * len(found.nested)
    assert found.nested
    assert found.digest == found.recorded_digest
