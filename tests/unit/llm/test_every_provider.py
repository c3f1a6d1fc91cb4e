"""What must hold at every provider of the catalogue: structured answers, and what a model wants back between turns."""

import json
from typing import Any

import orjson
import pytest

from toolcrib.llm import (
    PROVIDERS,
    Endpoint,
    Message,
    Reasoning,
    Request,
    Response,
    Tool,
    ToolResult,
    ToolSet,
    decode_response,
    encode_response,
    resolve,
    user,
)
from toolcrib.llm.base.structured import StructuredAnswer

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
LOOK = ToolSet([Tool("look", "Looks.", SCHEMA)])
SURROUNDINGS = {
    "ANTHROPIC_FOUNDRY_RESOURCE": "r",
    "AWS_REGION": "eu-west-1",
    "AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com",
    "GOOGLE_CLOUD_PROJECT": "p",
}


def at(reference: str) -> Endpoint:
    base_url = "https://models.example.com/v1" if reference.startswith("openai-compatible:") else None
    return resolve(reference, base_url=base_url, environment=SURROUNDINGS)


def body_of(endpoint: Endpoint, request: Request) -> dict[str, Any]:
    answer = StructuredAnswer(request, endpoint.quirks)
    _, body = endpoint.wire.build(answer.request, endpoint.quirks, stream=False)
    return json.loads(orjson.dumps(body))


def how(body: dict[str, Any]) -> str:
    """By which means a body asks for an answer that follows a schema."""
    found: dict[str, Any] = {
        "chat json_schema": body.get("response_format", {}).get("json_schema"),
        "chat json_object": body.get("response_format", {}).get("type") == "json_object",
        "responses json_schema": body.get("text", {}).get("format", {}).get("type") == "json_schema",
        "anthropic json_schema": body.get("output_config", {}).get("format"),
        "gemini json_schema": body.get("generationConfig", {}).get("responseJsonSchema"),
        "tool": "Give your final answer by calling the tool `answer`" in json.dumps(body),
    }
    (means,) = [name for name, present in found.items() if present]
    return means


STRUCTURED: dict[str, tuple[str, str]] = {
    "anthropic-sdk:claude-sonnet-4-5": ("anthropic json_schema", "anthropic json_schema"),
    "anthropic:claude-3-5-haiku-latest": ("tool", "tool"),
    "anthropic:claude-sonnet-4-5": ("anthropic json_schema", "anthropic json_schema"),
    "azure-openai:gpt-4o": ("chat json_schema", "chat json_schema"),
    "bedrock-anthropic:eu.anthropic.claude-sonnet-4-5-20250929-v1:0": (
        "anthropic json_schema",
        "anthropic json_schema",
    ),
    "deepseek:deepseek-chat": ("chat json_object", "chat json_object"),
    "foundry-anthropic:claude-sonnet-4-5": ("tool", "tool"),
    "google:gemini-2.5-flash": ("gemini json_schema", "tool"),
    "google:gemini-3-flash-preview": ("gemini json_schema", "gemini json_schema"),
    "groq:llama-3.3-70b-versatile": ("chat json_object", "chat json_object"),
    "groq:openai/gpt-oss-120b": ("chat json_schema", "chat json_schema"),
    "local:qwen2.5-coder-1.5b": ("chat json_schema", "chat json_schema"),
    "llamacpp:m": ("chat json_schema", "chat json_schema"),
    "mistral:mistral-large-latest": ("chat json_schema", "chat json_schema"),
    "ollama:llama3.2:3b": ("chat json_schema", "chat json_schema"),
    "openai-compatible:m": ("chat json_schema", "chat json_schema"),
    "openai-responses:gpt-5.4-mini": ("responses json_schema", "responses json_schema"),
    "openai-sdk:gpt-4o": ("chat json_schema", "chat json_schema"),
    "openai:gpt-4": ("tool", "tool"),
    "openai:gpt-4o": ("chat json_schema", "chat json_schema"),
    "openrouter:openai/gpt-5": ("chat json_schema", "chat json_schema"),
    "vertex-anthropic:claude-sonnet-4-5@20250929": ("tool", "tool"),
    "vertex-google:gemini-3-flash-preview": ("gemini json_schema", "gemini json_schema"),
    "vllm:m": ("chat json_schema", "chat json_schema"),
}
"""By model: the means without tools and with tools."""


@pytest.mark.requirement("llm.structured_output")
def test_the_table_of_structured_answers_names_every_provider():
    assert {reference.partition(":")[0] for reference in STRUCTURED} == set(PROVIDERS)


@pytest.mark.requirement("llm.structured_output")
@pytest.mark.parametrize("reference", STRUCTURED)
def test_an_output_schema_is_sent_in_the_strongest_form_that_the_model_takes(reference: str):
    alone = Request(model="m", messages=(user("where?"),), output_schema=SCHEMA)
    with_tools = Request(model="m", messages=(user("where?"),), output_schema=SCHEMA, tools=LOOK)
    bodies = [body_of(at(reference), request) for request in (alone, with_tools)]

    assert (how(bodies[0]), how(bodies[1])) == STRUCTURED[reference]
    if STRUCTURED[reference][0] != "chat json_object":
        assert json.dumps(SCHEMA["properties"]) in json.dumps(bodies[0])


THOUGHT, SEAL, HIDDEN, NEWS = "I should look.", "c2VhbA==", "aGlkZGVu", "a new kind of block"
ANSWERS: dict[str, Any] = {
    "anthropic:claude-sonnet-4-5": {
        "id": "i",
        "content": [
            {"type": "thinking", "thinking": THOUGHT, "signature": SEAL},
            {"type": "redacted_thinking", "data": HIDDEN},
            {"type": "new_block", "note": NEWS},
            {"type": "tool_use", "id": "c1", "name": "look", "input": {"city": "Oslo"}},
        ],
        "stop_reason": "tool_use",
    },
    "google:gemini-3-flash-preview": {
        "responseId": "i",
        "candidates": [
            {
                "content": {
                    "parts": [
                        {"text": THOUGHT, "thought": True},
                        {"executableCode": {"code": NEWS}},
                        {"text": "", "thoughtSignature": HIDDEN},
                        {
                            "functionCall": {"id": "c1", "name": "look", "args": {"city": "Oslo"}},
                            "thoughtSignature": SEAL,
                        },
                    ]
                },
                "finishReason": "STOP",
            }
        ],
    },
    "openai-responses:gpt-5.4-mini": {
        "id": "i",
        "status": "completed",
        "output": [
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": THOUGHT}],
                "encrypted_content": SEAL,
            },
            {"type": "new_item", "id": HIDDEN, "note": NEWS},
            {"type": "function_call", "id": "fc", "call_id": "c1", "name": "look", "arguments": '{"city": "Oslo"}'},
        ],
    },
    "openrouter:openai/gpt-5": {
        "id": "i",
        "choices": [
            {
                "message": {
                    "content": None,
                    "reasoning": THOUGHT,
                    "reasoning_details": [{"type": "reasoning.encrypted", "data": SEAL, "id": HIDDEN, "format": NEWS}],
                    "tool_calls": [{"id": "c1", "function": {"name": "look", "arguments": '{"city": "Oslo"}'}}],
                },
                "finish_reason": "tool_calls",
            }
        ],
    },
}
MARKS = (THOUGHT, SEAL, HIDDEN, NEWS)


def answer_of(reference: str) -> Response:
    """The answer as it comes back from the journal."""
    return decode_response(encode_response(at(reference).wire.parse(json.dumps(ANSWERS[reference]).encode())))


def next_body(reference: str, answer: Response) -> str:
    """The body of the turn after the answer, at some provider."""
    result = Message("user", (ToolResult("c1", "look", "sunny"),))
    request = Request(
        model="m", messages=(user("where?"), answer.message, result), tools=LOOK, reasoning=Reasoning("low")
    )
    return json.dumps(body_of(at(reference), request), ensure_ascii=False)


@pytest.mark.requirement("llm.nothing_lost")
@pytest.mark.parametrize("reference", ANSWERS)
def test_reasoning_signatures_and_unknown_parts_go_back_to_who_made_them(reference: str):
    answer = answer_of(reference)
    body = next_body(reference, answer)

    assert [mark for mark in MARKS if mark not in body] == []
    assert [call.name for call in answer.message.calls] == ["look"]


@pytest.mark.requirement("llm.nothing_lost")
@pytest.mark.parametrize("reference", ANSWERS)
@pytest.mark.parametrize("elsewhere", STRUCTURED)
def test_they_are_shown_to_nobody_else_while_calls_and_results_are(reference: str, elsewhere: str):
    if elsewhere.partition(":")[0] == reference.partition(":")[0]:
        elsewhere = "openai:gpt-4o"
    body = next_body(elsewhere, answer_of(reference))

    assert [mark for mark in MARKS if mark in body] == []
    assert [said for said in ("Oslo", "sunny", "c1") if said not in body] == []
