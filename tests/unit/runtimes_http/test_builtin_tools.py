"""The tools that come with the crib, added to one and called as anybody would."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest
from aiohttp import web

from tests.unit.net.servers import serving
from toolcrib import Crib, builtin_tools
from toolcrib.contracts import ErrorCode, NotFound
from toolcrib.infrastructure.net import EgressPolicy


class Web(NamedTuple):
    """A crib with the tools, and a service that they can reach."""

    crib: Crib
    url: str
    asked: list[list[str]]
    """Method and body of each request."""


@asynccontextmanager
async def web_with(response: Callable[[], web.Response]) -> AsyncGenerator[Web]:
    async def answer(request: web.BaseRequest) -> web.Response:
        asked.append([request.method, await request.text()])
        return response()

    asked: list[list[str]] = []
    async with serving(answer) as port:
        crib = Crib("memory://", egress=EgressPolicy(allow=(f"127.0.0.1:{port}",)))
        crib.add(*builtin_tools.http(), builtin_tools.wget())
        async with crib:
            yield Web(crib, f"http://127.0.0.1:{port}", asked)


@pytest.mark.requirement("builtin_tools.opt_in")
async def test_no_tool_is_there_until_somebody_adds_it():
    async with Crib("memory://") as crib:
        with pytest.raises(NotFound):
            await crib.call("wget", uri="https://example.com")

    offered = builtin_tools.builtin_tools()
    assert [tool.name for tool in offered] == ["http_get", "http_request", "wget"]
    assert [builtin_tools.builtin_tool(tool.name) for tool in offered] == list(offered)
    with pytest.raises(NotFound, match="no tool 'curl' comes with Toolcrib; there are: http_get, http_request, wget"):
        builtin_tools.builtin_tool("curl")


@pytest.mark.requirement("builtin_tools.wget")
async def test_wget_returns_the_content_as_a_string_whatever_it_is_made_of():
    async with web_with(lambda: web.json_response({"a": 1})) as (crib, url, _):
        envelope = await crib.call("wget", uri=f"{url}/x", timeoutMs=5_000)

    assert (envelope.status, envelope.output) == ("success", '{"a": 1}')


@pytest.mark.requirement("builtin_tools.wget")
async def test_wget_returns_an_http_error_as_a_string_and_the_envelope_says_that_it_is_one():
    async with web_with(lambda: web.Response(status=404, text="gone")) as (crib, url, _):
        envelope = await crib.call("wget", uri=url)

    assert envelope.status == "success"
    assert envelope.output.startswith("Error: tool 'wget' got 404 Not Found: gone; ")
    assert (envelope.http_status, envelope.metadata["error"]["code"]) == (404, "VALIDATION_ERROR")
    assert envelope.metadata["warnings"][0].startswith("the output is an error: ")


@pytest.mark.requirement("builtin_tools.wget")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"uri": "https://a/", "timeoutMs": 99}, "100"),
        ({"uri": "https://a/", "timeoutMs": 60_001}, "60000"),
        ({"uri": "ftp://a/"}, "uri"),
        ({"uri": "nowhere"}, "uri"),
    ],
)
async def test_wget_refuses_what_is_no_address_and_names_the_range_of_the_time_out(arguments: Any, said: str):
    async with web_with(web.Response) as (crib, _, _):
        envelope = await crib.call("wget", arguments)

    assert envelope.error is not None
    assert envelope.error.code is ErrorCode.VALIDATION_ERROR
    assert said in envelope.error.message


@pytest.mark.requirement("builtin_tools.wget")
async def test_wget_reaches_nothing_that_the_egress_policy_forbids_and_that_is_a_denial():
    async with web_with(web.Response) as (crib, _, _):
        envelope = await crib.call("wget", uri="http://169.254.169.254/latest/meta-data")

    assert envelope.error is not None
    assert envelope.error.code is ErrorCode.POLICY_DENIED


@pytest.mark.requirement("builtin_tools.wget")
def test_wget_only_reads_and_has_the_three_examples_that_the_text_protocol_needs():
    definition = builtin_tools.wget()

    assert (definition.side_effects, len(definition.examples)) == ("reads", 3)
    assert definition.parameter_names() == ("uri", "timeoutMs")


@pytest.mark.requirement("builtin_tools.http")
async def test_http_get_reads_a_long_page_as_a_preview_with_the_whole_beside_it():
    page = f"<html><title>T</title><body><p>{'word ' * 40_000}</body></html>"
    async with web_with(lambda: web.Response(text=page, content_type="text/html")) as (crib, url, _):
        envelope = await crib.call("http_get", url=url)

    assert (envelope.output["title"], envelope.truncated) == ("T", True)
    assert len(envelope.output["text"]) < 64 * 1024
    (whole,) = envelope.attachments
    assert whole.bytes is not None
    assert whole.bytes > 200_000


@pytest.mark.requirement("builtin_tools.http")
async def test_http_request_sends_its_method_and_body_and_counts_as_a_write():
    async with web_with(lambda: web.json_response("done")) as (crib, url, asked):
        envelope = await crib.call("http_request", method="PUT", url=url, body={"a": [1]})
        wrong = await crib.call("http_request", method="TRACE", url=url)

    assert (envelope.output, envelope.side_effects) == ("done", "writes")
    assert asked == [["PUT", '{"a":[1]}']]
    assert wrong.error is not None
    assert wrong.error.code is ErrorCode.VALIDATION_ERROR
