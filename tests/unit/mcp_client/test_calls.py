"""Calls of an MCP server's tools over HTTP: results, failures, and what each means."""

import asyncio
import base64
from typing import Any

import orjson
import pytest
from aiohttp import web

from tests.unit.mcp_client.server import RpcError, Server, crib_for, running, texts, tool
from toolcrib.contracts import BearerAuth, ErrorCode, Reason, ToolEnvelope

PIXEL = base64.b64encode(b"not really a picture").decode()


async def outcome(result: Any, arguments: dict[str, Any] | None = None, **said: Any) -> ToolEnvelope:
    """The envelope of a call that the server answers with a result, or fails with an error."""

    def answer(_params: dict[str, Any]) -> Any:
        if isinstance(result, Exception):
            raise result
        return result

    server = Server(tools=[tool(**said)], handlers={"tools/call": answer})
    async with running(server), crib_for(server) as crib:
        await crib.imports.mcp(server.url, name="there")
        return await crib.call("look", arguments or {})


@pytest.mark.requirement("mcp_client.call")
async def test_a_call_reaches_the_server_with_its_arguments_and_brings_back_the_text():
    async with running() as server, crib_for(server) as crib:
        await crib.imports.mcp(server.url, name="there")
        envelope = await crib.call("look", what="a thing")
    assert envelope.ok
    assert envelope.output == 'look: {"what":"a thing"}'
    assert [call["name"] for call in server.calls] == ["look"]


@pytest.mark.requirement("mcp_client.sse")
async def test_a_server_of_the_older_transport_is_called_in_the_same_way():
    async with running() as server, crib_for(server) as crib:
        await crib.imports.mcp(server.sse_url, name="there", transport="sse")
        envelope = await crib.call("look", what="a thing")
    assert envelope.output == 'look: {"what":"a thing"}'


@pytest.mark.parametrize(
    ("result", "output"),
    [
        (texts("one"), "one"),
        (texts("one", "two"), ["one", "two"]),
        (texts('{"a": 1}'), {"a": 1}),
        (texts("[1, 2]"), [1, 2]),
        (texts("{no json"), "{no json"),
        ({"content": []}, None),
        ({"content": [{"type": "text", "text": "x"}], "structuredContent": {"a": 1}}, {"a": 1}),
        (
            {"content": [{"type": "resource", "resource": {"uri": "a:b", "mimeType": "text/plain", "text": "t"}}]},
            {"uri": "a:b", "media_type": "text/plain", "content": "t"},
        ),
        ({"content": [{"type": "resource_link", "uri": "a:b", "name": "n"}]}, {"uri": "a:b", "name": "n"}),
    ],
)
@pytest.mark.requirement("mcp_client.results")
async def test_a_result_becomes_its_structured_content_or_else_its_parts(result: Any, output: Any):
    envelope = await outcome(result)
    assert envelope.ok, envelope.error
    assert envelope.output == output


@pytest.mark.parametrize(
    ("part", "kind", "media_type"),
    [
        ({"type": "image", "data": PIXEL, "mimeType": "image/png"}, "image", "image/png"),
        ({"type": "audio", "data": PIXEL, "mimeType": "audio/wav"}, "blob", "audio/wav"),
        ({"type": "resource", "resource": {"uri": "a:b", "blob": PIXEL}}, "blob", "application/octet-stream"),
    ],
)
@pytest.mark.requirement("mcp_client.attachments")
async def test_bytes_become_an_attachment_and_stand_described_in_the_output(
    part: dict[str, Any], kind: str, media_type: str
):
    envelope = await outcome({"content": [part]})
    (kept,) = envelope.attachments
    assert (kept.kind, kept.content_type, kept.bytes) == (kind, media_type, 20)
    assert envelope.output["url"] == kept.url
    assert PIXEL not in str(envelope.output)


@pytest.mark.requirement("mcp_client.attachments")
async def test_bytes_that_are_no_base64_are_left_out_with_a_warning():
    envelope = await outcome({"content": [{"type": "image", "data": "?", "mimeType": "image/png"}]})
    assert envelope.output == {"media_type": "image/png"}
    assert "no base64" in envelope.metadata["warnings"][0]


@pytest.mark.parametrize(
    ("result", "code", "reason"),
    [
        ({**texts("it", "broke"), "isError": True}, ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED),
        (RpcError(-32602, "what is missing"), ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED),
        (RpcError(-32601, "no such method"), ErrorCode.PROVIDER_ERROR, Reason.NOT_FOUND),
        (RpcError(-32603, "a fault"), ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED),
        (RpcError(-32042, "visit https://x"), ErrorCode.AUTH_REQUIRED, Reason.RECONNECT_REQUIRED),
        (RpcError(-32000, "no valid session"), ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED),
        (RpcError(-32001, "no such session"), ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED),
        (RpcError(-32002, "no such resource"), ErrorCode.PROVIDER_ERROR, Reason.NOT_FOUND),
        (RpcError(-32700, "no JSON"), ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE),
        (RpcError(12, "of its own"), ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED),
        ({"content": "text"}, ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE),
        ({"no": "content"}, ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE),
    ],
)
@pytest.mark.requirement("mcp_client.failures")
async def test_every_failure_that_a_server_can_answer_has_its_code(result: Any, code: ErrorCode, reason: Reason):
    envelope = await outcome(result)
    assert envelope.error is not None
    assert (envelope.error.code, envelope.error.reason) == (code, reason)


@pytest.mark.requirement("mcp_client.failures")
async def test_the_words_of_a_failed_tool_are_told_up_to_a_bound():
    envelope = await outcome({**texts("why " * 10_000), "isError": True})
    assert envelope.error is not None
    assert "why why" in envelope.error.message
    assert len(envelope.error.message) < 5_000


@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [
        (401, ErrorCode.AUTH_REQUIRED, Reason.RECONNECT_REQUIRED),
        (403, ErrorCode.AUTH_REQUIRED, Reason.RECONNECT_REQUIRED),
        (408, ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT),
        (429, ErrorCode.RATE_LIMIT, Reason.RATE_LIMITED),
        (500, ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED),
        (400, ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED),
        (307, ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED),
    ],
)
@pytest.mark.requirement("mcp_client.failures")
async def test_every_status_of_a_call_has_its_code(status: int, code: ErrorCode, reason: Reason):
    async with running() as server, crib_for(server) as crib:
        await crib.imports.mcp(server.url, name="there")
        headers = {"location": "http://elsewhere.example/", "retry-after": "7"}
        server.before = lambda _request, message: (
            web.Response(status=status, headers=headers) if message["method"] == "tools/call" else None
        )
        envelope = await crib.call("look")
    assert envelope.error is not None
    assert (envelope.error.code, envelope.error.reason) == (code, reason)
    assert envelope.error.retry_after_s == (7.0 if status in {408, 429, 500} else None)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"jsonrpc": "2.0"}', b"null", b'{"jsonrpc": "2.0", "id": 999, "result": {}}'],
)
@pytest.mark.requirement("mcp_client.failures")
async def test_an_answer_that_is_no_message_of_the_protocol_fails_the_call(body: bytes):
    async with running() as server, crib_for(server) as crib:
        await crib.imports.mcp(server.url, name="there")
        provider = crib.providers.find("default", "there")
        assert provider is not None
        await crib.save_provider(provider.model_copy(update={"timeout_s": 0.2}))
        server.before = lambda _request, message: (
            web.Response(body=body, content_type="application/json") if message["method"] == "tools/call" else None
        )
        envelope = await crib.call("look")
    assert envelope.error is not None
    assert envelope.error.code in {ErrorCode.PROVIDER_ERROR, ErrorCode.TIMEOUT}


@pytest.mark.requirement("mcp_client.bounds")
async def test_a_result_that_is_larger_than_the_policy_allows_fails_the_call():
    envelope = await outcome(texts("x" * 11 * 2**20))
    assert envelope.error is not None
    assert (envelope.error.code, envelope.error.reason) == (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE)


@pytest.mark.requirement("mcp_client.bounds")
@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
async def test_an_answer_of_60_mb_over_http_is_one_clear_error_with_the_limit(content_type: str):
    def large(_request: web.BaseRequest, message: dict[str, Any]) -> web.StreamResponse | None:
        if message["method"] != "tools/call":
            return None
        body = orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "result": texts("x" * 60_000_000)})
        framed = b"event: message\ndata: " + body + b"\n\n" if content_type == "text/event-stream" else body
        return web.Response(body=framed, content_type=content_type)

    async with running() as server, crib_for(server) as crib:
        await crib.imports.mcp(server.url, name="there")
        server.before = large
        envelope = await crib.call("look")
        assert envelope.error is not None
        assert "10485760 bytes" in envelope.error.message
        server.before = lambda _request, _message: None
        assert (await crib.call("look")).status == "success"


@pytest.mark.requirement("mcp_client.attachments")
async def test_bytes_in_structured_content_are_only_an_attachment():
    """The filesystem server's `read_media_file`: the same image as a part and in the structured content."""
    picture = base64.b64encode(b"picture" * 1000).decode()
    part = {"type": "image", "data": picture, "mimeType": "image/png"}
    sound = base64.b64encode(b"sound" * 1000).decode()
    result = {
        "content": [part],
        "structuredContent": {
            "content": [part, {"type": "audio", "data": sound, "mimeType": "audio/wav"}],
            "again": picture,
            "contents": [{"uri": "file:///a", "mimeType": "text/plain", "blob": base64.b64encode(b"text").decode()}],
            "note": {"data": "not of a part", "blob": "nor this"},
        },
    }
    envelope = await outcome(result)
    urls = [found.url for found in envelope.attachments]
    assert [found.bytes for found in envelope.attachments] == [7000, 5000, 4]
    assert envelope.output == {
        "content": [
            {"type": "image", "data": urls[0], "mimeType": "image/png"},
            {"type": "audio", "data": urls[1], "mimeType": "audio/wav"},
        ],
        "again": urls[0],
        "contents": [{"uri": "file:///a", "mimeType": "text/plain", "blob": urls[2]}],
        "note": {"data": "not of a part", "blob": "nor this"},
    }


@pytest.mark.requirement("mcp_client.refuses_requests")
async def test_a_call_for_which_the_server_wants_more_input_fails_and_says_why():
    request = {"method": "elicitation/create", "params": {"message": "who?", "requestedSchema": {"type": "object"}}}
    wanted = {"resultType": "input_required", "inputRequests": {"a": request}}
    envelope = await outcome(wanted)
    assert envelope.error is not None
    assert envelope.error.reason is Reason.BAD_RESPONSE


@pytest.mark.requirement("mcp_client.credentials")
async def test_the_credentials_of_the_provider_are_sent_and_not_shown():
    secret = "a-secret-0123456789"
    async with running() as server, crib_for(server, environment={"TOKEN": secret}) as crib:
        await crib.imports.mcp(server.url, name="there", auth=BearerAuth(token="${env:TOKEN}"))
        server.handlers["tools/call"] = lambda _params: texts(f"you sent {secret}")
        envelope = await crib.call("look")
    assert {headers.get("authorization") for headers in server.headers} == {f"Bearer {secret}"}
    assert secret not in orjson.dumps(envelope.model_dump(mode="json")).decode()


@pytest.mark.requirement("mcp_client.resources")
async def test_resources_templates_and_prompts_are_called_as_tools():
    server = Server(
        tools=[],
        prompts=[{"name": "greet", "arguments": [{"name": "who", "required": True, "description": "whom"}]}],
        resources=[{"uri": "notes://first", "name": "First note"}],
        templates=[{"uriTemplate": "notes://{year}/{title}", "name": "Note"}],
    )
    server.handlers["resources/read"] = lambda params: {"contents": [{"uri": params["uri"], "text": "a note"}]}
    server.handlers["prompts/get"] = lambda params: {
        "messages": [{"role": "user", "content": {"type": "text", "text": f"Hello {params['arguments']['who']}"}}]
    }
    async with running(server), crib_for(server) as crib:
        imported = await crib.imports.mcp(server.url, name="there")
        assert [found.name for found in imported.tools] == ["prompt_greet", "read_First_note", "read_Note"]
        note = await crib.call("read_First_note")
        filled = await crib.call("read_Note", year="2026", title="a b")
        greeting = await crib.call("prompt_greet", who="Ada")
        missing = await crib.call("prompt_greet")
    assert note.output["content"] == "a note"
    assert filled.output["uri"] == "notes://2026/a%20b"
    assert greeting.output["messages"] == [{"role": "user", "content": "Hello Ada"}]
    assert missing.error is not None
    assert missing.error.code is ErrorCode.VALIDATION_ERROR


@pytest.mark.requirement("mcp_client.failures")
async def test_a_stream_that_ends_without_an_answer_is_a_broken_connection():
    def unanswered(_request: web.BaseRequest, message: dict[str, Any]) -> web.StreamResponse | None:
        events = web.Response(body=b": nothing yet\n\n" * 3, content_type="text/event-stream")
        return events if message["method"] == "tools/call" else None

    async with running() as server, crib_for(server) as crib:
        await crib.imports.mcp(server.url, name="there")
        server.before = unanswered
        envelope = await crib.call("look")
    assert envelope.error is not None
    assert envelope.error.code is ErrorCode.NETWORK_ERROR


@pytest.mark.requirement("mcp_client.call")
async def test_calls_at_the_same_time_get_their_own_answers():
    async with running() as server, crib_for(server) as crib:
        await crib.imports.mcp(server.url, name="there")
        envelopes = await asyncio.gather(*(crib.call("look", what=str(number)) for number in range(30)))
    assert [envelope.output for envelope in envelopes] == [f'look: {{"what":"{number}"}}' for number in range(30)]
