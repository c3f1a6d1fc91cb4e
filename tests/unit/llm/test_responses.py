"""The OpenAI Responses wire: what is sent."""

import json
from typing import Any

import orjson
import pytest

from tests.unit.llm.responses_items import CALL, ORIGIN, REASONING, SEARCH, message, parsed, said
from toolcrib.llm import (
    Message,
    NamedTool,
    Opaque,
    Quirks,
    Reasoning,
    Request,
    ResponsesWire,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    ToolSet,
    assistant,
    resolve,
    user,
)

pytestmark = pytest.mark.requirement("llm.responses_requests")

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
STRICT = Quirks(strict="openai", strict_tools=True, penalties=False)


def body_of(request: Request, quirks: Quirks = STRICT, *, stream: bool = False) -> dict[str, Any]:
    path, body = ResponsesWire().build(request, quirks, stream=stream)
    assert path == "/responses"
    return json.loads(orjson.dumps(body))


def ask(*messages: Message, **settings: Any) -> Request:
    return Request(model="m", messages=messages or (user("hi"),), **settings)


def input_of(*messages: Message) -> list[Any]:
    return body_of(ask(*messages))["input"]


def test_nothing_is_stored_at_the_provider():
    assert body_of(ask()) == {"model": "m", "input": [{"role": "user", "content": "hi"}], "store": False}


def test_settings_are_rendered_as_the_api_takes_them():
    request = ask(
        system="Be brief.",
        max_tokens=99,
        temperature=0.5,
        top_p=0.9,
        frequency_penalty=0.1,
        reasoning=Reasoning("low"),
        extra={"service_tier": "flex"},
    )

    body = body_of(request, stream=True)

    assert body["instructions"] == "Be brief."
    assert (body["max_output_tokens"], body["temperature"], body["top_p"]) == (99, 0.5, 0.9)
    assert body["reasoning"] == {"effort": "low"}
    assert body["service_tier"] == "flex"
    assert body["stream"] is True
    assert "frequency_penalty" not in body
    assert STRICT.settings_to_drop(request) == ("frequency_penalty",)


def test_a_budget_for_reasoning_has_no_field():
    assert "reasoning" not in body_of(ask(reasoning=Reasoning(budget_tokens=5)))


@pytest.mark.parametrize(
    ("model", "encrypted", "sampling"),
    [
        ("gpt-4o", False, True),
        ("gpt-5.4-mini", True, False),
        ("openai.gpt-5.6-luna", True, False),
        ("gpt-5-chat-latest", False, True),
        ("o4-mini", True, False),
        ("openai/gpt-oss-20b", False, True),
    ],
)
def test_reasoning_models_are_asked_for_their_encrypted_reasoning(model: str, encrypted: bool, sampling: bool):
    quirks = resolve(f"openai-responses:{model}").quirks
    body = body_of(ask(temperature=0.2), quirks)

    assert body.get("include") == (["reasoning.encrypted_content"] if encrypted else None)
    assert ("temperature" in body) is sampling


def test_tools_say_whether_they_are_strict():
    loose = {"type": "object", "properties": {"a": {"type": "string"}}}
    request = ask(tools=ToolSet([Tool("look", "Looks.", SCHEMA), Tool("touch", "", loose)]))

    assert body_of(request)["tools"] == [
        {"type": "function", "name": "look", "description": "Looks.", "parameters": SCHEMA, "strict": True},
        {"type": "function", "name": "touch", "description": "", "parameters": loose, "strict": False},
    ]
    assert body_of(request, Quirks())["tools"][0]["strict"] is False


@pytest.mark.parametrize(
    ("choice", "rendered"),
    [
        ("auto", None),
        ("none", "none"),
        ("required", "required"),
        (NamedTool("look"), {"type": "function", "name": "look"}),
    ],
)
def test_tool_choices(choice: Any, rendered: Any):
    body = body_of(ask(tools=ToolSet([Tool("look", "", SCHEMA)]), tool_choice=choice))

    assert body.get("tool_choice") == rendered


def test_one_call_at_a_time_is_asked_for_where_the_model_knows_it():
    request = ask(tools=ToolSet([Tool("look", "", SCHEMA)]), parallel_tool_calls=False)

    assert body_of(request, Quirks())["parallel_tool_calls"] is False
    assert "parallel_tool_calls" not in body_of(request, Quirks(sampling=False))


def test_a_schema_of_the_answer_is_enforced_as_far_as_the_endpoint_can():
    loose = {"type": "object", "properties": {"a": {"type": "string"}}}

    def wanted(quirks: Quirks, schema: Any = SCHEMA) -> Any:
        return body_of(ask(output_schema=schema), quirks).get("text")

    named = {"type": "json_schema", "name": "answer"}
    assert wanted(STRICT) == {"format": {**named, "schema": SCHEMA, "strict": True}}
    assert wanted(STRICT, loose) == {"format": {**named, "schema": loose, "strict": False}}
    assert wanted(Quirks()) == {"format": {**named, "schema": SCHEMA, "strict": False}}
    assert wanted(Quirks(structured="json_object")) == {"format": {"type": "json_object"}}
    assert wanted(Quirks(structured="prompt")) is None


def test_a_history_of_other_providers_is_items():
    history = (
        user("Look."),
        Message(
            "assistant",
            (
                Text("I look."),
                Text(""),
                Thinking("hm", "sig", origin="anthropic"),
                Opaque("anthropic", "{}", "cited"),
                Opaque("anthropic", "{}"),
                ToolCall("c1", "look", "{}", '{"google":{"thoughtSignature":"x"}}'),
            ),
        ),
        Message("user", (ToolResult("c1", "look", "seen"), Text("Go on."))),
    )

    assert input_of(*history) == [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": "I look."},
        {"role": "assistant", "content": "cited"},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "seen"},
        {"role": "user", "content": "Go on."},
    ]


def test_its_own_answers_go_back_item_by_item_as_they_came():
    items = [REASONING, message(said("I look."), phase="commentary", status="completed"), SEARCH, CALL]

    assert input_of(parsed(*items).message) == items


def test_reasoning_that_was_not_encrypted_is_not_sent_back():
    bare: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": []}
    open_: dict[str, Any] = {
        "type": "reasoning",
        "id": "rs_2",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "hm"}],
    }

    assert input_of(parsed(bare, open_).message) == [open_]
    assert input_of(Message("assistant", (Thinking("hm", origin=ORIGIN),))) == []


def test_an_assistant_s_own_words_are_an_easy_message():
    assert input_of(assistant("Hello.")) == [{"role": "assistant", "content": "Hello."}]
