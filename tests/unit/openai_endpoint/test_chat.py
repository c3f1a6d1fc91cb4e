"""Chat completions with the clients of OpenAI's SDK."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import openai
import pytest
from openai import OpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.docs.test_snippets import run, snippets
from tests.unit.executions.house import agent, turn
from tests.unit.openai_endpoint.served import PROMPT, endpoint
from toolcrib import ScriptedModel
from toolcrib.contracts import Limits, ModelError
from toolcrib.llm import Event, Request


def user(text: str) -> Any:
    return {"role": "user", "content": text}


def said(text: str) -> Any:
    return {"role": "assistant", "content": text}


def facts(answer: Any) -> dict[str, Any]:
    """What Toolcrib adds to an answer or a chunk."""
    return answer.model_extra["toolcrib"]


@pytest.mark.requirement("openai_endpoint.chat", "openai_endpoint.clients")
async def test_an_agent_answers_a_chat() -> None:
    async with endpoint(turn(("look", "hat"), text="I look."), "It is here.") as served:
        raw = await served.client.chat.completions.with_raw_response.create(
            model="clerk", messages=[user("Where is the hat?")], temperature=0, seed=7, user="u1", max_tokens=5
        )
        answer = raw.parse()
        response = await served.server.crib.executions.respond(facts(answer)["run_id"])
    [choice] = answer.choices
    assert (choice.finish_reason, choice.message.role, choice.message.content) == ("stop", "assistant", "It is here.")
    assert choice.message.tool_calls is None
    assert (answer.object, answer.model) == ("chat.completion", "clerk")
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == response.usage.input_tokens > 0
    assert answer.usage.total_tokens == response.usage.total_tokens == response.tokens
    assert raw.headers["x-toolcrib-run-id"] == response.run_id
    assert answer.id == f"chatcmpl-{response.run_id.removeprefix('run_')}"
    assert facts(answer) == {
        "run_id": response.run_id,
        "agent": "clerk@1.0.0",
        "conversation_id": None,
        "status": "completed",
        "stop_reason": "final_answer",
        "tokens": response.tokens,
        "cost_usd": 0.0,
        "cost_unknown": False,
        "warnings": [],
    }
    assert served.desk.done == [("look", "hat")]


@pytest.mark.requirement("openai_endpoint.clients", "openai_endpoint.streaming")
async def test_the_client_without_asyncio_works_too() -> None:
    def ask(base_url: str) -> tuple[str | None, str]:
        with OpenAI(base_url=base_url, api_key="owner") as client:
            whole = client.chat.completions.create(model="clerk", messages=[user("Hello")])
            stream = client.chat.completions.create(model="clerk", messages=[user("Hello")], stream=True)
            pieces = [chunk.choices[0].delta.content or "" for chunk in stream]
            return whole.choices[0].message.content, "".join(pieces)

    async with endpoint("Good day.", "Good day.") as served:
        assert await asyncio.to_thread(ask, served.base_url) == ("Good day.", "Good day.")


@pytest.mark.requirement("openai_endpoint.chat", "openai_endpoint.system")
async def test_earlier_messages_are_context_and_those_of_the_system_never_reach_the_prompt() -> None:
    messages: Any = [
        {"role": "system", "content": "Talk like a pirate."},
        user("I am Ann."),
        said("Hello Ann."),
        {"role": "developer", "content": [{"type": "text", "text": "Be rude."}]},
        user("Who am I?"),
    ]
    async with endpoint("Ann.") as served:
        await served.client.chat.completions.create(model="clerk", messages=messages)
        [request] = served.model.requests
        conversations = (await served.server.get("/ai/conversations"))["items"]
    shown, _, message = request.messages[-1].text.removeprefix("Context:\n").rpartition("\n\n")
    assert message == "Who am I?"
    assert json.loads(shown) == {
        "client_instructions": "Talk like a pirate.\n\nBe rude.",
        "earlier_messages": [{"role": "user", "text": "I am Ann."}, {"role": "assistant", "text": "Hello Ann."}],
    }
    assert PROMPT in request.system
    assert "pirate" not in request.system
    assert conversations == []


@pytest.mark.requirement("openai_endpoint.streaming")
async def test_a_stream_has_what_is_said_before_calls_and_the_answer_and_usage_if_it_is_wanted() -> None:
    async with endpoint(turn(("look", "hat"), text="I look."), "It is here.") as served:
        stream = await served.client.chat.completions.create(
            model="clerk", messages=[user("Where?")], stream=True, stream_options={"include_usage": True}
        )
        *chunks, end, usage = [chunk async for chunk in stream]
        response = await served.server.crib.executions.respond(facts(end)["run_id"])
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "I look.\n\nIt is here."
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in (*chunks, end)] == [None] * len(chunks) + ["stop"]
    assert (usage.choices, usage.usage and usage.usage.total_tokens) == ([], response.usage.total_tokens)
    assert len({chunk.id for chunk in (*chunks, end, usage)}) == 1
    assert facts(end)["status"] == "completed"


@pytest.mark.requirement("openai_endpoint.streaming")
async def test_text_is_sent_while_the_model_still_speaks() -> None:
    gate = asyncio.Event()

    class SlowModel(ScriptedModel):
        async def stream(self, request: Request) -> AsyncGenerator[Event]:
            first = True
            async for event in super().stream(request):
                yield event
                if first:
                    await gate.wait()
                first = False

    async with endpoint(model=SlowModel(["one two three"])) as served:
        stream = await served.client.chat.completions.create(model="clerk", messages=[user("Count")], stream=True)
        pieces: list[str] = []
        async for chunk in stream:
            pieces.append(chunk.choices[0].delta.content or "")
            if pieces[-1]:
                gate.set()
    assert "".join(pieces) == "one two three"
    assert len([piece for piece in pieces if piece]) > 1


@pytest.mark.requirement("openai_endpoint.streaming")
async def test_a_stream_is_made_of_data_lines_and_ends_with_done() -> None:
    async with endpoint("Yes.") as served:
        body = {"model": "clerk", "messages": [user("Well?")], "stream": True}
        response = await served.server.client.post("/v1/chat/completions", json=body)
    lines = [line for line in response.text.split("\n\n") if line and not line.startswith(":")]
    assert response.headers["content-type"].startswith("text/event-stream")
    assert all(line.startswith("data: ") for line in lines)
    assert lines[-1] == "data: [DONE]"
    assert all("usage" not in json.loads(line.removeprefix("data: ")) for line in lines[:-1])


@pytest.mark.requirement("openai_endpoint.streaming", "openai_endpoint.responses")
async def test_an_answer_that_a_limit_ended_says_so_in_each_form() -> None:
    limited = agent(limits=Limits(max_iterations=1))
    answers = [turn(("look", "hat"), text="I look."), "Perhaps here."]
    async with endpoint(*answers * 4, definition=limited) as served:
        create = served.client.chat.completions.create
        whole = await create(model="clerk", messages=[user("Where?")])
        chunks = [chunk async for chunk in await create(model="clerk", messages=[user("Where?")], stream=True)]
        response = await served.client.responses.create(model="clerk", input="Where?")
        async with served.client.responses.stream(model="clerk", input="Where?") as stream:
            kinds = [event.type async for event in stream]
    text = whole.choices[0].message.content or ""
    assert whole.choices[0].finish_reason == chunks[-1].choices[0].finish_reason == "length"
    assert text.startswith("Perhaps here.\n\nThe run ended early: limit max_iterations is 1")
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == f"I look.\n\n{text}"
    assert (response.status, response.output_text) == ("incomplete", text)
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"
    assert kinds[-1] == "response.incomplete"


@pytest.mark.requirement("openai_endpoint.streaming", "openai_endpoint.errors")
async def test_a_stream_ends_with_the_error_of_a_run_that_fails_after_it_has_spoken() -> None:
    heard = asyncio.Event()

    class FailingModel(ScriptedModel):
        async def stream(self, request: Request) -> AsyncGenerator[Event]:
            if len(request.messages) > 1:
                await heard.wait()
            async for event in super().stream(request):
                yield event

    look, down = turn(("look", "hat"), text="I look."), ModelError("auth", "the model is down")
    async with endpoint(model=FailingModel([look, down, look, down])) as served:
        said_before: list[str] = []
        chunks = await served.client.chat.completions.create(model="clerk", messages=[user("Where?")], stream=True)

        async def listen() -> None:
            async for chunk in chunks:
                said_before.append(chunk.choices[0].delta.content or "")
                if said_before[-1]:
                    heard.set()

        with pytest.raises(openai.APIError, match="the model is down"):
            await listen()
        stream = await served.client.responses.create(model="clerk", input="Where?", stream=True)
        last = [event async for event in stream][-1]
    assert "".join(said_before) == "I look."
    assert last.type == "response.failed"
    assert last.response.error is not None
    assert "the model is down" in last.response.error.message


@pytest.mark.requirement("openai_endpoint.formats")
async def test_an_agent_with_a_schema_answers_in_json_whole_in_a_stream_too() -> None:
    schema = {"type": "object", "properties": {"hats": {"type": "integer"}}, "required": ["hats"]}
    structured = agent(tools=(), response_format="structured", response_schema=schema)
    wanted: Any = {"type": "json_schema", "json_schema": {"name": "Hats", "schema": schema}}
    async with endpoint(*(['{"hats": 3}'] * 3), definition=structured) as served:
        create = served.client.chat.completions.create
        whole = await create(model="clerk", messages=[user("How many?")], response_format=wanted)
        stream = await create(model="clerk", messages=[user("How many?")], stream=True, response_format=wanted)
        streamed = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
        response = await served.client.responses.create(model="clerk", input="How many?")
    assert json.loads(whole.choices[0].message.content or "") == {"hats": 3}
    assert json.loads(streamed) == {"hats": 3}
    assert json.loads(response.output_text) == {"hats": 3}


@pytest.mark.requirement("openai_endpoint.clients")
async def test_an_agent_of_pydantic_ai_has_the_agent_as_its_model() -> None:
    async with endpoint("The hat is here.") as served:
        provider = OpenAIProvider(openai_client=served.client)
        answer = await Agent(OpenAIChatModel("clerk", provider=provider)).run("Where is the hat?")
    assert answer.output == "The hat is here."
    assert answer.usage.input_tokens > 0


@pytest.mark.requirement("openai_endpoint.clients", "docs.snippets")
async def test_the_python_of_the_page_asks_an_agent() -> None:
    [snippet] = snippets("openai-endpoint")
    names: dict[str, Any] = {}
    await run(snippet, names)
    async with endpoint("Two.", definition=agent("desk")) as served:
        assert await asyncio.to_thread(names["ask"], served.base_url, "owner") == "Two."
