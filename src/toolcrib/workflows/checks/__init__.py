"""Checking workflows before anybody can run them: names, graph, expressions, tools and types."""

from toolcrib.workflows.checks.checking_part import Checked, check_workflow
from toolcrib.workflows.checks.documents import Document, read_definition, refusal
from toolcrib.workflows.checks.structure.drawing import draw
from toolcrib.workflows.checks.structure.nearest import near
from toolcrib.workflows.checks.structure.surroundings import Surroundings
from toolcrib.workflows.checks.vocabulary import check_condition, check_registration

__all__ = [
    "Checked",
    "Document",
    "Surroundings",
    "check_condition",
    "check_registration",
    "check_workflow",
    "draw",
    "near",
    "read_definition",
    "refusal",
]
