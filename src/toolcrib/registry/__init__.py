"""The catalogue of tools: definitions, versions, schemas, and Python functions as tools."""

from toolcrib.registry.catalog import Registry
from toolcrib.registry.checks import check_definition
from toolcrib.registry.functions import FunctionTool, ToolContext, ToolOptions, as_function_tool, tool
from toolcrib.registry.providers import Providers
from toolcrib.registry.validation import LABELS, Problem, SchemaValidator, compile_schema
from toolcrib.registry.versions import Version, newest, satisfies

__all__ = [
    "LABELS",
    "FunctionTool",
    "Problem",
    "Providers",
    "Registry",
    "SchemaValidator",
    "ToolContext",
    "ToolOptions",
    "Version",
    "as_function_tool",
    "check_definition",
    "compile_schema",
    "newest",
    "satisfies",
    "tool",
]
