"""Agents of other systems as tools: the SDK's own agent, and one of ours on another server."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.a2a.client import address
from tests.unit.a2a.other_agent import PICTURE, AgentServer, other_agent, refusal
from tests.unit.cli.command import invalid, toolcrib
from tests.unit.executions.house import agent, turn
from tests.unit.graphql.server import local
from tests.unit.openai_endpoint.served import endpoint
from toolcrib import Crib, DefinitionOptions, ScriptedModel
from toolcrib.contracts import (
    AgentDefinition,
    AgentMemory,
    BearerAuth,
    Conflict,
    EgressDenied,
    ErrorCode,
    InvalidDefinition,
    InvalidInput,
    LLMConfig,
    ReconnectRequired,
    Unavailable,
)
from toolcrib.infrastructure.net import EgressPolicy
from toolcrib.kinds.a2a.commands import A2aSource
from toolcrib.kinds.a2a.shape import A2aImplementation
from toolcrib.llm import Message, ToolCall

TOKEN = BearerAuth(token="${env:TOOLCRIB_SECRET_PAINTER}")


def crib_for(*ports: int) -> Crib:
    return Crib(
        "memory://",
        egress=local(*ports),
        environment={"TOOLCRIB_SECRET_PAINTER": "s3cr3t-owner-key"},
        definitions=DefinitionOptions(released=("TOOLCRIB_SECRET_*",)),
    )


def source(server: AgentServer, **fields: Any) -> A2aSource:
    return A2aSource(name="painter", url=server.url, auth=TOKEN, **fields)


@pytest.mark.requirement("a2a.import")
@pytest.mark.parametrize("at", ["", "/", "/.well-known/agent-card.json"])
async def test_an_agent_becomes_a_tool_from_its_card(at: str) -> None:
    async with other_agent() as server, crib_for(server.port) as crib:
        imported = await crib.imports.read(A2aSource(name="painter", url=server.url + at, auth=TOKEN))
        again = await crib.imports.read(A2aSource(name="painter", url=server.url + at))
        [tool] = imported.tools
        provider = crib.providers.find("default", "painter")
        await crib.call("painter", message="Hello")

    assert (tool.name, tool.description, tool.side_effects) == ("painter", "Does what is said.", "writes")
    assert "Draw: Draws a picture." in (tool.long_description or "")
    assert isinstance(tool.implementation, A2aImplementation)
    assert (tool.implementation.agent, tool.implementation.binding) == ("painter", "JSONRPC")
    assert provider is not None
    assert (provider.base_url, provider.metadata["version"], provider.auth) == (server.url, "2.1", TOKEN)
    assert again.outcome is not None
    assert again.outcome.counts() == {"unchanged": 1}
    assert set(server.keys) == {"Bearer s3cr3t-owner-key"}


@pytest.mark.requirement("a2a.calls")
@pytest.mark.parametrize(
    ("binding", "version"), [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3"), ("HTTP+JSON", "0.3")]
)
async def test_a_call_is_a_task_of_the_agent_in_each_binding_and_version(binding: str, version: str) -> None:
    async with other_agent() as server, crib_for(server.port) as crib:
        server.interfaces = [(server.url, "GRPC", "1.0"), (server.url, binding, version)]
        await crib.imports.read(source(server))
        envelope = await crib.call("painter", message="paint", data={"size": 4})
        more = await crib.call("painter", message="more", context_id=envelope.output["context_id"])

    assert envelope.error is None
    assert (envelope.output["state"], envelope.output["text"]) == ("completed", "Done: paint")
    assert envelope.output["data"] == [{"count": 3, "share": 0.5}]
    assert more.output["context_id"] == envelope.output["context_id"]
    assert more.output["task_id"] != envelope.output["task_id"]


@pytest.mark.requirement("a2a.calls")
async def test_a_message_in_place_of_a_task_is_an_answer() -> None:
    async with other_agent() as server, crib_for(server.port) as crib:
        await crib.imports.read(source(server))
        envelope = await crib.call("painter", message="just say it")

    assert envelope.output == {
        "state": "completed",
        "text": "Said.",
        "data": [],
        "files": [],
        "task_id": None,
        "context_id": "c1",
    }


@pytest.mark.requirement("a2a.calls")
async def test_files_are_attachments_and_never_in_the_output() -> None:
    async with other_agent() as server, crib_for(server.port) as crib:
        await crib.imports.read(source(server))
        result = await crib.invoke("painter", {"message": "draw"})
        kept = await crib.executions.attachments(result.run_id)
        _, payload = await crib.executions.read_attachment(result.run_id, str(kept[0].digest))

    output: Any = result.output
    picture, paper, linked = output["files"]
    assert (picture["name"], picture["media_type"], picture["bytes"]) == ("a.png", "image/png", len(PICTURE))
    assert picture["url"] == kept[0].url
    assert (paper["name"], paper["media_type"]) == ("a.pdf", None)
    assert linked == {"name": None, "media_type": "image/png", "url": "https://example.org/b.png"}
    assert ([each.kind for each in kept], payload) == (["image", "blob"], PICTURE)


@pytest.mark.requirement("a2a.calls")
async def test_what_an_agent_asks_is_an_output_and_the_next_call_answers_it() -> None:
    async with other_agent() as server, crib_for(server.port) as crib:
        await crib.imports.read(source(server))
        asked = await crib.call("painter", message="ask")
        told = await crib.call("painter", message="L", task_id=asked.output["task_id"])

    assert (asked.output["state"], asked.output["text"]) == ("input_required", "Which size?")
    assert (told.output["state"], told.output["text"], told.output["task_id"]) == (
        "completed",
        "Done: L",
        asked.output["task_id"],
    )


@pytest.mark.requirement("a2a.calls")
@pytest.mark.parametrize(
    ("message", "code", "words"),
    [
        ("fail", ErrorCode.PROVIDER_ERROR, "its task has failed: I fail."),
        ("reject", ErrorCode.PROVIDER_ERROR, "its task was rejected: I reject."),
        ("sign in", ErrorCode.AUTH_REQUIRED, "needs an authentication"),
    ],
)
async def test_a_task_that_does_not_complete_fails_the_call(message: str, code: ErrorCode, words: str) -> None:
    async with other_agent() as server, crib_for(server.port) as crib:
        await crib.imports.read(source(server))
        envelope = await crib.call("painter", message=message)

    assert envelope.error is not None
    assert (envelope.error.code, words in envelope.error.message) == (code, True)


@pytest.mark.requirement("a2a.calls")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_refusals_of_the_protocol_and_of_http_are_errors_of_the_call(binding: str) -> None:
    async with other_agent() as server, crib_for(server.port) as crib:
        server.interfaces = [(server.url, binding, "1.0")]
        await crib.imports.read(source(server))
        unknown = await crib.call("painter", message="Hi", task_id="nothing")
        server.refusal = refusal(401)
        strange = await crib.call("painter", message="Hi")
        server.refusal = refusal(429, **{"retry-after": "7"})
        hasty = await crib.call("painter", message="Hi")
        server.refusal = refusal(200)
        odd = await crib.call("painter", message="Hi")

    codes = [each.error and each.error.code for each in (unknown, strange, hasty, odd)]
    assert codes == [
        ErrorCode.VALIDATION_ERROR,
        ErrorCode.AUTH_REQUIRED,
        ErrorCode.RATE_LIMIT,
        ErrorCode.PROVIDER_ERROR,
    ]
    assert hasty.error is not None
    assert hasty.error.retry_after_s == 7
    for envelope in (unknown, strange, hasty, odd):
        assert "s3cr3t" not in envelope.model_dump_json()


@pytest.mark.requirement("a2a.calls")
async def test_a_call_whose_time_is_over_cancels_the_task() -> None:
    async with other_agent() as server, crib_for(server.port) as crib:
        imported = await crib.imports.read(source(server))
        [painter] = imported.tools
        await crib.save(painter.model_copy(update={"timeout_s": 0.6}))
        envelope = await crib.call("painter", message="wait")
        for _ in range(100):
            if server.agent.cancelled:
                break
            await asyncio.sleep(0.05)

    assert envelope.error is not None
    assert envelope.error.code is ErrorCode.TIMEOUT
    assert len(server.agent.cancelled) == 1


@pytest.mark.requirement("a2a.calls", "a2a.delegates")
async def test_an_agent_of_ours_delegates_to_an_agent_of_another_server() -> None:
    asks = Message("assistant", (ToolCall("m1", "clerk", '{"message": "Where is the hat?"}'),))
    model = ScriptedModel([asks, "The clerk says that it is here."])
    async with endpoint(turn(("look", "hat")), "It is here.") as served:
        port = int(served.base_url.removesuffix("/v1").rpartition(":")[2])
        async with Crib(
            "memory://",
            egress=local(port),
            environment={"TOOLCRIB_SECRET_DESK": "owner"},
            definitions=DefinitionOptions(released=("TOOLCRIB_SECRET_*",)),
            models={"scripted:boss": model, "scripted:wary": ScriptedModel([asks])},
        ) as crib:
            auth = BearerAuth(token="${env:TOOLCRIB_SECRET_DESK}")
            await crib.imports.read(A2aSource(name="clerk", url=address(served), auth=auth))
            boss = crib.agent("boss", model="scripted:boss", delegates=["clerk"])
            answer = await boss("Ask the clerk for the hat")
            [call] = answer.envelopes
            wary = crib.agent("wary", model="scripted:wary", delegates=["clerk"], requires_approval=True)
            waits = await wary("Ask the clerk for the hat")

    assert answer.output == "The clerk says that it is here."
    assert (call.name, call.output["text"], served.desk.done) == ("clerk", "It is here.", [("look", "hat")])
    assert (waits.status, [approval.name for approval in waits.approvals]) == ("awaiting_approval", ["clerk"])


@pytest.mark.requirement("a2a.delegates")
async def test_an_agent_of_another_system_may_be_a_delegate_but_not_write_summaries() -> None:
    async with other_agent() as server, crib_for(server.port) as crib:
        await crib.imports.read(source(server))
        memory = AgentMemory(strategy="summary", summary_agent="painter")
        desk = AgentDefinition(name="desk", llm=LLMConfig(model="openai:gpt-5"), memory=memory)
        with pytest.raises(InvalidDefinition, match="of kind 'a2a', not an agent; name one of this system"):
            await crib.agents.save(desk)


@pytest.mark.requirement("a2a.import")
async def test_cards_that_cannot_be_used_are_refused() -> None:
    async with other_agent() as server, crib_for(server.port) as crib:
        server.interfaces = [("https://elsewhere.example/", "JSONRPC", "1.0")]
        with pytest.raises(InvalidInput, match="not where its card is"):
            await crib.imports.read(source(server))
        server.interfaces = [(server.url, "GRPC", "1.0"), (server.url, "JSONRPC", "7.0")]
        with pytest.raises(InvalidInput, match=r"has GRPC 1\.0, JSONRPC 7\.0; give one"):
            await crib.imports.read(source(server))
        server.interfaces = []
        with pytest.raises(InvalidInput, match="has none"):
            await crib.imports.read(source(server))
        with pytest.raises(InvalidInput, match="answers with 404"):
            await crib.imports.read(A2aSource(name="painter", url=f"{server.url}/nowhere"))


@pytest.mark.requirement("a2a.import")
async def test_a_provider_is_not_imported_from_another_address() -> None:
    async with other_agent() as server, other_agent() as other, crib_for(server.port, other.port) as crib:
        await crib.imports.read(source(server))
        with pytest.raises(Conflict, match="painter"):
            await crib.imports.read(source(other))


@pytest.mark.requirement("a2a.import")
async def test_addresses_that_do_not_answer_with_a_card_are_told() -> None:
    async with endpoint("Hi.") as served:
        port = int(served.base_url.removesuffix("/v1").rpartition(":")[2])
        async with crib_for(port) as crib:
            with pytest.raises(ReconnectRequired, match="answers with 401"):
                await crib.imports.read(A2aSource(name="clerk", url=address(served)))
            with pytest.raises(InvalidInput, match="is not an agent card"):
                await crib.imports.read(A2aSource(name="clerk", url=f"http://127.0.0.1:{port}/openapi.json"))
            missing = BearerAuth(token="${env:TOOLCRIB_SECRET_NONE}")
            with pytest.raises(ReconnectRequired, match="TOOLCRIB_SECRET_NONE"):
                await crib.imports.read(A2aSource(name="clerk", url=address(served), auth=missing))
            with pytest.raises(EgressDenied):
                await crib.imports.read(A2aSource(name="clerk", url="http://127.0.0.1:9"))
    async with Crib("memory://", egress=EgressPolicy(allow=("127.0.0.1:9",))) as crib:
        with pytest.raises(Unavailable, match="cannot be fetched"):
            await crib.imports.read(A2aSource(name="clerk", url="http://127.0.0.1:9"))


@pytest.mark.requirement("a2a.import")
async def test_an_agent_is_imported_on_the_command_line_and_over_rest(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'crib.db'}"
    async with other_agent() as server, endpoint("Hi.", definition=agent(tools=())) as served:
        line = ("tool", "import-a2a", server.url, "--name", "painter", "--json")
        told = await asyncio.to_thread(toolcrib, *line, store=store, TOOLCRIB_EGRESS_ALLOW=f"127.0.0.1:{server.port}")
        body = {"name": "painter", "url": server.url}
        denied = await served.server.client.post("http://crib/api/v1/ai/tools/import-a2a", json=body)

    assert told.exit_code == 0, told.stderr
    assert json.loads(told.stdout)["format"] == "A2A 1.0"
    assert invalid("tool import-a2a", json.loads(told.stdout)) == []
    assert denied.status_code in {403, 422}
    assert "127.0.0.1" in denied.text
