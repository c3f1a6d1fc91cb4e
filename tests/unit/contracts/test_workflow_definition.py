"""A workflow as one flat document, and as the tool that it is stored as: nothing is lost between them."""

import pytest

from toolcrib.contracts import InvalidDefinition, ToolDefinition
from toolcrib.contracts.workflows import WorkflowDefinition
from toolcrib.kinds.python.shape import PythonImplementation

pytestmark = pytest.mark.requirement("workflow_checks.flat_document")


def test_a_document_is_the_tool_that_is_made_of_it():
    steps = [{"name": "look", "tool": "search", "forEach": "${input.names}", "onError": {"goTo": "tell"}}]
    told = {"name": "tell", "output": "${error.message}"}
    document = WorkflowDefinition.model_validate(
        {"name": "flow", "steps": [*steps, told], "side_effects": "reads", "output": "${look}", "tags": ["a"]}
    )

    assert WorkflowDefinition.of(document.tool()) == document
    assert WorkflowDefinition.model_validate(document.model_dump(mode="json")) == document


def test_a_tool_of_another_kind_is_no_workflow():
    search = ToolDefinition(name="search", implementation=PythonImplementation(function="shop:search"))

    with pytest.raises(InvalidDefinition, match="tool 'search' is of kind 'python', not a workflow"):
        WorkflowDefinition.of(search)
