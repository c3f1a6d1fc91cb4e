"""Which models there are, and what is refused, in OpenAI's shape."""

from typing import Any

import httpx2
import openai
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.unit.executions.house import agent, turn
from tests.unit.openai_endpoint.served import endpoint
from tests.unit.openai_endpoint.test_chat import user
from toolcrib.contracts import ModelError

TEXT: Any = {"type": "text", "text": "What is this?"}
IMAGE: Any = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
VIDEO: Any = {"type": "video", "video": {"url": "data:video/mp4;base64,AA=="}}
ADDRESS: Any = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
PLAIN: Any = {"type": "image_url", "image_url": {"url": "data:text/plain,hello"}}
BY_ID: Any = {"type": "file", "file": {"file_id": "file-1"}}
NOTHING: Any = {"type": "image_url"}
LOOK: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
JSON: Any = {"type": "json_schema", "json_schema": {"name": "Hats", "schema": {"required": ["hats"]}}}


@pytest.mark.requirement("openai_endpoint.models", "openai_endpoint.keys")
async def test_the_models_are_the_agents_that_the_key_may_execute() -> None:
    async with endpoint() as served:
        await served.server.crib.save(agent("hidden", available_as=("workflow_step",)))
        await served.server.crib.save(agent("draft", status="draft"))
        names = {key: [model.id async for model in served.client_of(key).models.list()] for key in ("owner", "reader")}
        model = await served.client.models.retrieve("clerk")
        messages: list[str] = []
        for key, name in (
            ("reader", "clerk"),
            ("stranger", "clerk"),
            ("owner", "hidden"),
            ("owner", "draft"),
            ("owner", "look"),
        ):
            with pytest.raises(openai.NotFoundError) as refused:
                await served.client_of(key).chat.completions.create(model=name, messages=[user("Hello")])
            messages.append(refused.value.message.replace(name, "NAME"))
            assert (refused.value.code, refused.value.param) == ("model_not_found", "model")
        with pytest.raises(openai.AuthenticationError) as unknown:
            await served.client_of("nobody").models.list()
    assert names == {"owner": ["clerk"], "reader": []}
    assert (model.id, model.object, model.owned_by) == ("clerk", "model", "toolcrib")
    assert len(set(messages)) == 1
    assert unknown.value.type == "authentication_error"


@pytest.mark.requirement("openai_endpoint.refusals", "openai_endpoint.errors")
@pytest.mark.parametrize(
    ("changed", "param", "words"),
    [
        ({"messages": [user("")]}, "messages", "the last message is empty"),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages", "the last message is missing"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "messages", "of kind 'assistant'"),
        ({"messages": [{"role": "user", "content": [VIDEO]}]}, "messages.0.content.0", "of type 'video'"),
        ({"messages": [{"role": "assistant", "content": [IMAGE]}]}, "messages.0.content.0", "of type 'image_url'"),
        ({"messages": [{"role": "user", "content": [ADDRESS]}]}, "messages.0.content.0", "agents fetch none"),
        ({"messages": [{"role": "user", "content": [PLAIN]}]}, "messages.0.content.0", "that is not base64"),
        ({"messages": [{"role": "user", "content": [BY_ID]}]}, "messages.0.content.0", "has a file_id"),
        ({"messages": [{"role": "user", "content": [NOTHING]}]}, "messages.0.content.0", "has no bytes"),
        ({"messages": [{"role": "user", "content": [TEXT, IMAGE]}]}, "/files/0", "its bytes are not"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages.0.content", "valid"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0", "needs the tool_call_id"),
        ({"messages": []}, "messages", "at least 1"),
        ({"n": 2}, "n", "one answer"),
        ({"tools": [LOOK]}, "tools", "cannot call 'look'"),
        ({"response_format": JSON}, "format", "answers in text"),
    ],
)
async def test_what_an_agent_cannot_do_is_refused_before_a_run_begins(
    changed: dict[str, Any], param: str, words: str
) -> None:
    async with endpoint() as served:
        body: Any = {"model": "clerk", "messages": [user("Hello")], **changed}
        with pytest.raises(openai.BadRequestError, match=words) as refused:
            await served.client.chat.completions.create(**body)
        runs = await served.server.crib.store.journal.runs("default")
    assert (refused.value.param or "").startswith(param)
    assert refused.value.type == "invalid_request_error"
    assert runs == []


@pytest.mark.requirement("openai_endpoint.refusals", "openai_endpoint.formats")
async def test_items_and_formats_that_an_agent_does_not_have_are_refused() -> None:
    schema = {"type": "object", "properties": {"hats": {"type": "integer"}}}
    structured = agent(tools=(), response_format="structured", response_schema=schema)
    wanted: Any = {"format": {"type": "json_schema", "name": "C", "schema": {"required": ["coats"]}}}
    items: Any = [{"type": "computer_call", "id": "c"}]
    async with endpoint(definition=structured) as served:
        create = served.client.responses.create
        with pytest.raises(openai.BadRequestError, match="have no 'coats'"):
            await create(model="clerk", input="How many?", text=wanted)
        with pytest.raises(openai.BadRequestError, match="no item of type 'computer_call'"):
            await create(model="clerk", input=items)
        with pytest.raises(openai.BadRequestError, match="the role 'robot' is unknown"):
            await create(model="clerk", input=[{"role": "robot", "content": "x"}])  # pyright: ignore[reportArgumentType]
        with pytest.raises(openai.BadRequestError, match="neither a text nor a list") as odd:
            await create(model="clerk", input=[{"role": "user", "content": 7}])  # pyright: ignore[reportArgumentType]
        assert odd.value.param == "input.0.content"
        with pytest.raises(openai.BadRequestError, match="needs the call_id"):
            await create(model="clerk", input=[{"type": "function_call_output", "output": "x"}])  # pyright: ignore[reportArgumentType]
        with pytest.raises(openai.NotFoundError) as unknown:
            await create(model="clerk", input="x", previous_response_id="resp_0")
    assert (unknown.value.code, unknown.value.param) == ("previous_response_not_found", "previous_response_id")


@pytest.mark.requirement("openai_endpoint.errors")
async def test_a_client_does_not_repeat_a_request_whose_run_has_failed() -> None:
    down = ModelError("auth", "the model is down")
    async with endpoint(down, down, down, turn(("look", "hat")), "Here.") as served:
        retrying = served.client_of("owner", retries=3)
        with pytest.raises(openai.APIStatusError) as failed:
            await retrying.chat.completions.create(model="clerk", messages=[user("Hello")])
        with pytest.raises(openai.APIStatusError):
            await retrying.chat.completions.create(model="clerk", messages=[user("Hello")], stream=True)
        response = await retrying.responses.create(model="clerk", input="Hello")
        runs = await served.server.crib.store.journal.runs("default")
    assert failed.value.response.headers["x-should-retry"] == "false"
    assert failed.value.response.headers["x-toolcrib-run-id"] in {run.run_id for run in runs}
    assert (response.status, response.error is not None) == ("failed", True)
    assert len(runs) == 3


@pytest.mark.requirement("openai_endpoint.errors")
async def test_errors_keep_their_shape_behind_a_path_prefix_and_with_unknown_queries() -> None:
    async with endpoint("Hello.") as served:
        found = await served.server.client.get("/v1/models", params={"api-version": "2025-01-01"})
        elsewhere = await served.server.client.get("/v1/embeddings")
        outside = httpx2.ASGITransport(Starlette(routes=[Mount("/ai", served.server.app)]))
        headers = {"Authorization": "Bearer owner"}
        async with httpx2.AsyncClient(transport=outside, base_url="http://crib", headers=headers) as client:
            mounted = await client.get("/ai/v1/models/none")
    assert found.status_code == 200
    assert (elsewhere.status_code, elsewhere.json()["error"]["type"]) == (404, "invalid_request_error")
    assert (mounted.status_code, mounted.json()["error"]["code"]) == (404, "model_not_found")
