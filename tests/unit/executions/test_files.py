"""Files that come with messages, and files that tools return: what models are shown, and what is kept."""

import hashlib
import io
import json
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import structs

from tests.twins import ManualClock
from tests.twins.images import PDF, PNG, jpeg, png
from toolcrib import Crib, File, ScriptedModel, tool
from toolcrib.agents.model.tool_calls import result_text
from toolcrib.contracts import (
    AgentMemory,
    AgentRequest,
    ContentFilter,
    FileInput,
    InvalidInput,
    JsonObject,
    NotFound,
    PermissionDenied,
    Principal,
    RunStarted,
    ToolEnvelope,
)
from toolcrib.contracts.base.media import attachment_of
from toolcrib.core.runs.journal.bundles import read_bundle
from toolcrib.crib.agents.message_files import MOST_FILE_BYTES, MOST_FILES, MOST_FILES_BYTES
from toolcrib.crib.runs.bundles import Capture, replay_file
from toolcrib.infrastructure.store import MemoryStore, Store
from toolcrib.llm import FilePart, Message, Request, Text, ToolCall, ToolResult

PHOTO = File(PNG, name="photo.png")
CSV = File("company,deals\nAcme,2\n", name="deals.csv")
CHART = png(40, 30)
DRAW = Message("assistant", (ToolCall("c1", "draw", "{}"),))


@tool(side_effects="reads")
def draw() -> dict[str, Any]:
    """Draw a chart."""
    return {"chart": File(CHART, name="chart.png"), "rows": File("a,b\n", name="rows.csv")}


@tool(side_effects="reads")
def write() -> list[File]:
    """Write what models do not read."""
    return [File(b"x" * 30_000, name="long.txt"), File(b"PK\3\4", name="all.zip")]


def crib_on(
    store: str | Store, *script: Any, clock: ManualClock | None = None, **agent: Any
) -> tuple[Crib, ScriptedModel, Any]:
    """A crib with one agent, its model, and the handle."""
    model = ScriptedModel(script or (lambda _: "A photo."))
    crib = Crib(store, models={"scripted:desk": model}, clock=clock)
    return crib, model, crib.agent("desk", model="scripted:desk", tools=[draw, write], **agent)


def files_of(request: Request, place: int = -1) -> list[FilePart]:
    return [part for part in request.messages[place].parts if isinstance(part, FilePart)]


def result_of(request: Request) -> ToolResult:
    return next(part for part in request.messages[-1].parts if isinstance(part, ToolResult))


@pytest.mark.requirement("files.messages", "files.replayed")
async def test_a_model_is_shown_the_files_of_a_message_and_the_journal_has_their_digests(store_url: str):
    crib, model, desk = crib_on(store_url)
    async with crib:
        result = await desk("What is this?", files=[PHOTO, CSV])

        (request,) = model.requests
        shown = files_of(request)
        assert [(file.name, file.media_type, file.width, file.height) for file in shown] == [
            ("photo.png", "image/png", 8, 6),
            ("deals.csv", "text/csv", 0, 0),
        ]
        assert request.files is not None
        assert [request.files[file.digest] for file in shown] == [PNG, CSV.data]
        events = [entry.event for entry in await crib.store.journal.events(result.run_id)]
        started = next(event for event in events if isinstance(event, RunStarted))
        assert [(file.name, file.bytes, file.kind) for file in started.request.files] == [
            ("photo.png", len(PNG), "image"),
            ("deals.csv", len(CSV.data), "file"),
        ]
        written = b"".join(event.text for event in events)
        assert b64encode(PNG) not in written
        assert b"Acme,2" not in written
        kept = await crib.executions.attachments(result.run_id)
        assert [(await crib.executions.read_attachment(result.run_id, each.url))[1] for each in kept] == [PNG, CSV.data]
        assert (await crib.replay(result.run_id)).divergence is None


@pytest.mark.requirement("files.messages")
async def test_every_way_to_ask_an_agent_takes_files():
    crib, model, desk = crib_on("memory://")
    async with crib:
        first = await desk("one", files=[PHOTO])
        async with desk.stream("two", files=[PHOTO]) as stream:
            await stream.result()
        await desk.resume(await desk.submit("three", files=[PHOTO]))
        await crib.executions.continue_(first.conversation_id, "four", files=[PHOTO.as_input()])

    assert [len(files_of(request)) for request in model.requests] == [1, 1, 1, 1]
    assert [len(files_of(request, 0)) for request in model.requests] == [1, 1, 1, 1]


@pytest.mark.requirement("files.messages")
async def test_an_attachment_of_a_run_is_sent_again_by_its_digest_and_only_by_whom_may_read_it():
    crib, model, desk = crib_on("memory://", DRAW, "A chart.", "The same chart.")
    async with crib:
        result = await desk("Draw.")
        kept = next(each for each in await crib.executions.attachments(result.run_id) if each.kind == "image")
        again = FileInput(run_id=result.run_id, digest=kept.digest)

        await crib.executions.ask("desk", AgentRequest(message="What is it?", files=(again,)))

        assert [(file.name, file.digest) for file in files_of(model.requests[-1])] == [("chart.png", kept.digest)]
        other = crib.acting_as(Principal(id="eve", grants=("ai://agents/*/execute",)))
        with pytest.raises((PermissionDenied, NotFound)):
            await other.executions.ask("desk", AgentRequest(message="What is it?", files=(again,)))
        missing = FileInput(run_id=result.run_id, digest="0" * 64)
        with pytest.raises(NotFound, match="has no attachment"):
            await crib.executions.ask("desk", AgentRequest(message="What is it?", files=(missing,)))


@pytest.mark.requirement("files.messages")
async def test_an_agentic_tool_in_agentic_mode_is_shown_files_and_one_of_fixed_steps_refuses_them():
    model = ScriptedModel(lambda _: "Two deals.")
    crib = Crib("memory://", models={"scripted:m": model})
    crib.add(draw)
    crib.agentic_tool("free", mode="agentic", model="scripted:m", tools=["draw"])
    crib.agentic_tool("fixed", mode="deterministic", model="scripted:m", steps=["draw"])
    async with crib:
        asked = AgentRequest(message="Read it.", files=(PHOTO.as_input(),))
        await crib.executions.ask("free", asked)
        with pytest.raises(InvalidInput, match="'fixed' reads no files, because its steps are fixed"):
            await crib.executions.ask("fixed", asked)

    assert [file.name for file in files_of(model.requests[0])] == ["photo.png"]


# Files of results -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("files.results", "files.replayed")
async def test_a_model_is_shown_what_a_tool_returned_with_its_result(store_url: str):
    crib, model, desk = crib_on(store_url, DRAW, "A chart.", "The same.")
    async with crib:
        result = await desk("Draw.")
        await desk("What was it?", conversation_id=result.conversation_id)

        shown = result_of(model.requests[1])
        assert [(file.name, file.width, file.height) for file in shown.files] == [
            ("chart.png", 40, 30),
            ("rows.csv", 0, 0),
        ]
        assert model.requests[1].files == {shown.files[0].digest: CHART, shown.files[1].digest: b"a,b\n"}
        assert "base64" not in shown.text
        assert model.requests[2].messages[:4] == (
            *model.requests[1].messages,
            Message("assistant", (Text("A chart."),)),
        )
        assert (await crib.replay(result.run_id)).divergence is None


@pytest.mark.requirement("files.results")
async def test_long_texts_and_unknown_types_of_tools_are_left_to_the_description():
    asked = Message("assistant", (ToolCall("c1", "write", "{}"),))
    crib, model, desk = crib_on("memory://", asked, "Written.")
    async with crib:
        await desk("Write.")

    assert result_of(model.requests[1]).files == ()
    assert model.requests[1].files is None


@pytest.mark.requirement("files.results")
def test_a_model_is_told_the_output_of_a_file_without_its_bytes():
    text = b64encode(PNG).decode()
    output: JsonObject = {"media_type": "image/png", "filename": "a.png", "size": len(PNG), "base64": text}
    kept = (attachment_of(PNG, "image/png", name="a.png"),)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    call: dict[str, Any] = {"call_id": "c", "name": "t", "version": "1.0.0", "t_start": now, "t_end": now}
    envelope = ToolEnvelope(status="success", output=output, attachments=kept, **call)

    assert json.loads(result_text(envelope)) == {**output, "base64": None}
    assert json.loads(result_text(structs.replace(envelope, attachments=()))) == output
    for other in ({"base64": "AAAA"}, {"base64": "no"}, [text]):
        assert json.loads(result_text(structs.replace(envelope, output=other))) == other


# Limits ---------------------------------------------------------------------------------------------------------------


def sent(data: bytes, name: str | None = None, media_type: str | None = None) -> FileInput:
    return FileInput(base64=b64encode(data).decode(), name=name, media_type=media_type)


@pytest.mark.requirement("files.limits")
@pytest.mark.parametrize(
    ("files", "why"),
    [
        ([sent(PNG)] * (MOST_FILES + 1), f"a message has {MOST_FILES + 1} files, and {MOST_FILES} is the most"),
        ([sent(b"x" * (MOST_FILE_BYTES + 1), "a.txt")], rf"files/0 \(a.txt\) has {MOST_FILE_BYTES + 1} bytes, and"),
        ([sent(b"x" * MOST_FILE_BYTES, "a.txt")] * 3, f"have {3 * MOST_FILE_BYTES} bytes, and {MOST_FILES_BYTES} is"),
        ([sent(PNG), sent(jpeg(), "a.png", "image/png")], r"files/1 \(a.png\) is said to be 'image/png', and its"),
        ([sent(b"MZ\0", "a.pdf", "application/pdf")], "its bytes are not; send the whole file"),
        ([sent(b"PK\3\4\0", "a.zip")], "is of type 'application/zip', which models do not read; send image/png"),
        ([sent(b"PK\3\4\0")], "is of type 'application/octet-stream', which models do not read"),
        ([FileInput(base64="https://example.com/a.png")], "files/0 is not base64"),
        ([FileInput(name="a.png")], "has neither bytes nor an attachment, or both; send base64, or run_id and digest"),
        ([FileInput(base64="", run_id="r", digest="d")], "has neither bytes nor an attachment, or both"),
    ],
)  # fmt: skip
async def test_a_file_that_is_refused_is_named_and_nothing_is_kept(files: list[FileInput], why: str):
    crib, model, _ = crib_on("memory://")
    async with crib:
        with pytest.raises(InvalidInput, match=why):
            await crib.executions.ask("desk", AgentRequest(message="Look.", files=tuple(files)))

        assert await crib.store.journal.runs("default") == []
        assert await crib.store.retention.unnamed_blobs(put_before=crib.clock.now() + timedelta(days=1)) == []
    assert model.requests == []


@pytest.mark.requirement("files.limits")
async def test_the_type_of_a_file_is_told_from_its_bytes_and_its_name():
    crib, model, _ = crib_on("memory://")
    unsaid = [sent(PNG), sent(PDF, "plan", "application/octet-stream"), sent(b"a,b", "a.csv"), sent(b"hello")]
    async with crib:
        await crib.executions.ask("desk", AgentRequest(message="Look.", files=tuple(unsaid)))

    types = [file.media_type for file in files_of(model.requests[0])]
    assert types == ["image/png", "application/pdf", "text/csv", "text/plain"]


@pytest.mark.requirement("files.limits")
async def test_results_and_answers_bring_no_files():
    crib, _, _ = crib_on("memory://")
    results: JsonObject = {"call_id": "c", "output": 1}
    async with crib:
        request = AgentRequest.model_validate({"run_id": "r", "tool_results": [results], "files": [{"base64": ""}]})
        with pytest.raises(InvalidInput, match="an answer or results bring no files"):
            await crib.executions.ask("desk", request)


# History, filters, what is deleted ------------------------------------------------------------------------------------


@pytest.mark.requirement("files.history")
async def test_turns_that_are_shown_shortened_describe_their_files():
    crib, model, desk = crib_on("memory://", DRAW, "A chart.", "Yes.", memory=AgentMemory(max_context_tokens=400))
    async with crib:
        first = await desk("Draw.", files=[PHOTO])
        await desk("Is it grey?", conversation_id=first.conversation_id)

    last = model.requests[-1]
    assert last.files is None
    assert [part.text for part in last.messages[0].parts if isinstance(part, Text)] == [
        "Draw.",
        f"[image photo.png, image/png, 8x6, {len(PNG)} bytes; it is not shown any more, to leave room]",
    ]
    result = next(part for part in last.messages[2].parts if isinstance(part, ToolResult))
    assert result.files == ()
    assert "[image chart.png, image/png, 40x30, " in result.text


@pytest.mark.requirement("files.filtered")
async def test_content_filters_read_names_and_texts_and_let_other_bytes_pass(store_url: str):
    rule = ContentFilter(words=("acme",), applies_to=("model_input",), action="redact")
    crib, model, desk = crib_on(store_url, guardrails=(rule,))
    secret = File(b"Acme has two deals.", name="notes.txt")
    async with crib:
        result = await desk("Read.", files=[secret, File(PNG, name="Acme plan.png")])

        (request,) = model.requests
        text, image = files_of(request)
        assert request.files is not None
        assert request.files[text.digest] == b"[word] has two deals."
        assert (image.name, request.files[image.digest]) == ("[word] plan.png", PNG)
        assert (await crib.replay(result.run_id)).divergence is None


@pytest.mark.requirement("files.filtered")
async def test_a_text_file_with_blocked_words_is_not_sent():
    rule = ContentFilter(words=("acme",), applies_to=("model_input",))
    crib, model, desk = crib_on("memory://", guardrails=(rule,))
    async with crib:
        result = await desk("Read.", files=[File(b"Acme has two deals.", name="notes.txt")])
        assert (await crib.replay(result.run_id)).divergence is None

    assert (result.status, model.requests) == ("failed", [])


@pytest.mark.requirement("files.replayed")
async def test_retention_deletes_the_files_of_runs():
    clock = ManualClock()
    crib, _, desk = crib_on(MemoryStore(now=clock.now), clock=clock)
    async with crib:
        old = await desk("What is this?", files=[PHOTO])
        (kept,) = await crib.executions.attachments(old.run_id)
        clock.advance(40 * 86400)
        await crib.retention.prune(older_than=timedelta(days=30))

        with pytest.raises(NotFound):
            await crib.store.blobs.get("default", kept.digest or "")


@pytest.mark.requirement("files.replayed")
async def test_a_bundle_holds_the_files_of_a_run_and_replays_without_its_store():
    crib, _, desk = crib_on("memory://", DRAW, "A chart.")
    async with crib:
        result = await desk("Draw it again.", files=[PHOTO])
        file = io.BytesIO()
        await Capture(crib.store, result.run_id).write(file)

    file.seek(0)
    kept = read_bundle(file).blobs
    assert kept[hashlib.sha256(PNG).hexdigest()] == PNG
    assert kept[hashlib.sha256(CHART).hexdigest()] == CHART
    file.seek(0)
    found = await replay_file(file)
    assert (found.divergence, found.same) == (None, True)
