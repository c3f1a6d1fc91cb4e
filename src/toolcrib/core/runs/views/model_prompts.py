"""A model request as people read it: its messages, tools and settings, and its length in tokens."""

from datetime import datetime
from typing import Final

import msgspec

from toolcrib.contracts.tools.rendered_prompts import ModelPrompt, PromptTokens, PromptTool
from toolcrib.llm import LanguageModel, Request, TokenUsage, messages_as_json
from toolcrib.llm.base.prices import estimate_tokens, tokens_of

_METHOD: Final = "estimate: four characters are one token"
_SETTINGS: Final = (
    "max_tokens",
    "temperature",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "reasoning",
    "parallel_tool_calls",
    "extra",
)


def prompt_of_request(model: LanguageModel, request: Request, at: datetime) -> ModelPrompt:
    """What a model is asked.

    Args:
        model: Who is asked, and what it costs.
        request: The request.
        at: The moment whose prices count.
    """
    system, messages = tokens_of(len(request.system)), estimate_tokens(request.messages)
    tools = tokens_of(request.tools.size if request.tools else 0)
    total = system + messages + tools
    settings = {name: getattr(request, name) for name in _SETTINGS}
    return ModelPrompt(
        model=model.name,
        system=request.system,
        messages=tuple(messages_as_json(request.messages)["messages"]),
        tools=tuple(
            PromptTool(name=tool.name, description=tool.description, input_schema=tool.schema)
            for tool in request.tools.tools
        ),
        tool_choice=msgspec.to_builtins(request.tool_choice),
        output_schema=request.output_schema,
        settings=msgspec.to_builtins({name: value for name, value in settings.items() if value not in (None, {})}),
        tokens=PromptTokens(system=system, messages=messages, tools=tools, total=total, method=_METHOD),
        input_cost_usd=model.cost(TokenUsage(input=total, output=0, estimated=True), at).usd,
    )
