"""Differences between endpoints of the same API, and profiles of models, as data.

The defaults fit an unknown OpenAI-compatible server: the features that the current vLLM, llama.cpp, Ollama, LM Studio
and most gateways support. A model without a profile counts as a large one.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from toolcrib.contracts import OnMalformed, ToolCalling
from toolcrib.contracts.base.media import ModelInput
from toolcrib.llm.base.messages import Request
from toolcrib.llm.base.strict import StrictDialect


class Profile(Struct, frozen=True):
    """What a model is good for."""

    reads_tasks: bool = True
    """It can say of every word of a task what it is for. One that cannot is not asked to; its plans are held against
    what stands in the task as it is, and what they leave out is put to it as a question. It corrects no call that
    writes: what such a model changes then is not what the task says."""
    ends_texts: bool = True
    """It ends what it writes. One that goes on and on is told the longest length of an answer's summary, and words no
    questions."""
    temperature: float = 0.2
    """With which it is asked if the author of a tool says nothing."""


LARGE: Final = Profile()
_KNOWN: Final[Mapping[str, Profile]] = MappingProxyType(
    {"local:qwen2.5-coder-1.5b": Profile(reads_tasks=False, ends_texts=False, temperature=0.0)}
)


def profile_of(model: str) -> Profile:
    """The profile of a model.

    Args:
        model: `provider:model`.
    """
    return _KNOWN.get(model, LARGE)


StructuredMode: TypeAlias = Literal["json_schema", "json_object", "tool", "prompt"]
"""How an answer is made to follow a schema.

`json_schema`: the API's own constraint, the strongest. `tool`: a tool that the model must call and whose arguments
are the answer, for models older than the constraint. `json_object`: the API guarantees JSON, the prompt states the
schema. `prompt`: the prompt alone.
"""


class Quirks(Struct, frozen=True, kw_only=True):
    """One endpoint's, or one model's, deviations."""

    max_tokens_field: str = "max_tokens"
    max_tokens_default: int | None = None
    """Sent when the request names no limit; for APIs that demand one."""
    strict: StrictDialect | None = None
    """Which part of JSON Schema the endpoint enforces.

    None sends schemas as they are, without asking for strictness.
    """
    strict_tools: bool = False
    """Whether tools ask for strictness too; an unknown `strict` field is an error at some servers."""
    structured: StructuredMode = "json_schema"
    structured_with_tools: StructuredMode | None = None
    """Instead of that when the request has tools too, for APIs that refuse the two together."""
    tool_calling: ToolCalling = "native"
    on_malformed: OnMalformed = "refuse"
    """Where tools are called by text: what becomes of an answer with a malformed block."""
    schema_calls: int = 8
    """Most calls in one answer where tools are called by schema.

    1 for small models, which otherwise guess what they could look up.
    """
    stream_usage: bool = True
    """Whether `stream_options.include_usage` is understood."""
    system_role: Literal["system", "developer", "user"] = "system"
    sampling: bool = True
    """Whether temperature, top_p and the penalties are accepted; reasoning models refuse them."""
    penalties: bool = True
    """Whether frequency and presence penalties are accepted at all."""
    thinking_field: str | None = None
    """The field of an assistant message in which the endpoint takes its own reasoning text back, if it does.

    `content` means as a piece of the content.
    """
    replay_fields: frozenset[str] = frozenset()
    """Further fields of an assistant message that the endpoint takes back.

    Others would be an error at strict servers.
    """
    prompt_cache: bool = False
    """Whether the endpoint caches prompts only where they are marked; others cache by themselves, or not at all."""
    encrypted_reasoning: bool = False
    """Whether the model's reasoning is asked for in encrypted form, to be sent back; other models refuse the wish."""
    effort_as_budget: bool = False
    """Whether a reasoning effort must be sent as a number of tokens."""
    inputs: frozenset[ModelInput] = frozenset()
    """What the model can read besides text; nothing of a model of which nothing is known."""
    files_in_results: bool = True
    """Whether a result of a tool can hold files; else they follow on the results."""
    signed_calls: bool = False
    """Whether the endpoint refuses a turn of tool calls that it did not sign, unless it is marked."""

    def settings_to_drop(self, request: Request) -> tuple[str, ...]:
        """The settings of a request that this endpoint cannot take and that are therefore not sent; for a warning."""
        refused: list[str] = []
        if not self.sampling:
            refused += ["temperature", "top_p"]
        if not (self.sampling and self.penalties):
            refused += ["frequency_penalty", "presence_penalty"]
        return tuple(name for name in refused if getattr(request, name) is not None)
