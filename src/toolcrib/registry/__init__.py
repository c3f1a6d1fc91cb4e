"""The catalogue of tools: definitions, versions, schemas, search, and Python functions as tools."""

from toolcrib.registry.authentication import references_of
from toolcrib.registry.bindings import bindings, pins_of
from toolcrib.registry.callees import check_callees
from toolcrib.registry.catalog import Registry
from toolcrib.registry.changes import classify, compare_input, compare_output
from toolcrib.registry.checks import check_definition
from toolcrib.registry.code import code_tool
from toolcrib.registry.functions import FunctionTool, ToolContext, ToolOptions, as_function_tool, tool
from toolcrib.registry.http import check_http
from toolcrib.registry.providers import Providers
from toolcrib.registry.search import Hit, ToolGroup, ToolSearch, group_of
from toolcrib.registry.shelf import Facet, Shelf
from toolcrib.registry.validation import LABELS, Problem, SchemaValidator, compile_schema
from toolcrib.registry.versions import Version, newest, satisfies

__all__ = [
    "LABELS",
    "Facet",
    "FunctionTool",
    "Hit",
    "Problem",
    "Providers",
    "Registry",
    "SchemaValidator",
    "Shelf",
    "ToolContext",
    "ToolGroup",
    "ToolOptions",
    "ToolSearch",
    "Version",
    "as_function_tool",
    "bindings",
    "check_callees",
    "check_definition",
    "check_http",
    "code_tool",
    "classify",
    "compare_input",
    "compare_output",
    "compile_schema",
    "group_of",
    "newest",
    "pins_of",
    "references_of",
    "satisfies",
    "tool",
]
