"""From `provider:model` to an endpoint: which wire, where, which key, which quirks. Data and a lookup, no I/O.

A reference names a provider of the table below and the model as that provider calls it; everything after the first
colon is the model's (`ollama:llama3.2:3b`, `openrouter:anthropic/claude-sonnet-4.5`).
"""

import os
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from toolcrib.contracts import InvalidSettings, ToolCalling
from toolcrib.llm.model import Endpoint, Model
from toolcrib.llm.prices import Prices
from toolcrib.llm.quirks import Quirks
from toolcrib.llm.transport import Transport
from toolcrib.llm.wire import Wire
from toolcrib.llm.wires import AnthropicWire, ChatWire, GeminiWire, ResponsesWire


class Provider(Struct, frozen=True, kw_only=True):
    """A place where models are."""

    base_url: str | None
    """None: the user must name it."""
    api_key_env: str | None = None
    key_required: bool = True
    wire: Callable[[str], Wire] = ChatWire
    quirks: Quirks = Quirks()
    models: tuple[tuple[str, Mapping[str, object]], ...] = ()
    """Model patterns and the quirks that differ; all that fit apply, in order."""


_REASONING = {"sampling": False}
_OPENAI = Provider(
    base_url="https://api.openai.com/v1",
    api_key_env="OPENAI_API_KEY",
    quirks=Quirks(
        max_tokens_field="max_completion_tokens",
        strict="openai",
        strict_tools=True,
        system_role="system",
        replay_fields=frozenset({"refusal"}),
    ),
    models=(
        ("o[1-9]*", _REASONING),
        ("gpt-5*", _REASONING),
        ("gpt-3.5*", {"structured": "json_object", "strict": None, "strict_tools": False}),
        ("gpt-4", {"structured": "tool", "strict": None, "strict_tools": False}),
        ("gpt-4-*", {"structured": "json_object", "strict": None, "strict_tools": False}),
        ("gpt-4o-2024-05-13", {"structured": "json_object", "strict": None, "strict_tools": False}),
    ),
)
_ENCRYPTED = {"sampling": False, "encrypted_reasoning": True}
_OPENAI_RESPONSES = msgspec.structs.replace(
    _OPENAI,
    wire=ResponsesWire,
    quirks=msgspec.structs.replace(_OPENAI.quirks, penalties=False),
    models=(
        *_OPENAI.models,
        ("o[1-9]*", _ENCRYPTED),
        ("*gpt-5*", _ENCRYPTED),
        ("*gpt-5*-chat*", {"sampling": True, "encrypted_reasoning": False}),
    ),
)
_TOOL = {"structured": "tool"}
_ANTHROPIC = Provider(
    base_url="https://api.anthropic.com",
    api_key_env="ANTHROPIC_API_KEY",
    wire=AnthropicWire,
    # Strict tools stay off: the API compiles a grammar for each set and caps their number, while the executor checks
    # arguments anyway. `output_config.format` came with the 4.5 models (and Opus 4.1); older ones get the answer tool.
    quirks=Quirks(strict="anthropic", penalties=False, max_tokens_default=4096),
    models=(
        ("claude-2*", _TOOL),
        ("claude-3*", _TOOL),
        ("claude-instant*", _TOOL),
        ("claude-sonnet-4", _TOOL),
        ("claude-sonnet-4-0", _TOOL),
        ("claude-sonnet-4-2025*", _TOOL),
        ("claude-opus-4", _TOOL),
        ("claude-opus-4-0", _TOOL),
        ("claude-opus-4-2025*", _TOOL),
        ("claude-opus-4-[7-9]*", _REASONING),
        ("claude-haiku-[5-9]*", _REASONING),
        ("claude-opus-[5-9]*", _REASONING),
        ("claude-sonnet-[5-9]*", _REASONING),
    ),
)
_GEMINI_2 = {"signed_calls": False, "effort_as_budget": True}
_GOOGLE = Provider(
    base_url="https://generativelanguage.googleapis.com/v1beta",
    api_key_env="GEMINI_API_KEY",
    wire=GeminiWire,
    quirks=Quirks(signed_calls=True),
    models=(("gemini-[12]*", _GEMINI_2), ("gemma-*", _GEMINI_2)),
)
_THINKS_BACK = Quirks(thinking_field="reasoning_content", structured="json_object")

PROVIDERS: Mapping[str, Provider] = {
    "anthropic": _ANTHROPIC,
    "deepseek": Provider(base_url="https://api.deepseek.com", api_key_env="DEEPSEEK_API_KEY", quirks=_THINKS_BACK),
    "google": _GOOGLE,
    "groq": Provider(
        base_url="https://api.groq.com/openai/v1",
        api_key_env="GROQ_API_KEY",
        quirks=Quirks(structured="json_object", max_tokens_field="max_completion_tokens"),
        models=(("openai/gpt-oss-*", {"structured": "json_schema"}),),
    ),
    "llamacpp": Provider(base_url="http://localhost:8080/v1", key_required=False),
    "mistral": Provider(
        base_url="https://api.mistral.ai/v1", api_key_env="MISTRAL_API_KEY", quirks=Quirks(stream_usage=False)
    ),
    "ollama": Provider(base_url="http://localhost:11434/v1", key_required=False),
    "openai": _OPENAI,
    "openai-compatible": Provider(
        base_url=None,
        api_key_env="OPENAI_COMPATIBLE_API_KEY",
        key_required=False,
        # Google's endpoint of this API keeps its thought signatures in these fields.
        quirks=Quirks(replay_fields=frozenset({"extra_content", "thought_signature"})),
    ),
    "openai-responses": _OPENAI_RESPONSES,
    "openrouter": Provider(
        base_url="https://openrouter.ai/api/v1",
        api_key_env="OPENROUTER_API_KEY",
        quirks=Quirks(thinking_field="reasoning", replay_fields=frozenset({"reasoning_details"})),
    ),
    "vllm": Provider(base_url="http://localhost:8000/v1", key_required=False),
}
"""All known providers; `openai-compatible` is any server of that API."""


def resolve(
    reference: str,
    *,
    base_url: str | None = None,
    api_key_env: str | None = None,
    tool_calling: ToolCalling | None = None,
) -> Endpoint:
    """The endpoint that a reference means.

    Args:
        reference: `provider:model`.
        base_url: Instead of the provider's own, for a proxy, a gateway or a self-hosted server.
        api_key_env: Instead of the provider's usual environment variable.
        tool_calling: Instead of the provider's usual way.

    Raises:
        InvalidSettings: The reference is malformed, the provider unknown, or a URL is missing or no URL.
    """
    name, colon, model = reference.strip().partition(":")
    if not colon or not name or not model:
        raise InvalidSettings(_malformed(reference))
    provider = PROVIDERS.get(name)
    if provider is None:
        raise InvalidSettings(f"model {reference!r}: {name!r} is no known provider{_closest(name)}; {_known()}")
    url = base_url or provider.base_url
    if url is None:
        raise InvalidSettings(f"model {reference!r} needs base_url, for example http://localhost:8000/v1")
    quirks = _quirks(provider, model)
    return Endpoint(
        provider=name,
        model=model,
        base_url=_checked(reference, url),
        wire=provider.wire(name if provider.base_url else f"{name}/{urlsplit(url).hostname}"),
        quirks=msgspec.structs.replace(quirks, tool_calling=tool_calling or quirks.tool_calling),
        api_key_env=api_key_env or provider.api_key_env,
        key_required=provider.key_required or api_key_env is not None,
    )


def open_model(
    reference: str,
    transport: Transport,
    *,
    base_url: str | None = None,
    api_key_env: str | None = None,
    tool_calling: ToolCalling | None = None,
    key: Callable[[], str | None] | None = None,
    prices: Prices | None = None,
) -> Model:
    """The model that a reference means, ready for requests.

    Args:
        reference: `provider:model`.
        transport: How providers are reached.
        base_url: See `resolve`.
        api_key_env: See `resolve`.
        tool_calling: See `resolve`.
        key: Gives the credential; by default it is read from the endpoint's environment variable at each call.
        prices: The rates; by default the shipped ones.

    Raises:
        InvalidSettings: As `resolve`.
    """
    endpoint = resolve(reference, base_url=base_url, api_key_env=api_key_env, tool_calling=tool_calling)
    variable = endpoint.api_key_env
    return Model(
        endpoint, transport, key=key or (lambda: os.environ.get(variable) if variable else None), prices=prices
    )


def _quirks(provider: Provider, model: str) -> Quirks:
    quirks = provider.quirks
    for pattern, different in provider.models:
        if fnmatchcase(model, pattern):
            quirks = msgspec.structs.replace(quirks, **different)
    return quirks


def _checked(reference: str, url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidSettings(f"model {reference!r}: base_url {url!r} is no http or https URL")
    return url.rstrip("/")


def _malformed(reference: str) -> str:
    start = f"model {reference!r} is not written provider:model"
    for name in PROVIDERS:
        if reference.lower().startswith(_FAMILIES.get(name, ("\0",))):
            return f"{start}; did you mean {name}:{reference}?"
    return f"{start}, for example openai:gpt-4o or anthropic:claude-sonnet-4; {_known()}"


_FAMILIES: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("claude",),
    "deepseek": ("deepseek-",),
    "google": ("gemini-", "gemma-"),
    "mistral": ("mistral-", "codestral", "ministral"),
    "openai": ("gpt-", "o1", "o3", "o4", "chatgpt"),
}


def _closest(name: str) -> str:
    close = get_close_matches(name, PROVIDERS, n=1)
    return f", did you mean {close[0]!r}?" if close else ""


def _known() -> str:
    return f"known providers are {', '.join(PROVIDERS)}"
