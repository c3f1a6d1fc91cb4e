"""Official SDK clients as transports: what each sends to its cloud, and what becomes of the answers.

A contract with the SDKs' raw requests, which a new version of one could break.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

import google.auth
import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import aio as entra
from google.auth.credentials import Credentials
from google.auth.exceptions import DefaultCredentialsError

from tests.unit.llm.sdk_server import EVENT_STREAM, SSE, Cloud, cloud, event_stream, message, server_sent
from toolcrib.contracts.base.errors import EgressDenied, InvalidSettings, ModelError
from toolcrib.infrastructure.net import EgressPolicy, HttpSession, Timeouts
from toolcrib.llm import Done, HttpTransport, Model, Request, Response, TokenUsage, Tool, ToolSet, open_model, user

pytestmark = pytest.mark.requirement("llm.cloud_sign_in")

TOOLS = ToolSet([Tool("look", "Looks.", {"type": "object", "properties": {}})])
ASK = Request(messages=(user("hello"),), tools=TOOLS, max_tokens=9)
AWS = {"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret"}
GCP = {"GOOGLE_CLOUD_PROJECT": "proj", "GOOGLE_CLOUD_LOCATION": "europe-west4"}
GEMINI_PATH = "/v1beta1/projects/proj/locations/europe-west4/publishers/google"

CHAT: dict[str, Any] = {
    "id": "i",
    "model": "m",
    "choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 5},
}
CHAT_STREAM: list[Any] = [
    {"id": "i", "model": "m", "choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]},
    {"choices": [], "usage": CHAT["usage"]},
    b"[DONE]",
]
MESSAGE: dict[str, Any] = {
    "id": "i",
    "model": "m",
    "content": [{"type": "text", "text": "hi"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 5},
}
MESSAGE_STREAM: list[Any] = [
    {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
    {"type": "message_stop"},
]
GEMINI: dict[str, Any] = {
    "candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 5},
}


class Ambient(Credentials):
    """Google credentials that are good for an hour after each renewal."""

    renewals = 0

    def refresh(self, request: Any) -> None:
        self.renewals += 1
        self.token = f"token-{self.renewals}"
        self.expiry = datetime.now(UTC).replace(tzinfo=None) + timedelta(hours=1)


class Identity:
    """An Entra identity."""

    error: Exception | None = None

    async def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        if self.error is not None:
            raise self.error
        return AccessToken(f"entra for {scopes[0]}", 4_000_000_000)


@pytest.fixture(autouse=True)
def own_surroundings(monkeypatch: pytest.MonkeyPatch) -> Ambient:
    """No SDK finds anything of the machine that runs the tests."""
    for variable in (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_FOUNDRY_API_KEY",
        "AWS_BEARER_TOKEN_BEDROCK",
        "AWS_PROFILE",
        "AZURE_OPENAI_AD_TOKEN",
        "AZURE_OPENAI_API_KEY",
        "OPENAI_API_KEY",
        "OPENAI_API_VERSION",
    ):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    ambient = Ambient()

    def default(*_: Any, **__: Any) -> tuple[Ambient, str]:
        return ambient, "proj"

    monkeypatch.setattr(google.auth, "default", default)
    monkeypatch.setattr(entra, "DefaultAzureCredential", Identity)
    return ambient


@asynccontextmanager
async def opened(
    here: Cloud, reference: str, environment: dict[str, str], path: str, *, allow: bool = True
) -> AsyncGenerator[Model]:
    policy = EgressPolicy(allow=(f"127.0.0.1:{here.port}",) if allow else ())
    async with HttpSession(policy) as session:
        yield open_model(
            reference,
            HttpTransport(session),
            base_url=f"http://127.0.0.1:{here.port}{path}",
            environment=environment,
        )


async def streamed(model: Model, request: Request = ASK) -> Response:
    events = [event async for event in model.stream(request)]
    done = events[-1]
    assert isinstance(done, Done)
    return done.response


async def failure(model: Model) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await model.request(ASK)
    return caught.value


CHAT_PATH = "/openai/deployments/m/chat/completions?api-version=2024-10-21"
PLACES: dict[str, Any] = {
    "openai-sdk:m": ({"OPENAI_API_KEY": "k"}, "/v1", "/v1/chat/completions", {"Authorization": "Bearer k"}),
    "azure-openai:m": ({"AZURE_OPENAI_API_KEY": "k"}, "/openai", CHAT_PATH, {"api-key": "k"}),
    "anthropic-sdk:m": ({"ANTHROPIC_API_KEY": "k"}, "", "/v1/messages", {"Authorization": "Bearer k"}),
    "foundry-anthropic:m": (
        {"ANTHROPIC_FOUNDRY_API_KEY": "k"},
        "/anthropic",
        "/anthropic/v1/messages",
        {"api-key": "k"},
    ),
    "vertex-anthropic:m": (
        GCP,
        "/v1",
        "/v1/projects/proj/locations/europe-west4/publishers/anthropic/models/m:rawPredict",
        {"Authorization": "Bearer token-1"},
    ),
    "bedrock-anthropic:anthropic.m-v1:0": (
        {**AWS, "AWS_BEARER_TOKEN_BEDROCK": "k"},
        "",
        "/model/anthropic.m-v1:0/invoke",
        {"Authorization": "Bearer k"},
    ),
    "vertex-google:m": (
        GCP,
        GEMINI_PATH,
        f"{GEMINI_PATH}/models/m:generateContent",
        {"Authorization": "Bearer token-1"},
    ),
}
STREAM_PATHS: dict[str, str] = {
    "vertex-anthropic:m": ":streamRawPredict",
    "bedrock-anthropic:anthropic.m-v1:0": "/invoke-with-response-stream",
    "vertex-google:m": ":streamGenerateContent?alt=sse",
}
places = pytest.mark.parametrize("reference", PLACES)


def whole_answer(reference: str) -> dict[str, Any]:
    return CHAT if "openai" in reference else GEMINI if "google" in reference else MESSAGE


def stream_answer(reference: str) -> tuple[bytes, str]:
    if reference.startswith("bedrock"):
        return event_stream(*MESSAGE_STREAM), EVENT_STREAM
    events: list[Any] = CHAT_STREAM if "openai" in reference else [GEMINI] if "google" in reference else MESSAGE_STREAM
    return server_sent(*events), SSE


@places
async def test_a_request_is_addressed_and_signed_for_its_cloud(reference: str):
    environment, base, path, signed = PLACES[reference]
    async with cloud() as here, opened(here, reference, environment, base) as model:
        here.will(whole_answer(reference))
        answer = await model.request(ASK)

    assert here.path == path
    assert {name: here.headers.get(name) for name in signed} == signed
    assert "look" in str(here.body["tools"])
    assert (answer.message.text, answer.stop, answer.usage) == ("hi", "end", TokenUsage(3, 5))


@places
async def test_a_stream_comes_through_event_by_event(reference: str):
    environment, base, path, _ = PLACES[reference]
    async with cloud() as here, opened(here, reference, environment, base) as model:
        content, content_type = stream_answer(reference)
        here.will(content, content_type=content_type)
        answer = await streamed(model)

    assert here.path.endswith(STREAM_PATHS.get(reference) or path)
    assert (answer.message.text, answer.stop, answer.usage) == ("hi", "end", TokenUsage(3, 5))


@places
async def test_an_error_has_its_kind_and_is_not_retried(reference: str):
    environment, base, _, _ = PLACES[reference]
    error = {"code": 429, "message": "slow down", "type": "rate_limit_error", "status": "RESOURCE_EXHAUSTED"}
    async with cloud() as here, opened(here, reference, environment, base) as model:
        here.will({"error": error}, 429, **{"retry-after": "7"})
        found = await failure(model)
        with pytest.raises(ModelError) as streamed_error:
            await streamed(model)

    assert (found.kind, found.status, found.retry_after_s) == ("rate_limit", 429, 7.0)
    assert "slow down" in str(found)
    assert str(streamed_error.value) == str(found)


@places
async def test_a_redirect_is_not_followed(reference: str):
    environment, base, _, _ = PLACES[reference]
    async with cloud() as here, opened(here, reference, environment, base) as model:
        here.will(b"", 307, location="http://127.0.0.1:1/")
        found = await failure(model)

    assert (found.kind, found.status) == ("bad_response", 307)


@places
async def test_an_address_that_egress_forbids_is_denied_before_anything_leaves(reference: str):
    environment, base, _, _ = PLACES[reference]
    async with cloud() as here, opened(here, reference, environment, base, allow=False) as model:
        with pytest.raises(EgressDenied):
            await model.request(ASK)
        with pytest.raises(EgressDenied):
            await streamed(model)

    assert here.path == ""


@places
async def test_a_server_that_is_not_there_is_a_connection_error(reference: str):
    environment, base, _, _ = PLACES[reference]
    async with cloud() as here:
        pass
    async with opened(here, reference, environment, base) as model:
        found = await failure(model)

    assert found.kind == "connection"


@places
async def test_an_echoed_key_is_not_shown(reference: str):
    environment, base, _, signed = PLACES[reference]
    if "k" not in environment.values():
        return
    long = {name: "secret-0123456789" if value == "k" else value for name, value in environment.items()}
    async with cloud() as here, opened(here, reference, long, base) as model:
        here.will({"error": {"message": "bad key secret-0123456789"}}, 401)
        found = await failure(model)

    assert found.kind == "auth"
    assert "secret-" not in str(found)
    assert signed


async def test_bedrock_requests_are_signed_with_aws_credentials():
    async with cloud() as here, opened(here, "bedrock-anthropic:m", {**AWS, "AWS_SESSION_TOKEN": "st"}, "") as model:
        here.will(MESSAGE)
        await model.request(ASK)

    authorization = here.headers["Authorization"]
    assert authorization.startswith("AWS4-HMAC-SHA256 Credential=AKID/")
    assert "/eu-west-1/bedrock/aws4_request" in authorization
    assert here.headers["X-Amz-Security-Token"] == "st"
    assert here.body["anthropic_version"]
    assert "model" not in here.body


async def test_without_aws_credentials_the_call_fails_with_auth():
    async with cloud() as here, opened(here, "bedrock-anthropic:m", {"AWS_REGION": "eu-west-1"}, "") as model:
        found = await failure(model)

    assert (found.kind, here.path) == ("auth", "")
    assert "bedrock-anthropic: no usable credential" in str(found)


@pytest.mark.parametrize(
    ("bad", "kind", "text"),
    [
        (
            message({":message-type": "exception", ":exception-type": "throttlingException"}, {"message": "slow"}),
            "rate_limit",
            "throttlingException: slow",
        ),
        (
            message({":message-type": "exception", ":exception-type": "modelStreamErrorException"}, b"<html>"),
            "server",
            "<html>",
        ),
        (
            message({":message-type": "error", ":error-code": "InternalFailure", ":error-message": "oh"}, b""),
            "server",
            "oh",
        ),
        (message({":message-type": "event"}, {"bytes": "?"}), "bad_response", "not base64"),
        (b"\0" * 16, "bad_response", "damaged event stream"),
        (b"", "stream_cut", "in mid-answer"),
    ],
    ids=["throttled", "a page", "an error", "no base64", "garbage", "cut"],
)
async def test_a_bedrock_stream_that_fails_is_one_clear_error(bad: bytes, kind: str, text: str):
    begun = event_stream(*MESSAGE_STREAM[:3])
    async with cloud() as here, opened(here, "bedrock-anthropic:m", AWS, "") as model:
        here.will(begun + bad, content_type=EVENT_STREAM)
        with pytest.raises(ModelError) as caught:
            await streamed(model)

    assert (caught.value.kind, text in str(caught.value)) == (kind, True), str(caught.value)


@pytest.mark.parametrize(
    ("reference", "base", "whole", "scope"),
    [
        ("azure-openai:m", "/openai", CHAT, "https://cognitiveservices.azure.com/.default"),
        ("foundry-anthropic:m", "/anthropic", MESSAGE, "https://ai.azure.com/.default"),
    ],
)
async def test_without_a_key_azure_is_signed_in_to_with_the_machine_s_identity(
    reference: str, base: str, whole: Any, scope: str, monkeypatch: pytest.MonkeyPatch
):
    async with cloud() as here, opened(here, reference, {}, base) as model:
        here.will(whole)
        await model.request(ASK)
        assert here.headers["Authorization"] == f"Bearer entra for {scope}"

        monkeypatch.setattr(Identity, "error", ClientAuthenticationError("no identity"))
    async with cloud() as here, opened(here, reference, {}, base) as model:
        found = await failure(model)

    assert (found.kind, here.path) == ("auth", "")
    assert "no Entra token: no identity" in str(found)


async def test_azure_takes_a_given_token_and_version():
    environment = {"AZURE_OPENAI_AD_TOKEN": "given", "OPENAI_API_VERSION": "2030-01-01"}
    async with cloud() as here, opened(here, "azure-openai:m", environment, "/openai") as model:
        here.will(CHAT)
        await model.request(ASK)

    assert here.headers["Authorization"] == "Bearer given"
    assert here.path.endswith("api-version=2030-01-01")


async def test_a_google_token_is_renewed_only_when_it_has_run_out(own_surroundings: Ambient):
    async with cloud() as here, opened(here, "vertex-google:m", GCP, GEMINI_PATH) as model:
        here.will(GEMINI)
        await asyncio.gather(model.request(ASK), model.request(ASK))
        assert here.headers["Authorization"] == "Bearer token-1"

        own_surroundings.expiry = datetime(2000, 1, 1)  # noqa: DTZ001 - google-auth counts in naive UTC
        await model.request(ASK)
        assert here.headers["Authorization"] == "Bearer token-2"


@pytest.mark.parametrize("reference", ["vertex-google:m", "vertex-anthropic:m"])
async def test_without_google_credentials_the_call_fails_with_auth(reference: str, monkeypatch: pytest.MonkeyPatch):
    def none(**_: Any) -> Any:
        raise DefaultCredentialsError("none were found")

    monkeypatch.setattr(google.auth, "default", none)
    _, base, _, _ = PLACES[reference]
    async with cloud() as here, opened(here, reference, GCP, base) as model:
        found = await failure(model)

    assert (found.kind, here.path, "none were found" in str(found)) == ("auth", "", True)


async def test_a_rotated_key_is_used_at_once():
    environment = {"ANTHROPIC_API_KEY": "first"}
    async with cloud() as here, opened(here, "anthropic-sdk:m", environment, "") as model:
        here.will(MESSAGE)
        await model.request(ASK)
        assert here.headers["Authorization"] == "Bearer first"

        environment["ANTHROPIC_API_KEY"] = "second"
        await model.request(ASK)
        assert here.headers["Authorization"] == "Bearer second"


@pytest.mark.parametrize("reference", ["openai-sdk:m", "anthropic-sdk:m"])
async def test_an_sdk_that_finds_nothing_to_sign_in_with_says_so(reference: str):
    _, base, _, _ = PLACES[reference]
    async with cloud() as here, opened(here, reference, {}, base) as model:
        with pytest.raises((InvalidSettings, ModelError), match=reference.partition(":")[0]):
            await model.request(ASK)

    assert here.path == ""


async def test_the_limit_of_the_whole_answer_holds():
    request = Request(messages=ASK.messages, timeouts=Timeouts(total_s=0.001))
    async with cloud() as here, opened(here, "anthropic-sdk:m", {"ANTHROPIC_API_KEY": "k"}, "") as model:
        with pytest.raises(ModelError, match=r"did not answer within 0\.001 s") as caught:
            await model.request(request)

    assert caught.value.kind == "timeout"


@pytest.mark.parametrize(
    ("reference", "absent", "extra"),
    [
        ("openai-sdk:m", "toolcrib.llm.sdk._openai", "openai"),
        ("azure-openai:m", "toolcrib.llm.sdk._openai", "openai"),
        ("azure-openai:m", "azure.identity.aio", "azure"),
        ("anthropic-sdk:m", "toolcrib.llm.sdk._anthropic", "anthropic"),
        ("foundry-anthropic:m", "toolcrib.llm.sdk._anthropic", "anthropic"),
        ("bedrock-anthropic:m", "toolcrib.llm.sdk._bedrock", "bedrock"),
        ("vertex-anthropic:m", "toolcrib.llm.sdk._vertex", "anthropic,google"),
        ("vertex-google:m", "google.auth.transport.requests", "google"),
    ],
)
async def test_a_missing_package_is_named_with_what_to_install(
    reference: str, absent: str, extra: str, monkeypatch: pytest.MonkeyPatch
):
    package, _, module = absent.rpartition(".")
    monkeypatch.setitem(sys.modules, absent, None)
    monkeypatch.delattr(import_module(package), module, raising=False)
    _, base, _, _ = PLACES.get(reference) or PLACES["bedrock-anthropic:anthropic.m-v1:0"]
    async with cloud() as here, opened(here, reference, {**AWS, **GCP}, base) as model:
        with pytest.raises(InvalidSettings, match=rf"pip install 'toolcrib\[{extra}\]'") as caught:
            await model.request(ASK)

    assert reference.partition(":")[0] in str(caught.value)
    assert here.path == ""
