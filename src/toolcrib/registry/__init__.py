"""The catalogue of tools: definitions, versions, schemas, search, and Python functions as tools."""

from toolcrib.registry.adoption import (
    Decision,
    Standing,
    plan_absence,
    plan_adoption,
    plan_provider,
    settled,
    summary_of,
    versions_of,
)
from toolcrib.registry.authentication import all_references_of, references_of
from toolcrib.registry.bindings import GROUP, TAG, bindings, means_many, refers_to
from toolcrib.registry.callees import check_callees
from toolcrib.registry.catalog import Registry, stored_tool
from toolcrib.registry.changes import classify, compare_input, compare_output
from toolcrib.registry.checks import check_definition
from toolcrib.registry.code import code_tool
from toolcrib.registry.composites import composite_definition, misfits
from toolcrib.registry.concerns import concerns
from toolcrib.registry.functions import FunctionTool, ToolContext, ToolOptions, as_function_tool, tool, tools_of
from toolcrib.registry.http import check_http
from toolcrib.registry.impact import dependents_of
from toolcrib.registry.locks import Lock, Locked, Transition, called_by, lock_of, meant, pins_of
from toolcrib.registry.named import ItemT, Named
from toolcrib.registry.notices import notice_of, warnings_at_start, warnings_for
from toolcrib.registry.providers import Providers, stored_provider
from toolcrib.registry.search import Hit, ToolGroup, ToolSearch, group_of
from toolcrib.registry.shelf import Facet, Shelf
from toolcrib.registry.unreadable import why_unreadable
from toolcrib.registry.validation import LABELS, Problem, SchemaValidator, compile_schema
from toolcrib.registry.versions import Version, newest, satisfies

__all__ = [
    "GROUP",
    "LABELS",
    "TAG",
    "Decision",
    "Facet",
    "FunctionTool",
    "Hit",
    "ItemT",
    "Lock",
    "Locked",
    "Named",
    "Problem",
    "Providers",
    "Registry",
    "SchemaValidator",
    "Shelf",
    "Standing",
    "ToolContext",
    "ToolGroup",
    "ToolOptions",
    "ToolSearch",
    "Transition",
    "Version",
    "all_references_of",
    "as_function_tool",
    "bindings",
    "called_by",
    "check_callees",
    "check_definition",
    "check_http",
    "classify",
    "code_tool",
    "compare_input",
    "compare_output",
    "compile_schema",
    "composite_definition",
    "concerns",
    "dependents_of",
    "group_of",
    "lock_of",
    "means_many",
    "meant",
    "misfits",
    "newest",
    "notice_of",
    "pins_of",
    "plan_absence",
    "plan_adoption",
    "plan_provider",
    "references_of",
    "refers_to",
    "satisfies",
    "settled",
    "stored_provider",
    "stored_tool",
    "summary_of",
    "tool",
    "tools_of",
    "versions_of",
    "warnings_at_start",
    "warnings_for",
    "why_unreadable",
]
