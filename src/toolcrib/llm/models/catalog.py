"""Resolves `provider:model` to an endpoint: its wire, address, key and quirks. No I/O.

The first colon ends the provider's name; the rest is the provider's name of the model (`ollama:llama3.2:3b`,
`openrouter:anthropic/claude-sonnet-4.5`).
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TypeAlias
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from toolcrib.contracts import InvalidSettings, OnMalformed, ToolCalling
from toolcrib.contracts.base.media import ModelInput
from toolcrib.llm.base.prices import Prices
from toolcrib.llm.base.quirks import Quirks
from toolcrib.llm.base.transport import Transport
from toolcrib.llm.base.wire import Wire
from toolcrib.llm.local import LocalTransport, models_folder
from toolcrib.llm.models.model import Endpoint, Model
from toolcrib.llm.sdk import (
    Connect,
    SdkSettings,
    SdkTransport,
    VertexTransport,
    azure_openai,
    bedrock_anthropic,
    foundry_anthropic,
    plain_anthropic,
    plain_openai,
    vertex_anthropic,
)
from toolcrib.llm.sdk import cloud_addresses as places
from toolcrib.llm.wires import AnthropicWire, ChatWire, GeminiWire, ResponsesWire

SignIn: TypeAlias = Callable[[Transport, SdkSettings], Transport]
"""What addresses and signs requests, over the transport that carries them."""


class Provider(Struct, frozen=True, kw_only=True):
    """A place where models are."""

    base_url: str | Callable[[Mapping[str, str]], str] | None
    """A function reads it from the environment; None: the user must name it."""
    sign_in: SignIn | None = None
    """How requests are signed with more than a key: with what the machine is trusted with."""
    api_key_env: str | None = None
    other_key_env: str | None = None
    """Where the key is if it is not there."""
    key_required: bool = True
    wire: Callable[[str], Wire] = ChatWire
    quirks: Quirks = Quirks()
    models: tuple[tuple[str, Mapping[str, object]], ...] = ()
    """Model patterns and the quirks that differ; all that fit apply, in order."""


_REASONING = {"sampling": False}
_IMAGE: frozenset[ModelInput] = frozenset({"image"})
_IMAGE_AND_PDF: frozenset[ModelInput] = frozenset({"image", "pdf"})
_TEXT_ONLY = {"inputs": frozenset[ModelInput]()}
_SEES_IMAGES = {"inputs": _IMAGE}
_OPENAI = Provider(
    base_url="https://api.openai.com/v1",
    api_key_env="OPENAI_API_KEY",
    quirks=Quirks(
        max_tokens_field="max_completion_tokens",
        strict="openai",
        strict_tools=True,
        system_role="system",
        replay_fields=frozenset({"refusal"}),
        inputs=_IMAGE_AND_PDF,
    ),
    models=(
        ("o[1-9]*", _REASONING),
        ("gpt-5*", _REASONING),
        ("gpt-3.5*", {"structured": "json_object", "strict": None, "strict_tools": False}),
        ("gpt-4", {"structured": "tool", "strict": None, "strict_tools": False}),
        ("gpt-4-*", {"structured": "json_object", "strict": None, "strict_tools": False}),
        ("gpt-4o-2024-05-13", {"structured": "json_object", "strict": None, "strict_tools": False}),
        *((pattern, _TEXT_ONLY) for pattern in ("gpt-3.5*", "gpt-4", "gpt-4-*", "o1-mini*", "o1-preview*", "o3-mini*")),
        ("gpt-4-turbo*", _SEES_IMAGES),
        *((pattern, {"inputs": frozenset({"audio"})}) for pattern in ("gpt-4o*-audio*", "gpt-audio*")),
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
_UNCACHED = {"prompt_cache": False}
_ANTHROPIC = Provider(
    base_url="https://api.anthropic.com",
    api_key_env="ANTHROPIC_API_KEY",
    wire=AnthropicWire,
    # Strict tools stay off: the API compiles a grammar for each set and caps their number, while the executor checks
    # arguments anyway. `output_config.format` came with the 4.5 models (and Opus 4.1); older ones get the answer tool.
    quirks=Quirks(
        strict="anthropic", penalties=False, max_tokens_default=4096, prompt_cache=True, inputs=_IMAGE_AND_PDF
    ),
    models=(
        ("claude-2*", _TEXT_ONLY),
        ("claude-instant*", _TEXT_ONLY),
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
_GEMINI_2 = {
    "signed_calls": False,
    "effort_as_budget": True,
    "structured_with_tools": "tool",
    "files_in_results": False,
}
_GOOGLE = Provider(
    base_url="https://generativelanguage.googleapis.com/v1beta",
    api_key_env="GEMINI_API_KEY",
    other_key_env="GOOGLE_API_KEY",
    wire=GeminiWire,
    quirks=Quirks(signed_calls=True, inputs=frozenset({"image", "pdf", "audio"})),
    models=(("gemini-[12]*", _GEMINI_2), ("gemma-*", {**_GEMINI_2, **_SEES_IMAGES})),
)


def _by_sdk(connect: Connect) -> SignIn:
    return lambda inner, settings: SdkTransport(inner, connect, settings)


_CLOUDS: Mapping[str, Provider] = {
    "anthropic-sdk": msgspec.structs.replace(_ANTHROPIC, sign_in=_by_sdk(plain_anthropic), key_required=False),
    "azure-openai": msgspec.structs.replace(
        _OPENAI,
        base_url=places.azure_url,
        sign_in=_by_sdk(azure_openai),
        api_key_env="AZURE_OPENAI_API_KEY",
        key_required=False,
        quirks=msgspec.structs.replace(_OPENAI.quirks, inputs=_IMAGE),
    ),
    "bedrock-anthropic": msgspec.structs.replace(
        _ANTHROPIC,
        base_url=places.bedrock_url,
        sign_in=_by_sdk(bedrock_anthropic),
        api_key_env="AWS_BEARER_TOKEN_BEDROCK",
        key_required=False,
        # Names have a region and a vendor before them, and a date and a version after them.
        models=(
            *((f"*{pattern}", quirks) for pattern, quirks in _ANTHROPIC.models),
            ("*claude-3-[hos]*", _UNCACHED),
            ("*claude-3-5-sonnet*", _UNCACHED),
        ),
    ),
    "foundry-anthropic": msgspec.structs.replace(
        _ANTHROPIC,
        base_url=places.foundry_url,
        sign_in=_by_sdk(foundry_anthropic),
        api_key_env="ANTHROPIC_FOUNDRY_API_KEY",
        key_required=False,
        models=(*_ANTHROPIC.models, ("*", _TOOL)),
    ),
    "openai-sdk": msgspec.structs.replace(_OPENAI, sign_in=_by_sdk(plain_openai), key_required=False),
    "vertex-anthropic": msgspec.structs.replace(
        _ANTHROPIC,
        base_url=places.vertex_url,
        sign_in=_by_sdk(vertex_anthropic),
        api_key_env=None,
        key_required=False,
        models=(*_ANTHROPIC.models, ("*", _TOOL)),
    ),
    "vertex-google": msgspec.structs.replace(
        _GOOGLE,
        base_url=places.vertex_google_url,
        sign_in=VertexTransport,
        api_key_env=None,
        other_key_env=None,
        key_required=False,
    ),
}
_THINKS_BACK = Quirks(thinking_field="reasoning_content", structured="json_object")

PROVIDERS: Mapping[str, Provider] = {
    **_CLOUDS,
    "anthropic": _ANTHROPIC,
    "deepseek": Provider(base_url="https://api.deepseek.com", api_key_env="DEEPSEEK_API_KEY", quirks=_THINKS_BACK),
    "google": _GOOGLE,
    "groq": Provider(
        base_url="https://api.groq.com/openai/v1",
        api_key_env="GROQ_API_KEY",
        quirks=Quirks(structured="json_object", max_tokens_field="max_completion_tokens"),
        models=(("openai/gpt-oss-*", {"structured": "json_schema"}), ("meta-llama/llama-4-*", _SEES_IMAGES)),
    ),
    "local": Provider(
        base_url="http://localhost",  # of this process; nothing is sent there
        sign_in=lambda _, settings: LocalTransport(models_folder(settings.environment)),
        key_required=False,
        quirks=Quirks(tool_calling="schema"),
    ),
    "llamacpp": Provider(base_url="http://localhost:8080/v1", key_required=False),
    "mistral": Provider(
        base_url="https://api.mistral.ai/v1",
        api_key_env="MISTRAL_API_KEY",
        quirks=Quirks(stream_usage=False, thinking_field="content"),
        models=tuple(
            (pattern, _SEES_IMAGES)
            for pattern in ("pixtral-*", "mistral-medium-*", "mistral-small-*", "mistral-large-*", "ministral-*")
        ),
    ),
    "ollama": Provider(
        base_url="http://localhost:11434/v1", key_required=False, quirks=Quirks(thinking_field="reasoning")
    ),
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
        models=tuple(
            (pattern, {"inputs": _IMAGE_AND_PDF})
            for pattern in (
                "anthropic/claude-*",
                "google/gemini-*",
                "openai/gpt-4o*",
                "openai/gpt-4.1*",
                "openai/gpt-5*",
            )
        ),
    ),
    "vllm": Provider(base_url="http://localhost:8000/v1", key_required=False),
}
"""All known providers; `openai-compatible` is any server of that API."""
_NO_MORE: Mapping[str, Provider] = MappingProxyType({})


def resolve(
    reference: str,
    *,
    base_url: str | None = None,
    api_key_env: str | None = None,
    tool_calling: ToolCalling | None = None,
    on_malformed: OnMalformed = "refuse",
    inputs: Collection[ModelInput] | None = None,
    environment: Mapping[str, str] | None = None,
    more: Mapping[str, Provider] = _NO_MORE,
) -> Endpoint:
    """The endpoint that a reference means.

    Args:
        reference: `provider:model`.
        base_url: Instead of the provider's own, for a proxy, a gateway or a self-hosted server.
        api_key_env: Instead of the provider's usual environment variable.
        tool_calling: Instead of the provider's usual way.
        on_malformed: Where tools are called by text: what becomes of an answer with a malformed block.
        inputs: What the model can read besides text, instead of what is known of it.
        environment: Where a cloud's region, project or resource is named; `os.environ` if null.
        more: Providers beside those of the table.

    Raises:
        InvalidSettings: The reference is malformed, the provider unknown, a URL is missing or invalid, or the provider
            takes no input of a kind.
    """
    name, colon, model = reference.strip().partition(":")
    name = _ALIASES.get(name, name)
    if not colon or not name or not model:
        raise InvalidSettings(_reference_problem(reference))
    provider = PROVIDERS.get(name) or more.get(name)
    if provider is None:
        known = (*PROVIDERS, *more)
        msg = f"model {reference!r}: {name!r} is not a known provider{_closest(name, known)}; {_list_providers(known)}"
        if name == "scripted":
            msg = f"model {reference!r} is not registered; pass it to the crib: Crib(models={{{reference!r}: …}})"
        raise InvalidSettings(msg)
    url = base_url or _usual_url(reference, provider, os.environ if environment is None else environment)
    quirks = quirks_of(provider, model)
    wire = provider.wire(name if provider.base_url else f"{name}/{urlsplit(url).hostname}")
    return Endpoint(
        provider=name,
        model=model,
        base_url=_check_url(reference, url),
        wire=wire,
        quirks=msgspec.structs.replace(
            quirks,
            tool_calling=tool_calling or quirks.tool_calling,
            on_malformed=on_malformed,
            inputs=quirks.inputs & wire.inputs if inputs is None else _check_inputs(reference, inputs, wire),
        ),
        api_key_env=api_key_env or provider.api_key_env,
        other_key_env=None if api_key_env else provider.other_key_env,
        key_required=provider.key_required or api_key_env is not None,
    )


def open_model(
    reference: str,
    transport: Transport,
    *,
    base_url: str | None = None,
    api_key_env: str | None = None,
    tool_calling: ToolCalling | None = None,
    on_malformed: OnMalformed = "refuse",
    inputs: Collection[ModelInput] | None = None,
    key: Callable[[], str | None] | None = None,
    prices: Prices | None = None,
    environment: Mapping[str, str] | None = None,
    more: Mapping[str, Provider] = _NO_MORE,
) -> Model:
    """The model that a reference means, ready for requests.

    Args:
        reference: `provider:model`.
        transport: How providers are reached. Where a provider needs more than a key, requests are signed before.
        base_url: See `resolve`.
        api_key_env: See `resolve`.
        tool_calling: See `resolve`.
        on_malformed: See `resolve`.
        inputs: See `resolve`.
        key: Gives the credential; by default it is read from the endpoint's environment variable at each call.
        prices: The rates; by default the shipped ones.
        environment: Where keys and a cloud's settings are; `os.environ` if null.
        more: See `resolve`.

    Raises:
        InvalidSettings: As `resolve`.
    """
    around = os.environ if environment is None else environment
    endpoint = resolve(
        reference,
        base_url=base_url,
        api_key_env=api_key_env,
        tool_calling=tool_calling,
        on_malformed=on_malformed,
        inputs=inputs,
        environment=around,
        more=more,
    )
    key = key or (lambda: endpoint.key_in(around))
    sign_in = (PROVIDERS.get(endpoint.provider) or more[endpoint.provider]).sign_in
    if sign_in is not None:
        settings = SdkSettings(provider=endpoint.provider, base_url=endpoint.base_url, environment=around, key=key)
        transport = sign_in(transport, settings)
    return Model(endpoint, transport, key=key, prices=prices)


def _usual_url(reference: str, provider: Provider, environment: Mapping[str, str]) -> str:
    match provider.base_url:
        case str(url):
            return url
        case None:
            raise InvalidSettings(f"model {reference!r} needs base_url, for example http://localhost:8000/v1")
        case address:
            try:
                return address(environment)
            except InvalidSettings as error:
                raise InvalidSettings(f"model {reference!r}: {error}") from None


def quirks_of(provider: Provider, model: str) -> Quirks:
    """What a model of a provider deviates in."""
    quirks = provider.quirks
    for pattern, different in provider.models:
        if fnmatchcase(model, pattern):
            quirks = msgspec.structs.replace(quirks, **different)
    return quirks


def _check_url(reference: str, url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidSettings(f"model {reference!r}: base_url {url!r} is not an http or https URL")
    return url.rstrip("/")


def _check_inputs(reference: str, inputs: Collection[ModelInput], wire: Wire) -> frozenset[ModelInput]:
    refused = sorted(set(inputs) - wire.inputs)
    if refused:
        takes = f"takes {', '.join(sorted(wire.inputs))}" if wire.inputs else "takes text only"
        msg = f"model {reference!r}: inputs has {refused[0]!r}, and its API {takes}; leave it out of inputs"
        raise InvalidSettings(msg)
    return frozenset(inputs)


def _reference_problem(reference: str) -> str:
    start = f"model {reference!r} is not written provider:model"
    for name in PROVIDERS:
        if reference.lower().startswith(_FAMILIES.get(name, ("\0",))):
            return f"{start}; did you mean {name}:{reference}?"
    return f"{start}, for example openai:gpt-4o or anthropic:claude-sonnet-4; {_list_providers(PROVIDERS)}"


_ALIASES: Mapping[str, str] = {"gemini": "google"}
_FAMILIES: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("claude",),
    "deepseek": ("deepseek-",),
    "google": ("gemini-", "gemma-"),
    "mistral": ("mistral-", "codestral", "ministral"),
    "openai": ("gpt-", "o1", "o3", "o4", "chatgpt"),
}


def _closest(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f", did you mean {close[0]!r}?" if close else ""


def _list_providers(known: Iterable[str]) -> str:
    return f"known providers are {', '.join(known)}"
