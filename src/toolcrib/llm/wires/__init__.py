"""The wire formats: one module per provider API. Pure parsing and rendering behind the `Wire` port; no I/O."""

from toolcrib.llm.wires.anthropic import AnthropicWire
from toolcrib.llm.wires.chat import ChatWire
from toolcrib.llm.wires.gemini import GeminiWire
from toolcrib.llm.wires.plain import PlainForm, PlainWire
from toolcrib.llm.wires.responses import ResponsesWire

__all__ = ["AnthropicWire", "ChatWire", "GeminiWire", "PlainForm", "PlainWire", "ResponsesWire"]
