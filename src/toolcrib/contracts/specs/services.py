"""A model provider that an operator defines: a gateway, a server, a reasoning service with an interface of its own."""

from typing import Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract, JsonObject
from toolcrib.contracts.specs.models import ToolCalling

ServiceWire: TypeAlias = Literal["openai", "openai-responses", "anthropic", "google", "plain"]


class ModelService(Contract):
    """Where models are and how they are spoken to; `NAME:MODEL` names one of them."""

    base_url: str
    wire: ServiceWire = "openai"
    """The API that it has; `plain`: one request and one answer of JSON, as the fields below say."""
    api_key_env: str | None = None
    """Variable of the key; null if it wants none."""
    tool_calling: ToolCalling | None = None
    """Null for the usual way of the wire; `plain` always calls by schema."""
    path: str = ""
    """For `plain`: behind `base_url`."""
    headers: dict[str, str] = Field(default_factory=dict)
    """For `plain`: templates over `key`; `authorization: Bearer ${key}` if empty and there is a key."""
    request: JsonObject = Field(default_factory=lambda: {"system": "${system}", "prompt": "${prompt}"})
    """For `plain`: the body, with templates over `model`, `system`, `prompt` (the conversation as one text), `messages`
    (a list of `{role, text}`), `schema`, `temperature` and `max_tokens`."""
    text: str = "$.text"
    """For `plain`: RFC 9535 path of the answer's text."""
    input_tokens: str | None = None
    """For `plain`: RFC 9535 path of the tokens read; they are estimated if null."""
    output_tokens: str | None = None
    """For `plain`: likewise, of those written."""
