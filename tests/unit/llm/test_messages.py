"""Neutral messages, and the bytes in which they are stored."""

from typing import Any

import pytest

from toolcrib.contracts.base.errors import InvalidInput
from toolcrib.llm import (
    Message,
    Opaque,
    Response,
    Text,
    Thinking,
    TokenUsage,
    Tool,
    ToolCall,
    ToolResult,
    ToolSet,
    assistant,
    decode_messages,
    decode_response,
    encode_messages,
    encode_response,
    user,
)

EVERYTHING = (
    user("Grüße"),
    Message(
        "assistant",
        (
            Thinking("hm", "sig", "rs_1", redacted=False, origin="anthropic"),
            Text("I look."),
            Opaque("anthropic", '{"a": 1e5, "b":18446744073709551616}', "seen"),
            ToolCall("c1", "look", '{"x": 1.0', "sealed"),
        ),
    ),
    Message("user", (ToolResult("c1", "look", "no", is_error=True),)),
)
STORED_BY_VERSION_1 = (
    b'{"schema_version":1,"messages":[{"role":"user","parts":[{"type":"text","text":"Gr\xc3\xbc\xc3\x9fe"}]},'
    b'{"role":"assistant","parts":[{"type":"thinking","text":"hm","signature":"sig","id":"rs_1","origin":"anthropic"},'
    b'{"type":"text","text":"I look."},{"type":"opaque","origin":"anthropic",'
    b'"raw":"{\\"a\\": 1e5, \\"b\\":18446744073709551616}","text":"seen"},'
    b'{"type":"tool_call","id":"c1","name":"look","args":"{\\"x\\": 1.0","signature":"sealed"}]},'
    b'{"role":"user","parts":[{"type":"tool_result","id":"c1","name":"look","text":"no","is_error":true}]}]}'
)


def tool(name: str = "look") -> Tool:
    return Tool(name, "Looks.", {"type": "object", "properties": {}})


@pytest.mark.requirement("llm.journal_format")
def test_the_stored_bytes_of_version_1_are_fixed():
    assert encode_messages(EVERYTHING) == STORED_BY_VERSION_1
    assert decode_messages(STORED_BY_VERSION_1) == EVERYTHING


@pytest.mark.requirement("llm.journal_format")
def test_a_response_comes_back_as_it_was_stored():
    response = Response(EVERYTHING[1], "tool_calls", "tool_use", TokenUsage(9, 8, 7, 6, 5, estimated=True), "m", "id")

    assert decode_response(encode_response(response)) == response
    assert decode_response(encode_response(response).decode()) == response


@pytest.mark.requirement("llm.journal_format")
@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (b'{"schema_version":2,"messages":[]}', "have schema_version 2, this release reads 1"),
        (b'{"schema_version":9,"messages":{"new":"shape"}}', "have schema_version 9"),
        (b'{"schema_version":1,"messages":7}', "are damaged"),
        (b'{"messages":[]}', "have schema_version 0"),
        (b"{", "are damaged"),
    ],
)
def test_stored_bytes_that_this_release_cannot_read_are_refused(stored: bytes, message: str):
    with pytest.raises(InvalidInput, match=message):
        decode_messages(stored)


@pytest.mark.requirement("llm.neutral_messages")
def test_a_message_tells_its_text_and_its_calls():
    assert EVERYTHING[1].text == "I look.seen"
    assert EVERYTHING[1].calls == (ToolCall("c1", "look", '{"x": 1.0', "sealed"),)
    assert assistant("x") == Message("assistant", (Text("x"),))


@pytest.mark.requirement("llm.neutral_messages")
def test_usage_adds_up_and_stays_marked_as_estimated():
    assert TokenUsage(1, 2, 3, 4, 5) + TokenUsage(10, 20, 30, 40, 50, estimated=True) == TokenUsage(
        11, 22, 33, 44, 55, estimated=True
    )


@pytest.mark.requirement("llm.neutral_messages")
def test_tool_sets_of_equal_tools_are_equal_and_later_changes_do_not_reach_them():
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    tools = ToolSet([Tool("look", "Looks.", schema)])
    schema["properties"] = {"x": {}}

    assert tools == ToolSet((tool(),))
    assert hash(tools) == hash(ToolSet([tool()]))
    assert tools != ToolSet([tool("see")])
    assert tools != "look"
    assert (len(tools), bool(ToolSet()), repr(tools)) == (1, False, "ToolSet(look)")
    assert tools.size > 50


@pytest.mark.requirement("llm.neutral_messages")
def test_a_tool_set_refuses_two_tools_of_one_name():
    with pytest.raises(InvalidInput, match="two tools named 'look'"):
        ToolSet([tool(), tool()])
