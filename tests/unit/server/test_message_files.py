"""Files in messages over REST, on SQLite: sent as base64, shown to the model, listed and read as attachments."""

from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.twins.images import PNG
from tests.unit.server.client import Server, checked, serving
from toolcrib import Crib, ScriptedModel
from toolcrib.contracts import JsonObject
from toolcrib.interfaces.server.app import MAX_BODY_BYTES, MAX_FILES_BODY_BYTES
from toolcrib.llm import FilePart, LanguageModel

DESK: JsonObject = {"name": "desk", "llm": {"model": "scripted:eyes"}, "system_prompt": "Look."}
PHOTO: JsonObject = {"name": "photo.png", "media_type": "image/png", "base64": b64encode(PNG).decode()}


@asynccontextmanager
async def desk_with_eyes(store: str = "memory://") -> AsyncGenerator[tuple[Server, ScriptedModel]]:
    """A server with an agent, and the model that it asks."""
    model = ScriptedModel(lambda _: "A photo.", name="eyes")

    def make(*given: Any, models: dict[str, LanguageModel], **options: Any) -> Crib:
        return Crib(*given, models={**models, model.name: model}, **options)

    async with serving(store, make_crib=make) as server:
        checked(await server.client.post("/api/v1/ai/agents", json=DESK), 201)
        yield server, model


def shown(model: ScriptedModel) -> list[list[str]]:
    """The names of the files of each request's last message."""
    return [
        [part.name for part in request.messages[-1].parts if isinstance(part, FilePart)] for request in model.requests
    ]


@pytest.mark.requirement("files.messages")
async def test_files_are_sent_in_every_form_of_execution_and_read_as_attachments(tmp_path: Path):
    async with desk_with_eyes(f"sqlite:///{tmp_path}/crib.db") as (server, model):
        body = {"message": "What is this?", "files": [PHOTO]}
        first = await server.post("/ai/agents/desk/execute", body)
        streamed = await server.client.post("/api/v1/ai/agents/desk/execute/stream", json=body)
        durable = await server.post("/ai/agents/desk/execute/durable", body, status=202)
        await server.finished(durable["run_id"])
        await server.post(f"/ai/conversations/{first['conversation_id']}/continue", body)

        assert streamed.status_code == 200
        assert shown(model) == [["photo.png"]] * 4
        (kept,) = (await server.get(f"/executions/{first['run_id']}/attachments"))["items"]
        assert (kept["name"], kept["width"], kept["height"]) == ("photo.png", 8, 6)
        read = await server.client.get(kept["url"])
        assert (read.content, read.headers["content-type"]) == (PNG, "image/png")
        again = {"message": "Again.", "files": [{"run_id": first["run_id"], "digest": kept["url"].rpartition("/")[2]}]}
        await server.post("/ai/agents/desk/execute", again)
        assert shown(model)[-1] == ["photo.png"]


@pytest.mark.requirement("files.limits")
async def test_a_file_that_is_refused_is_an_answer_with_its_place():
    async with desk_with_eyes() as (server, model):
        sent = {"message": "What is this?", "files": [PHOTO, {**PHOTO, "media_type": "image/gif"}]}

        refused = await server.post("/ai/agents/desk/execute", sent, status=422)

        assert "files/1 (photo.png) is said to be 'image/gif'" in refused["detail"]
        assert refused["details"]["problems"][0]["path"] == "/files/1"
        assert model.requests == []


@pytest.mark.requirement("files.limits")
async def test_only_messages_to_agents_may_have_large_bodies():
    async with serving() as server:

        async def status(path: str, size: int) -> int:
            headers = {"Content-Length": str(size), "Content-Type": "application/json"}
            return (await server.client.post(path, content=b"{", headers=headers)).status_code

        assert await status("/api/v1/ai/agents/desk/execute", MAX_BODY_BYTES + 1) == 422
        assert await status("/api/v1/ai/agents/desk/execute", MAX_FILES_BODY_BYTES + 1) == 413
        assert await status("/api/v1/ai/agents", MAX_BODY_BYTES + 1) == 413
