"""Model providers that an operator has described: an OpenAI-like one, and one with an interface of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from tests.unit.net.servers import serving
from toolcrib import Crib, DefinitionOptions, tool
from toolcrib.contracts import InvalidSettings, LLMConfig, ModelError, ModelService
from toolcrib.crib.container.model_services import read_services, service_providers
from toolcrib.infrastructure.net import EgressPolicy

Answer = Callable[[Any], web.Response]


class Asked:
    """What arrived at a service."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.bodies: list[Any] = []
        self.headers: list[dict[str, str]] = []


async def ask(service: ModelService, answer: Answer, asked: Asked) -> Any:
    """The outcome of an agent that a service reasons for, with a tool that it may call."""

    async def handle(request: web.BaseRequest) -> web.Response:
        asked.paths.append(request.path)
        asked.headers.append({name.lower(): value for name, value in request.headers.items()})
        asked.bodies.append(orjson.loads(await request.read()))
        return answer(len(asked.bodies))

    @tool(side_effects="none")
    def double(n: int) -> int:
        return 2 * n

    async with serving(handle) as port:
        described = service.model_copy(update={"base_url": f"http://127.0.0.1:{port}/v1"})
        crib = Crib(
            "memory://",
            egress=EgressPolicy(allow=(f"127.0.0.1:{port}",)),
            environment={"HELIX_KEY": "secret-key"},
            definitions=DefinitionOptions(model_services={"helix": described}),
        )
        crib.add(double)
        agent = crib.agentic_tool("agent", mode="agentic", model="helix:deep", tools=["double"])
        async with crib:
            return await agent("What is 21 doubled?")


def said(text: str) -> web.Response:
    return web.json_response({"result": {"text": text, "usage": {"in": 7, "out": 3}}})


PLAIN = ModelService(
    base_url="https://helix.example",
    wire="plain",
    path="/reason",
    api_key_env="HELIX_KEY",
    request={"engine": "${model}", "context": "${system}", "question": "${prompt}", "turns": "${messages}"},
    text="$.result.text",
    input_tokens="$.result.usage.in",
    output_tokens="$.result.usage.out",
)


@pytest.mark.requirement("plugins.plain_services")
async def test_a_described_service_reasons_and_calls_tools_by_schema():
    def answer(turn: int) -> web.Response:
        call = '{"calls": [{"name": "double", "arguments": {"n": 21}}]}'
        return said(call if turn == 1 else '{"answer": {"summary": "It is 42."}}')

    asked = Asked()
    result = await ask(PLAIN, answer, asked)

    assert result.error is None
    assert [envelope.output for envelope in result.envelopes] == [42]
    assert "42" in str(result.output)
    assert set(asked.paths) == {"/v1/reason"}
    assert asked.bodies[0]["engine"] == "deep"
    assert "double" in asked.bodies[0]["context"]
    assert "42" in asked.bodies[1]["question"]
    assert {headers["authorization"] for headers in asked.headers} == {"Bearer secret-key"}
    assert result.summary.usage.input_tokens == 14


@pytest.mark.requirement("plugins.services")
async def test_a_described_service_of_a_known_wire_is_a_provider_like_any_other():
    def answer(_: int) -> web.Response:
        message = {"role": "assistant", "content": '{"summary": "fine"}'}
        return web.json_response({"choices": [{"message": message, "finish_reason": "stop"}], "model": "deep"})

    asked = Asked()
    result = await ask(ModelService(base_url="https://x", api_key_env="HELIX_KEY"), answer, asked)

    assert "fine" in str(result.output)
    assert asked.paths[0] == "/v1/chat/completions"


@pytest.mark.requirement("plugins.plain_services")
@pytest.mark.parametrize(
    ("status", "text", "why"),
    [
        (200, "{}", "answered without a text where its description says it is"),
        (200, "{", "answered with no JSON"),
        (404, '{"error": "no such engine"}', "no such engine"),
    ],
)
async def test_an_answer_that_is_none_is_the_failure_of_a_model(status: int, text: str, why: str):
    def answer(_: Any) -> web.Response:
        return web.Response(status=status, text=text, content_type="application/json")

    result = await ask(PLAIN, answer, Asked())

    assert result.error is not None
    assert why in result.error.message


@pytest.mark.requirement("plugins.plain_services")
async def test_headers_and_a_schema_go_where_the_description_says_and_a_failing_template_is_told():
    service = PLAIN.model_copy(
        update={"headers": {"X-Key": "k=${key}"}, "request": {"ask": "${prompt}", "shape": "${schema}"}}
    )
    asked = Asked()
    await ask(service, lambda _: said('{"answer": {"summary": "x"}}'), asked)
    failing = await ask(PLAIN.model_copy(update={"request": {"ask": "${messages[9].text.none}"}}), said, Asked())

    assert asked.headers[0]["x-key"] == "k=secret-key"
    assert isinstance(asked.bodies[0]["shape"], dict)
    assert failing.error is not None
    assert "the request cannot be made" in failing.error.message


@pytest.mark.requirement("plugins.plain_services")
def test_a_stream_of_a_service_that_has_none_is_refused():
    provider = service_providers({"helix": PLAIN})["helix"]

    for read in (lambda: provider.wire("helix").decoder().feed(b"x"), lambda: provider.wire("helix").decoder().close()):
        with pytest.raises(ModelError, match="its content type must say JSON"):
            read()


@pytest.mark.requirement("plugins.services")
@pytest.mark.parametrize(
    ("name", "changes", "why"),
    [
        ("openai", {}, "model service 'openai' is taken"),
        ("He lix", {}, "has other characters than"),
        ("helix", {"request": {"a": "${nobody}"}}, "uses \\$\\{nobody\\}, which is unknown"),
        ("helix", {"request": {"a": "${("}}, "model service 'helix': "),
        ("helix", {"headers": {"a": "${model}"}}, "uses \\$\\{model\\}"),
        ("helix", {"text": "result"}, "model service 'helix': "),
    ],
)
def test_a_description_that_cannot_be_used_is_refused(name: str, changes: dict[str, Any], why: str):
    with pytest.raises(InvalidSettings, match=why):
        service_providers({name: PLAIN.model_copy(update=changes)})


@pytest.mark.requirement("plugins.services")
def test_services_are_read_from_a_file(tmp_path: Path):
    file = tmp_path / "services.yaml"
    file.write_text("helix:\n  base_url: https://helix.example\n  wire: anthropic\n", encoding="utf-8")
    empty = tmp_path / "empty.yaml"
    empty.write_text("", encoding="utf-8")

    assert read_services(file)["helix"].wire == "anthropic"
    assert service_providers(read_services(file))["helix"].base_url == "https://helix.example"
    assert read_services(empty) == {}


@pytest.mark.requirement("plugins.services")
@pytest.mark.parametrize(
    ("text", "why"),
    [("helix: {}", "helix.base_url: Field required"), ("{", "are no YAML"), ("helix: {base_url: x, wire: b}", "wire")],
)
def test_a_file_that_describes_something_else_is_refused_with_the_place(text: str, why: str, tmp_path: Path):
    file = tmp_path / "services.yaml"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(InvalidSettings, match=why):
        read_services(file)
    with pytest.raises(InvalidSettings, match="cannot be read: No such file"):
        read_services(tmp_path / "gone.yaml")


@pytest.mark.requirement("plugins.services")
async def test_the_settings_name_the_file(tmp_path: Path):
    file = tmp_path / "services.yaml"
    file.write_text("helix: {base_url: 'https://helix.example'}", encoding="utf-8")
    environment = {"TOOLCRIB_MODEL_SERVICES": str(file), "TOOLCRIB_STORE": "memory://"}

    crib = Crib.from_settings(environment=environment)

    assert crib.agentic_tool("agent", mode="agentic", model=LLMConfig(model="helix:deep"), tools=[])
