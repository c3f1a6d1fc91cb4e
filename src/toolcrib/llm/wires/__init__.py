"""The wire formats, one module per provider API: pure rendering and parsing behind the `Wire` port.

They import `llm.base` only; `llm.models` imports them.
"""

from toolcrib.llm.wires.anthropic import AnthropicWire
from toolcrib.llm.wires.chat import ChatWire
from toolcrib.llm.wires.gemini import GeminiWire
from toolcrib.llm.wires.plain import PlainForm, PlainWire
from toolcrib.llm.wires.responses import ResponsesWire

__all__ = ["AnthropicWire", "ChatWire", "GeminiWire", "PlainForm", "PlainWire", "ResponsesWire"]
