"""The traceback of an exception that a tool raised: for its author in the log and the journal, and for nobody else."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.unit.cli.command import toolcrib
from toolcrib import Crib, ScriptedModel, tool
from toolcrib.contracts import ContentFilter, RetryPolicy, SecretReference
from toolcrib.contracts.runs.events import read_event
from toolcrib.kinds.python.context import ToolContext
from toolcrib.llm import Message, ToolCall

SECRET = "Xx-crm-canary-0123456789"
pytestmark = pytest.mark.requirement("executor.tracebacks")


@tool(side_effects="reads", secrets=(SecretReference(name="crm", reference="${env:CRM_TOKEN}"),))
def look_up(company: str, context: ToolContext) -> str:
    """Find a company."""
    companies: dict[str, str] = {}
    try:
        return companies[company]
    except KeyError as cause:
        raise ValueError(f"nothing for {context.auth['crm']}") from cause


@tool(side_effects="reads")
async def dig(depth: int) -> str:
    """Fail far down, with a long message."""
    raise RuntimeError("x" * depth)


@pytest.fixture
def place(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'crib.db'}"


def crib_at(place: str, *answers: Any) -> Crib:
    crib = Crib(place, environment={"CRM_TOKEN": SECRET}, models={"scripted:m": ScriptedModel(list(answers))})
    crib.add(look_up, dig)
    return crib


async def test_it_is_in_the_log_and_the_journal_without_secrets_and_not_in_the_envelope(
    place: str, caplog: pytest.LogCaptureFixture
):
    async with crib_at(place) as crib:
        envelope = await crib.call("look_up", company="Acme")
        assert envelope.error is not None
        assert envelope.run_id is not None
        [kept] = await crib.executions.tracebacks(envelope.run_id)
        stored = [entry.event.text for entry in await crib.store.journal.events(envelope.run_id)]
        replayed = await crib.replay(envelope.run_id)

    assert (kept.run_id, kept.position, kept.name) == (envelope.run_id, "call", "look_up")
    first, *_, last = kept.text.splitlines()
    assert first == "Traceback (most recent call last):"
    assert last.startswith("ValueError: nothing for ")
    assert SECRET not in kept.text
    assert "return companies[company]" in kept.text
    assert "direct cause" in kept.text
    assert str(Path(toolcrib.__code__.co_filename).parents[3] / "src") not in kept.text.split("direct cause")[1]
    assert "Traceback" not in envelope.model_dump_json()
    assert replayed.same

    [record] = [record for record in caplog.records if record.name == "toolcrib.tools"]
    assert record.exc_text == kept.text
    assert record.exc_info is None  # the exception itself has the secret
    assert (vars(record)["run_id"], vars(record)["call_id"]) == (envelope.run_id, envelope.call_id)
    assert SECRET not in logging.Formatter().format(record)
    assert not any(SECRET.encode() in text for text in stored)


async def test_a_long_one_is_cut_in_the_middle_and_the_exception_is_logged_whole(
    place: str, caplog: pytest.LogCaptureFixture
):
    async with crib_at(place) as crib:
        envelope = await crib.call("dig", depth=30_000)
        assert envelope.run_id is not None
        [kept] = await crib.executions.tracebacks(envelope.run_id)

    assert 20_000 <= len(kept.text) < 20_100
    assert "characters left out)" in kept.text
    assert kept.text.startswith("Traceback")
    [record] = [record for record in caplog.records if record.name == "toolcrib.tools"]
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], RuntimeError)


async def test_nothing_is_logged_where_nobody_listens(place: str, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.ERROR, logger="toolcrib.tools")
    async with crib_at(place) as crib:
        result = await crib.invoke("dig", {"depth": 1})

    assert caplog.records == []
    assert [kept.name for kept in result.tracebacks] == ["dig"]


@pytest.mark.parametrize(("action", "said"), [("redact", "RuntimeError: a@example.com"), ("block", "RuntimeError")])
async def test_content_filters_of_an_agent_apply_and_its_model_sees_none(place: str, action: Any, said: str):
    @tool(side_effects="reads", retry=RetryPolicy(count=0))
    def write_to(who: str) -> str:
        raise RuntimeError(f"{who}@example.com")

    call = Message("assistant", (ToolCall("c1", "write_to", json.dumps({"who": "a"})),))
    filters = [ContentFilter(action=action, personal_data=("email",), applies_to=("tool_output",))]
    async with crib_at(place, call, "I could not") as crib:
        desk = crib.agent("desk", model="scripted:m", tools=[write_to], guardrails=filters)
        answer = await desk("write")
        [kept] = await crib.executions.tracebacks(answer.run_id)
        events = await crib.store.journal.events(answer.run_id)
        asked = [entry.model_dump_json() for entry in events if entry.event.type == "model_started"]
        state = await crib.executions.respond(answer.run_id)

    assert said not in kept.text if action == "redact" else kept.text.startswith("(withheld: ")
    assert "a@example.com" not in kept.text
    assert not any(
        "Traceback" in text for text in [*asked, orjson.dumps(answer.summary.output).decode(), state.model_dump_json()]
    )


async def test_what_a_tool_raised_in_a_nested_run_is_told_of_the_whole(place: str):
    call = Message("assistant", (ToolCall("c1", "dig", json.dumps({"depth": 3})),))
    ask = Message("assistant", (ToolCall("c2", "clerk", json.dumps({"message": "dig"})),))
    async with crib_at(place, ask, call, "It failed", "It failed") as crib:
        clerk = crib.agent("clerk", model="scripted:m", tools=["dig"])
        desk = crib.agent("desk", model="scripted:m", delegates=[clerk])
        answer = await desk("dig")
        [kept] = await crib.executions.tracebacks(answer.run_id)

    assert kept.name == "dig"
    assert kept.run_id != answer.run_id


async def test_a_journal_of_an_older_release_has_none(place: str):
    async with crib_at(place) as crib:
        result = await crib.invoke("look_up", {"company": "Acme"})

    [event] = [entry.event for entry in result.events if entry.event.type == "call_finished"]
    old = event.as_written()
    del old["traceback"]
    assert getattr(read_event(orjson.dumps(old)), "traceback", "") is None


def test_the_command_line_shows_it_when_asked(place: str):
    async def run() -> str:
        async with crib_at(place) as crib:
            return (await crib.invoke("dig", {"depth": 3})).run_id

    run_id = asyncio.run(run())

    assert "Traceback" not in toolcrib("run", "trace", run_id, store=place).stdout
    shown = toolcrib("run", "trace", run_id, "--traceback", store=place).stdout
    assert "dig at call:\nTraceback (most recent call last):" in shown
    assert "RuntimeError: xxx" in shown
    assert "tracebacks" not in json.loads(toolcrib("run", "trace", run_id, "--json", store=place).stdout)
    [found] = json.loads(toolcrib("run", "trace", run_id, "--json", "--traceback", store=place).stdout)["tracebacks"]
    assert (found["run_id"], found["name"]) == (run_id, "dig")
