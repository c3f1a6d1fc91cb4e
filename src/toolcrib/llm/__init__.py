"""Models: neutral messages, the providers' wire formats, prices, retries, and a scripted twin. No tool runs here.

Nothing heavy loads on import: the HTTP client and the price data come with the first call that needs them.
"""

from toolcrib.llm.codec import decode_messages, decode_response, encode_messages, encode_response
from toolcrib.llm.events import CallDelta, CallEnd, CallStart, Done, Event, TextDelta, ThinkingDelta, UsageUpdate
from toolcrib.llm.messages import (
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
    ToolResult,
    ToolSet,
    Usage,
    assistant,
    user,
)
from toolcrib.llm.prices import Cost
from toolcrib.llm.quirks import Quirks
from toolcrib.llm.scripted import ScriptedModel

__all__ = [
    "MODEL_TIMEOUTS",
    "NO_TOOLS",
    "CallDelta",
    "CallEnd",
    "CallStart",
    "Cost",
    "Done",
    "Event",
    "Message",
    "NamedTool",
    "Opaque",
    "Part",
    "Quirks",
    "Reasoning",
    "Request",
    "Response",
    "ScriptedModel",
    "Stop",
    "Text",
    "TextDelta",
    "Thinking",
    "ThinkingDelta",
    "Tool",
    "ToolCall",
    "ToolChoice",
    "ToolResult",
    "ToolSet",
    "Usage",
    "UsageUpdate",
    "assistant",
    "decode_messages",
    "decode_response",
    "encode_messages",
    "encode_response",
    "user",
]
