"""Model references, and models opened by them."""

import pytest

from toolcrib.contracts.base.errors import InvalidSettings
from toolcrib.infrastructure.net import HttpSession
from toolcrib.llm import PROVIDERS, HttpTransport, Model, Request, open_model, resolve, user

pytestmark = pytest.mark.requirement("llm.model_references")


@pytest.mark.parametrize(
    ("reference", "provider", "model", "url", "key"),
    [
        ("openai:gpt-4o", "openai", "gpt-4o", "https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("anthropic:claude-sonnet-4", "anthropic", "claude-sonnet-4", "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
        (" ollama:llama3.2:3b ", "ollama", "llama3.2:3b", "http://localhost:11434/v1", None),
        ("openrouter:a/m-1", "openrouter", "a/m-1", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    ],
)
def test_a_reference_names_provider_and_model(reference: str, provider: str, model: str, url: str, key: str | None):
    endpoint = resolve(reference)

    assert (endpoint.provider, endpoint.model, endpoint.base_url) == (provider, model, url)
    assert endpoint.api_key_env == key


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("gpt-4o", "not written provider:model; did you mean openai:gpt-4o?"),
        ("claude-sonnet-4", "did you mean anthropic:claude-sonnet-4?"),
        ("some-model", "not written provider:model, for example openai:gpt-4o"),
        ("openai:", "not written provider:model"),
        ("", "not written provider:model"),
        ("opena:gpt-4o", "'opena' is not a known provider, did you mean 'openai'?; known providers are anthropic"),
        (
            "scripted:desk",
            "model 'scripted:desk' is not registered; pass it to the crib: Crib(models={'scripted:desk': …})",
        ),
        ("zzz:x", "'zzz' is not a known provider; known providers are anthropic"),
        ("openai-compatible:x", "needs base_url, for example http://localhost:8000/v1"),
    ],
)
def test_a_reference_that_cannot_be_resolved_says_what_to_write(reference: str, message: str):
    with pytest.raises(InvalidSettings) as caught:
        resolve(reference)
    assert message in str(caught.value)


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x/v1", "http://"])
def test_a_base_url_must_be_one(url: str):
    with pytest.raises(InvalidSettings, match="is not an http or https URL"):
        resolve("vllm:x", base_url=url)


def test_a_base_url_and_a_key_s_variable_may_be_replaced():
    endpoint = resolve("openai-compatible:x", base_url="http://gpu:8000/v1/", api_key_env="GPU_KEY")

    assert (endpoint.base_url, endpoint.api_key_env, endpoint.key_required) == ("http://gpu:8000/v1", "GPU_KEY", True)
    assert endpoint.wire.origin == "openai-compatible/gpu"


@pytest.mark.parametrize(
    ("reference", "structured", "sampling"),
    [
        ("openai:gpt-4o", "json_schema", True),
        ("openai:gpt-5.4-mini", "json_schema", False),
        ("openai:o3-mini", "json_schema", False),
        ("openai:gpt-3.5-turbo", "json_object", True),
        ("openai:gpt-4-turbo", "json_object", True),
        ("openai:gpt-4.1", "json_schema", True),
        ("anthropic:claude-sonnet-4", "tool", True),
        ("anthropic:claude-sonnet-4-20250514", "tool", True),
        ("anthropic:claude-3-5-haiku-latest", "tool", True),
        ("anthropic:claude-sonnet-4-5", "json_schema", True),
        ("anthropic:claude-haiku-4-5-20251001", "json_schema", True),
        ("anthropic:claude-opus-4-1", "json_schema", True),
        ("anthropic:claude-opus-4-7", "json_schema", False),
        ("anthropic:claude-opus-4-8-20260601", "json_schema", False),
        ("anthropic:claude-sonnet-5", "json_schema", False),
        ("google:gemini-2.5-pro", "json_schema", True),
        ("bedrock-anthropic:us.anthropic.claude-3-5-sonnet-20240620-v1:0", "tool", True),
        ("bedrock-anthropic:anthropic.claude-sonnet-4-5-20250929-v1:0", "json_schema", True),
        ("vertex-anthropic:claude-sonnet-4-5@20250929", "tool", True),
        ("groq:llama-3.3-70b", "json_object", True),
        ("groq:openai/gpt-oss-120b", "json_schema", True),
    ],
)
def test_models_of_one_provider_differ(reference: str, structured: str, sampling: bool):
    quirks = resolve(reference, environment={"AWS_REGION": "eu-west-1"}).quirks

    assert (quirks.structured, quirks.sampling) == (structured, sampling)


@pytest.mark.parametrize(
    ("reference", "cached"),
    [
        ("anthropic:claude-sonnet-4-5", True),
        ("bedrock-anthropic:eu.anthropic.claude-sonnet-4-5-20250929-v1:0", True),
        ("bedrock-anthropic:anthropic.claude-3-haiku-20240307-v1:0", False),
        ("bedrock-anthropic:anthropic.claude-3-5-sonnet-20240620-v1:0", False),
        ("openai:gpt-4o", False),
    ],
)
def test_prompts_are_marked_for_caches_that_need_it(reference: str, cached: bool):
    assert resolve(reference, base_url="https://x").quirks.prompt_cache is cached


def test_how_a_model_calls_tools_may_be_set():
    assert resolve("llamacpp:x").quirks.tool_calling == "native"
    assert resolve("llamacpp:x", tool_calling="schema").quirks.tool_calling == "schema"


def test_every_provider_of_the_table_can_be_resolved():
    for name in PROVIDERS:
        endpoint = resolve(f"{name}:m", base_url="https://proxy.example.com")
        assert endpoint.wire.origin.startswith(name)


@pytest.mark.parametrize(
    ("reference", "environment", "url"),
    [
        (
            "azure-openai:gpt-4o",
            {"AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com/"},
            "https://r.openai.azure.com/openai",
        ),
        ("bedrock-anthropic:m", {"AWS_REGION": "eu-west-1"}, "https://bedrock-runtime.eu-west-1.amazonaws.com"),
        ("bedrock-anthropic:m", {"AWS_DEFAULT_REGION": "us-east-1"}, "https://bedrock-runtime.us-east-1.amazonaws.com"),
        (
            "foundry-anthropic:m",
            {"ANTHROPIC_FOUNDRY_RESOURCE": "res"},
            "https://res.services.ai.azure.com/anthropic",
        ),
        ("vertex-anthropic:m", {}, "https://aiplatform.googleapis.com/v1"),
        ("vertex-anthropic:m", {"GOOGLE_CLOUD_LOCATION": "eu"}, "https://aiplatform.eu.rep.googleapis.com/v1"),
        (
            "vertex-google:m",
            {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "us-east1"},
            "https://us-east1-aiplatform.googleapis.com/v1beta1/projects/p/locations/us-east1/publishers/google",
        ),
    ],
)
def test_a_cloud_is_where_the_environment_says(reference: str, environment: dict[str, str], url: str):
    assert resolve(reference, environment=environment).base_url == url


@pytest.mark.parametrize(
    ("reference", "variable"),
    [
        ("azure-openai:m", "AZURE_OPENAI_ENDPOINT"),
        ("bedrock-anthropic:m", "AWS_REGION"),
        ("foundry-anthropic:m", "ANTHROPIC_FOUNDRY_RESOURCE"),
        ("vertex-google:m", "GOOGLE_CLOUD_PROJECT"),
    ],
)
def test_a_cloud_without_its_settings_names_the_variable(reference: str, variable: str):
    with pytest.raises(InvalidSettings, match=f"model '{reference}': {variable} is not set; export it, or give"):
        resolve(reference, environment={})


def test_google_s_key_may_be_in_either_variable_and_its_other_name_is_known():
    endpoint = resolve("gemini:gemini-3-flash")

    assert endpoint.provider == "google"
    assert endpoint.key_in({"GOOGLE_API_KEY": "b"}) == "b"
    assert endpoint.key_in({"GOOGLE_API_KEY": "b", "GEMINI_API_KEY": "a"}) == "a"
    assert endpoint.key_in({}) is None
    assert resolve("google:m", api_key_env="MINE").key_in({"GOOGLE_API_KEY": "b"}) is None


async def test_a_missing_key_is_reported_before_any_request(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    model = open_model("openai:gpt-4o", HttpTransport(HttpSession()))

    with pytest.raises(InvalidSettings, match="OPENAI_API_KEY is not set, and openai:gpt-4o needs it; export it, or"):
        await model.request(Request(messages=(user("x"),)))


def test_a_key_is_read_from_its_variable_at_each_call(monkeypatch: pytest.MonkeyPatch):
    model = open_model("openai:gpt-4o", HttpTransport(HttpSession()))

    monkeypatch.setenv("OPENAI_API_KEY", "first")
    assert model.credential() == "first"
    monkeypatch.setenv("OPENAI_API_KEY", "second")
    assert model.credential() == "second"
    assert repr(model) == "Model('openai:gpt-4o')"


def test_a_local_model_needs_no_key():
    assert open_model("ollama:x", HttpTransport(HttpSession())).credential() is None
    assert Model(resolve("ollama:x"), HttpTransport(HttpSession())).credential() is None
