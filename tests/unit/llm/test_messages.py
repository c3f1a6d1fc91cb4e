"""Neutral messages, and the bytes in which they are stored."""

from hashlib import sha256
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.contracts.base.errors import InvalidInput
from toolcrib.llm import (
    Message,
    Opaque,
    Request,
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
    hash_request,
    user,
)
from toolcrib.llm.base.messages import GrowingHash, GrowingSize
from toolcrib.llm.base.prices import characters_of

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


SCHEMA = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("azä", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("azä", max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.requirement("llm.request_hash")
@given(
    tools=st.lists(st.dictionaries(st.text("azä", max_size=3), SCHEMA, max_size=3), max_size=2),
    schema=st.none() | st.dictionaries(st.text("az"), SCHEMA, max_size=2),
    count=st.integers(0, len(EVERYTHING)),
    temperature=st.none() | st.floats(0, 2),
)
def test_the_hash_of_a_request_is_that_of_its_canonical_json(
    tools: list[dict[str, Any]], schema: dict[str, Any] | None, count: int, temperature: float | None
):
    offered = ToolSet([Tool(f"t{place}", "Looks.", each) for place, each in enumerate(tools)])
    request = Request(
        messages=EVERYTHING[:count], system="ä", tools=offered, output_schema=schema, temperature=temperature
    )
    fields = {**msgspec.structs.asdict(request), "tools": offered.tools, "model": "openai:m"}
    del fields["timeouts"], fields["files"]

    written = msgspec.json.encode(fields, order="deterministic")
    hashes = {hash_request("openai:m", request) for _ in range(2)}

    assert hashes == {"sha256:" + sha256(written).hexdigest()}


MESSAGES = st.sampled_from((*EVERYTHING, assistant("x"), user("")))


@pytest.mark.requirement("llm.measured_once")
@given(conversations=st.lists(st.lists(MESSAGES, max_size=6), max_size=6))
def test_a_conversation_has_the_sizes_of_its_messages_however_it_grows_or_changes(
    conversations: list[list[Message]],
):
    size = GrowingSize(characters_of)

    for messages in conversations:
        assert size.of(tuple(messages)) == sum(map(characters_of, messages))


@pytest.mark.requirement("llm.measured_once")
def test_a_message_is_measured_once_while_its_conversation_grows():
    measured: list[Message] = []
    size = GrowingSize(lambda message: measured.append(message) or 1)
    first, longer = EVERYTHING[:2], (*EVERYTHING, assistant("x"))

    assert [size.of(first), size.of(first), size.of(longer), size.of(longer)] == [2, 2, 4, 4]

    assert measured == list(longer)


SETTINGS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {},
        {"system": "ä"},
        {"system": "ä", "tools": ToolSet([tool()])},
        {"system": "ä", "tools": ToolSet([tool("other")]), "tool_choice": "none"},
        {"max_tokens": 12, "temperature": 0.5, "extra": {"z": 1, "a": [{"y": 2, "b": None}]}},
        {"max_tokens": 13, "output_schema": {"type": "object"}, "output_name": "found"},
    ]
)


@pytest.mark.requirement("llm.request_hash")
@given(requests=st.lists(st.tuples(SETTINGS, st.lists(MESSAGES, max_size=6), st.sampled_from("ab")), max_size=8))
def test_a_conversation_has_the_hashes_of_its_requests_however_it_grows_or_changes(
    requests: list[tuple[dict[str, Any], list[Message], str]],
):
    hashes = GrowingHash()

    for settings, messages, model in requests:
        for count in range(len(messages) + 1):
            request = Request(messages=tuple(messages[:count]), **settings)
            assert hashes.of(model, request) == hash_request(model, request)


@pytest.mark.requirement("llm.request_hash")
def test_a_request_that_cannot_be_written_spoils_no_hash_of_those_after_it():
    hashes, broken = GrowingHash(), user("\ud800")
    for system in ("s", "\ud800"):
        with pytest.raises(UnicodeEncodeError):
            hashes.of("m", Request(messages=(EVERYTHING[0], broken), system=system))
        for count in (1, 2):
            request = Request(messages=EVERYTHING[:count], system="s")
            assert hashes.of("m", request) == hash_request("m", request)
