"""Tool calls of models that only obey a schema, over a transport in memory."""

from typing import Any

import pytest

from tests.unit.llm.test_structured import MemoryTransport
from toolcrib.core.registry import compile_schema
from toolcrib.llm import (
    CallDelta,
    CallEnd,
    CallStart,
    ChatWire,
    Done,
    Endpoint,
    Event,
    Message,
    Model,
    NamedTool,
    Quirks,
    Request,
    Text,
    TextChunk,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    ToolSet,
    UsageUpdate,
    assistant,
    user,
)

pytestmark = pytest.mark.requirement("llm.tools_by_schema")

STAGES: dict[str, Any] = {"enum": ["lead", "won"]}
SEARCH = Tool(
    "search",
    "Deals by\ncompany.",
    {"type": "object", "properties": {"company": {"type": "string"}}, "required": ["company"]},
)
UPDATE = Tool(
    "update",
    "Changes deals.",
    {
        "type": "object",
        "properties": {"stage": {"$ref": "#/$defs/Stage"}, "again": {"$ref": "#/properties/stage"}},
        "required": ["stage"],
        "$defs": {"Stage": STAGES},
    },
)
TOOLS = ToolSet([SEARCH, UPDATE])
ASK = Request(messages=(user("Win Acme."),), tools=TOOLS, system="Be brief.")
CALLS = '{"calls": [{"name": "search", "arguments": {"company": "Acme"}}, {"name": "update", "arguments": {}}]}'
CALLED = (ToolCall("call_1_0", "search", '{"company": "Acme"}'), ToolCall("call_1_1", "update", "{}"))


def model(transport: MemoryTransport, **quirks: Any) -> Model:
    return Model(
        Endpoint(
            provider="x",
            model="m",
            base_url="http://x",
            wire=ChatWire("x"),
            quirks=Quirks(tool_calling="schema", **quirks),
            key_required=False,
        ),
        transport,
    )


def answering(text: str, finish: str = "stop") -> MemoryTransport:
    pieces = [text[start : start + 3] for start in range(0, len(text), 3)]
    chunks = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
    end: dict[str, Any] = {"choices": [{"delta": {}, "finish_reason": finish}], "usage": {"prompt_tokens": 1}}
    whole = {"choices": [{"message": {"content": text}, "finish_reason": finish}]}
    return MemoryTransport(whole, *chunks, end)


async def answered(text: str, request: Request = ASK, finish: str = "stop") -> tuple[Message, str]:
    """The answer, which must be the same whole and streamed."""
    whole = await model(answering(text, finish)).request(request)
    events = [event async for event in model(answering(text, finish)).stream(request)]
    done = events[-1]
    assert isinstance(done, Done)
    assert (done.response.message, done.response.stop) == (whole.message, whole.stop)
    assert "".join(event.text for event in events if isinstance(event, TextChunk)) == whole.message.text
    return whole.message, whole.stop


async def sent_for(request: Request, **quirks: Any) -> dict[str, Any]:
    transport = answering("{}")
    await model(transport, **quirks).request(request)
    return transport.sent


def schema_in(sent: dict[str, Any]) -> dict[str, Any]:
    return sent["response_format"]["json_schema"]["schema"]


def is_valid(sent: dict[str, Any], answer: Any) -> bool:
    return not compile_schema(schema_in(sent)).problems(answer)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}


async def test_tools_become_a_schema_and_a_short_prompt():
    sent = await sent_for(ASK)

    assert "tools" not in sent
    assert sent["messages"][0]["content"] == (
        "Be brief.\n\n"
        "Tools:\n"
        "- search({company: string}): Deals by company.\n"
        '- update({stage: "lead" | "won", again?: "lead" | "won"}): Changes deals.\n'
        'To use tools answer {"calls": [{"name": "...", "arguments": {...}}]}; several calls only if none needs the '
        'result of another. When you are done answer {"answer": string}.'
    )


@pytest.mark.parametrize(
    ("answer", "fits"),
    [
        (call("search", company="Acme"), True),
        (call("update", stage="won", again="lead"), True),
        (call("update", stage="won", again="lost"), False),
        (call("update", stage="lost"), False),
        (call("search"), False),
        (call("delete"), False),
        ({"calls": []}, False),
        ({"answer": "Done."}, True),
        ({"answer": 3}, False),
        ({}, False),
    ],
)
async def test_the_schema_admits_the_offered_calls_and_an_answer(answer: Any, fits: bool):
    assert is_valid(await sent_for(ASK), answer) is fits


async def test_the_answer_follows_the_request_s_own_schema():
    wanted: dict[str, Any] = {
        "type": "object",
        "properties": {"n": {"$ref": "#/$defs/N"}},
        "$defs": {"N": {"type": "integer"}},
    }
    request = Request(messages=ASK.messages, tools=TOOLS, output_schema=wanted)
    sent = await sent_for(request)

    assert is_valid(sent, {"answer": {"n": 1}})
    assert not is_valid(sent, {"answer": {"n": "one"}})
    assert not is_valid(sent, {"answer": "one"})
    assert 'answer {"answer": {n?: integer}}' in sent["messages"][0]["content"]
    assert await answered('{"answer": {"n": 1}}', request) == (assistant('{"n": 1}'), "end")


async def test_a_required_or_named_tool_leaves_no_other_way():
    required = await sent_for(Request(messages=ASK.messages, tools=TOOLS, tool_choice="required"))
    named = await sent_for(Request(messages=ASK.messages, tools=TOOLS, tool_choice=NamedTool("search")), schema_calls=1)

    assert is_valid(required, call("update", stage="won"))
    assert not is_valid(required, {"answer": "no"})
    assert is_valid(named, call("search", company="Acme"))
    assert not is_valid(named, call("update", stage="won"))
    assert not is_valid(named, {"calls": call("search", company="A")["calls"] * 2})
    assert named["messages"][0]["content"].endswith('[{"name": "...", "arguments": {...}}]}.')


async def test_without_tools_only_the_history_is_rewritten():
    request = Request(messages=(assistant("Done."), user("Why?")), tools=TOOLS, tool_choice="none")
    sent = await sent_for(request)

    assert "response_format" not in sent
    assert sent["messages"] == [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "Why?"}]


async def test_earlier_calls_results_and_answers_are_text():
    messages = (
        Message(
            "assistant", (Thinking("hm"), ToolCall("a", "search", '{"company": "A"}'), ToolCall("b", "search", "{oops"))
        ),
        Message("user", (ToolResult("a", "search", "[7]"), ToolResult("b", "search", "no JSON", is_error=True))),
        Message("assistant", (ToolCall("c", "update", ""),)),
        Message("user", (ToolResult("c", "update", "ok"), Text("Go on."))),
        assistant("Done."),
        user("And Globex?"),
    )
    sent = await sent_for(Request(messages=messages, tools=TOOLS))

    assert [message["content"] for message in sent["messages"][1:]] == [
        '{"calls":[{"name":"search","arguments":{"company": "A"}},{"name":"search","arguments":"{oops"}]}',
        "search returned: [7]\n\nsearch failed: no JSON",
        '{"calls":[{"name":"update","arguments":{}}]}',
        "update returned: ok\n\nGo on.",
        '{"answer":"Done."}',
        "And Globex?",
    ]


async def test_where_only_a_prompt_is_left_it_states_the_schema_too():
    sent = await sent_for(ASK, structured="prompt")

    assert "response_format" not in sent
    assert "Answer with one JSON value and nothing else. Its JSON Schema" in sent["messages"][0]["content"]


async def test_calls_are_read_back_as_native_ones():
    assert await answered(CALLS) == (Message("assistant", CALLED), "tool_calls")
    assert await answered(f"```json\n{CALLS}\n```") == (Message("assistant", CALLED), "tool_calls")


async def test_streamed_calls_are_told_before_the_end():
    events: list[Event] = [event async for event in model(answering(CALLS)).stream(ASK)]

    told = [event for event in events if not isinstance(event, UsageUpdate | Done)]
    assert told[:3] == [CallStart(0, "call_1_0", "search"), CallDelta(0, CALLED[0].args), CallEnd(0, CALLED[0])]
    assert told[3:] == [CallStart(1, "call_1_1", "update"), CallDelta(1, "{}"), CallEnd(1, CALLED[1])]


async def test_a_text_is_streamed_as_it_is_written():
    text = '{ "answer": "Caf\\u00e9 \\ud83d\\ude00 \\"Acme\\"\\nwon" }'
    events = [event async for event in model(answering(text)).stream(ASK)]

    deltas = [event.text for event in events if isinstance(event, TextChunk)]
    assert "".join(deltas) == 'Café 😀 "Acme"\nwon'
    assert len(deltas) > 3
    assert await answered(text) == (assistant('Café 😀 "Acme"\nwon'), "end")


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ('{"answer": "We won the de', "We won the de"),
        ('{"answer": "half \\ud83d', "half "),
        ('{"answer": "lone \\ud83d."}', "lone "),
        ('{"calls": [{"name": "sea', '{"calls": [{"name": "sea'),
        ("We won.", "We won."),
        ('{"other": 1}', '{"other": 1}'),
        ('{"calls": [{"arguments": {}}]}', '{"calls": [{"arguments": {}}]}'),
        ('{"answer": null}', "null"),
    ],
)
async def test_what_is_cut_off_or_of_another_form_is_the_answer_as_far_as_it_goes(written: str, text: str):
    assert await answered(written, finish="length") == (assistant(text), "length")


async def test_an_empty_answer_has_no_parts():
    assert await answered('{"answer": ""}') == (Message("assistant", ()), "end")
    assert await answered("") == (Message("assistant", ()), "end")


async def test_a_text_beside_calls_and_shown_reasoning_stay():
    chunk = {"choices": [{"message": {"reasoning": "hm", "content": f'{{"answer": "So.", {CALLS[1:]}'}}]}
    response = await model(MemoryTransport(chunk)).request(ASK)

    assert response.message.parts == (Thinking("hm", origin="x"), Text("So."), *CALLED)
