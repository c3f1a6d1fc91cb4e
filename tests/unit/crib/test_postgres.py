"""A whole crib on PostgreSQL: what one process begins, another one sees, decides and ends."""

import asyncio
import json
from typing import Any, Self

import pytest

from tests.servers.postgres import PostgresServer, running_postgres
from toolcrib import Crib, ScriptedModel, SharingOptions, tool
from toolcrib.contracts import Json
from toolcrib.contracts.base.errors import StoreUnavailable
from toolcrib.llm import Message, Request, ScriptedAnswer, ToolCall, ToolResult

pytestmark = [pytest.mark.requirement("postgres.crib"), pytest.mark.slow]


def script(request: Request) -> ScriptedAnswer:
    """Calls the one tool that is offered with what one is asked, and then repeats it."""
    if any(isinstance(part, ToolResult) for message in request.messages for part in message.parts):
        return request.messages[0].text
    [offered] = request.tools.tools
    name = "text" if offered.name == "note" else "message"
    return Message("assistant", (ToolCall("1", offered.name, json.dumps({name: request.messages[0].text})),))


class Machine:
    """A machine's crib: a tool that notes, one that does so when a person agrees, and agents that call them."""

    def __init__(self, url: str) -> None:
        self.noted: list[str] = []

        @tool(side_effects="writes", requires_confirmation=True)
        async def note(text: str) -> Json:
            """Write a note."""
            self.noted.append(text)
            return {"noted": text}

        @tool(side_effects="reads", max_output_bytes=64)
        async def long_list() -> list[str]:
            """More than fits."""
            return [f"item {number}" for number in range(100)]

        self.crib = Crib(url, models={"scripted:m": ScriptedModel(script)}, sharing=SharingOptions(lease_s=0.5))
        self.crib.add(note, long_list)
        self.crib.agent("clerk", model="scripted:m", tools=["note"])
        self.crib.agent("head", model="scripted:m", delegates=("clerk",))

    async def __aenter__(self) -> Self:
        await self.crib.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.crib.close()


async def test_a_run_ends_and_what_does_not_fit_is_read_whole_from_another_machine(postgres_store: str):
    async with Machine(postgres_store) as one, Machine(postgres_store) as other:
        done = await one.crib.invoke("long_list", {})
        [envelope] = done.envelopes
        [whole] = envelope.attachments

        assert (done.summary.status, envelope.truncated) == ("completed", True)
        assert whole.url is not None
        data = await other.crib.store.blobs.get("default", whole.url.rpartition(":")[2])
        assert len(json.loads(data)) == 100
        assert (await other.crib.trace(done.run_id)).run_id == done.run_id


async def test_a_nested_run_that_waits_is_decided_on_one_machine_and_ended_on_another(postgres_store: str):
    async with Machine(postgres_store) as first:
        waiting = await first.crib.invoke("head", {"message": "five"})
        assert waiting.summary.status == "awaiting_approval"

    async with Machine(postgres_store) as second, Machine(postgres_store) as third:
        [approval] = (await second.crib.approvals.page()).items
        assert approval.callers == ("head@1.0.0", "clerk@1.0.0")
        await second.crib.approvals.decide(approval.approval_id, approve=True)
        done = await third.crib.resume(waiting.run_id)

        assert (done.summary.status, done.output) == ("completed", "five")
        assert (first.noted, second.noted, third.noted) == ([], [], ["five"])
        assert (await second.crib.approvals.page()).items == ()


async def test_of_two_machines_that_serve_each_run_is_driven_by_one(postgres_store: str):
    async with Machine(postgres_store) as one, Machine(postgres_store) as other:
        serving = [asyncio.create_task(machine.crib.engine.serve()) for machine in (one, other)]
        texts = [f"note {number}" for number in range(10)]
        waiting = await asyncio.gather(*(one.crib.invoke("note", {"text": text}) for text in texts))
        approvals = (await other.crib.approvals.page()).items
        assert len(approvals) == len(texts)
        await asyncio.gather(
            *(other.crib.approvals.decide(approval.approval_id, approve=True) for approval in approvals)
        )
        done = await asyncio.gather(*(one.crib.resume(run.run_id) for run in waiting))
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    assert {run.summary.status for run in done} == {"completed"}
    assert sorted(one.noted + other.noted) == sorted(texts)


@pytest.mark.chaos
@pytest.mark.requirement("store.away", "postgres.away")
async def test_a_run_in_whose_middle_the_server_dies_goes_on_when_it_is_back():
    with running_postgres() as server:
        await _goes_on(server)


async def _goes_on(server: PostgresServer) -> None:
    made: list[str] = []

    @tool(side_effects="reads")
    async def look(place: str) -> str:
        """Look somewhere."""
        made.append(place)
        if made == ["a", "b"]:
            server.stop()
        return f"seen {place}"

    def looks(request: Request) -> ScriptedAnswer:
        seen = sum(isinstance(part, ToolResult) for message in request.messages for part in message.parts)
        if seen == 3:
            return "all seen"
        return Message("assistant", (ToolCall(str(seen), "look", json.dumps({"place": "abc"[seen]})),))

    models: Any = {"scripted:m": ScriptedModel(looks)}
    async with Crib(server.database(), models=models, sharing=SharingOptions(lease_s=0.5)) as crib:
        crib.add(look)
        crib.agent("scout", model="scripted:m", tools=["look"])
        run_id = await crib.submit("scout", {"message": "look"})
        with pytest.raises(StoreUnavailable):
            await crib.resume(run_id)
        server.start()
        done = await crib.resume(run_id)

    assert (done.summary.status, done.output) == ("completed", "all seen")
    assert made == ["a", "b", "b", "c"]
    assert [entry.number for entry in done.events] == list(range(1, len(done.events) + 1))
