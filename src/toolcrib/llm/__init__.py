"""Models: neutral messages, the providers' wire formats, prices, retries, and a scripted twin. No tool runs here.

Nothing heavy loads on import: the HTTP client and the price data come with the first call that needs them.
"""

from toolcrib.llm.base.codec import (
    check_characters,
    decode_messages,
    decode_response,
    encode_messages,
    encode_response,
    hash_request,
    messages_as_json,
    response_as_json,
)
from toolcrib.llm.base.events import CallDelta, CallEnd, CallStart, Done, Event, TextDelta, ThinkingDelta, UsageUpdate
from toolcrib.llm.base.messages import (
    MODEL_TIMEOUTS,
    NO_TOOLS,
    Message,
    NamedTool,
    Opaque,
    Part,
    Reasoning,
    Request,
    Response,
    Stop,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolExample,
    ToolResult,
    ToolSet,
    Usage,
    assistant,
    user,
)
from toolcrib.llm.base.prices import Cost, Prices, RateTable
from toolcrib.llm.base.quirks import Quirks
from toolcrib.llm.base.retry import RetryPolicy
from toolcrib.llm.base.signatures import signature
from toolcrib.llm.base.transport import MAX_RESPONSE_BYTES, HttpTransport, Transport
from toolcrib.llm.base.wire import Decoder, Wire
from toolcrib.llm.models.catalog import PROVIDERS, Provider, open_model, resolve
from toolcrib.llm.models.model import Endpoint, LanguageModel, Model
from toolcrib.llm.models.pool import ModelPool
from toolcrib.llm.models.scripted import Script, ScriptedAnswer, ScriptedModel
from toolcrib.llm.models.text_protocol import TextProtocol
from toolcrib.llm.wires import AnthropicWire, ChatWire, GeminiWire, ResponsesWire

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
    "GeminiWire",
    "HttpTransport",
    "LanguageModel",
    "Message",
    "Model",
    "ModelPool",
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
    "RetryPolicy",
    "Script",
    "ScriptedAnswer",
    "ScriptedModel",
    "Stop",
    "Text",
    "TextDelta",
    "TextProtocol",
    "Thinking",
    "ThinkingDelta",
    "Tool",
    "ToolCall",
    "ToolChoice",
    "ToolExample",
    "ToolResult",
    "ToolSet",
    "Transport",
    "Usage",
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
