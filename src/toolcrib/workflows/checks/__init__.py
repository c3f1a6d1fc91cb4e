"""Checks of definitions before they are saved: names, graph, expressions, tools and types.

Nothing is run or stored here. `workflows.edit` and the crib import it.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.workflows.checks.documents import DefinitionDocument, read_definition, refusal
    from toolcrib.workflows.checks.structure.prepared_definition import CheckContext, draw, near
    from toolcrib.workflows.checks.workflow_check import Checked, check_condition, check_registration, check_workflow
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.workflows.checks.documents": "DefinitionDocument read_definition refusal",
            "toolcrib.workflows.checks.structure.prepared_definition": "CheckContext draw near",
            "toolcrib.workflows.checks.workflow_check": "Checked check_condition check_registration check_workflow",
        },
    )

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
