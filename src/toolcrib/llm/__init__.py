"""Models: neutral messages, wire formats, prices, retry rules, and a scripted model for tests.

It imports infrastructure and contracts; core and every package above it may import it. Tools are not run here.
Importing it is fast: the HTTP client and the price data load with the first request. Decisions: docs/decisions/0008,
0019.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.llm.base.errors import ModelRetryPolicy
    from toolcrib.llm.base.messages import (
        MODEL_TIMEOUTS,
        NO_TOOLS,
        CallDelta,
        CallEnd,
        CallStart,
        Done,
        Event,
        FilePart,
        Message,
        NamedTool,
        Opaque,
        Part,
        Reasoning,
        Request,
        Response,
        Stop,
        Text,
        TextChunk,
        Thinking,
        ThinkingChunk,
        TokenUsage,
        Tool,
        ToolCall,
        ToolChoice,
        ToolExample,
        ToolResult,
        ToolSet,
        UsageUpdate,
        assistant,
        check_characters,
        decode_messages,
        decode_response,
        encode_messages,
        encode_response,
        hash_request,
        messages_as_json,
        response_as_json,
        user,
    )
    from toolcrib.llm.base.prices import Cost, Prices, RateTable
    from toolcrib.llm.base.quirks import Quirks
    from toolcrib.llm.base.schema_signatures import signature
    from toolcrib.llm.base.transport import MAX_RESPONSE_BYTES, HttpTransport, Transport
    from toolcrib.llm.base.wire import Decoder, Wire
    from toolcrib.llm.models.catalog import PROVIDERS, Provider, open_model, resolve
    from toolcrib.llm.models.model import Endpoint, LanguageModel, Model
    from toolcrib.llm.models.pool import ModelPool, TextProtocol
    from toolcrib.llm.models.scripted import Script, ScriptedAnswer, ScriptedModel
    from toolcrib.llm.wires import AnthropicWire, ChatWire, GeminiWire, ResponsesWire
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.llm.base.errors": "ModelRetryPolicy",
            "toolcrib.llm.base.messages": (
                "CallDelta CallEnd CallStart Done Event FilePart MODEL_TIMEOUTS Message NO_TOOLS NamedTool Opaque "
                "Part Reasoning Request Response Stop Text TextChunk Thinking ThinkingChunk TokenUsage Tool ToolCall "
                "ToolChoice ToolExample ToolResult ToolSet UsageUpdate assistant check_characters decode_messages "
                "decode_response encode_messages encode_response hash_request messages_as_json response_as_json "
                "user"
            ),
            "toolcrib.llm.base.prices": "Cost Prices RateTable",
            "toolcrib.llm.base.quirks": "Quirks",
            "toolcrib.llm.base.schema_signatures": "signature",
            "toolcrib.llm.base.transport": "HttpTransport MAX_RESPONSE_BYTES Transport",
            "toolcrib.llm.base.wire": "Decoder Wire",
            "toolcrib.llm.models.catalog": "PROVIDERS Provider open_model resolve",
            "toolcrib.llm.models.model": "Endpoint LanguageModel Model",
            "toolcrib.llm.models.pool": "ModelPool TextProtocol",
            "toolcrib.llm.models.scripted": "Script ScriptedAnswer ScriptedModel",
            "toolcrib.llm.wires": "AnthropicWire ChatWire GeminiWire ResponsesWire",
        },
    )

__all__ = [
    "MAX_RESPONSE_BYTES",
    "MODEL_TIMEOUTS",
    "NO_TOOLS",
    "PROVIDERS",
    "AnthropicWire",
    "CallDelta",
    "CallEnd",
    "CallStart",
    "ChatWire",
    "Cost",
    "Decoder",
    "Done",
    "Endpoint",
    "Event",
    "FilePart",
    "GeminiWire",
    "HttpTransport",
    "LanguageModel",
    "Message",
    "Model",
    "ModelPool",
    "ModelRetryPolicy",
    "NamedTool",
    "Opaque",
    "Part",
    "Prices",
    "Provider",
    "Quirks",
    "RateTable",
    "Reasoning",
    "Request",
    "Response",
    "ResponsesWire",
    "Script",
    "ScriptedAnswer",
    "ScriptedModel",
    "Stop",
    "Text",
    "TextChunk",
    "TextProtocol",
    "Thinking",
    "ThinkingChunk",
    "TokenUsage",
    "Tool",
    "ToolCall",
    "ToolChoice",
    "ToolExample",
    "ToolResult",
    "ToolSet",
    "Transport",
    "UsageUpdate",
    "Wire",
    "assistant",
    "check_characters",
    "decode_messages",
    "decode_response",
    "encode_messages",
    "encode_response",
    "hash_request",
    "messages_as_json",
    "open_model",
    "resolve",
    "response_as_json",
    "signature",
    "user",
]
