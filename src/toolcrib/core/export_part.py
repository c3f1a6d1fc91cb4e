"""Tools as others describe them: universal, OpenAI, Anthropic, LangChain and MCP. A description; nothing runs here."""

from toolcrib.core.export import check_description, describe, generate_description
from toolcrib.core.formats import FORMATS, ExportFormat, export_tools, offered
from toolcrib.core.names import export_names

__all__ = [
    "FORMATS",
    "ExportFormat",
    "check_description",
    "describe",
    "export_names",
    "export_tools",
    "generate_description",
    "offered",
]
