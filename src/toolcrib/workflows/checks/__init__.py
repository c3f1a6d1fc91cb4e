"""Checks of definitions before they are saved: names, graph, expressions, tools and types.

Nothing is run or stored here. `workflows.edit` and the crib import it.
"""

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
