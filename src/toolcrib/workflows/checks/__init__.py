"""Checking workflows before anybody can run them: names, graph, expressions, tools and types."""

from toolcrib.workflows.checks.checking import Checked, check_condition, check_registration, check_workflow
from toolcrib.workflows.checks.documents import DefinitionDocument, read_definition, refusal
from toolcrib.workflows.checks.structure.layout import CheckContext, draw, near

__all__ = [
    "CheckContext",
    "Checked",
    "DefinitionDocument",
    "check_condition",
    "check_registration",
    "check_workflow",
    "draw",
    "near",
    "read_definition",
    "refusal",
]
