"""What a tool is made of: a union tagged by `kind`. The executor knows none of them; a runtime each does."""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract
from toolcrib.contracts.kinds.code import CodeImplementation
from toolcrib.contracts.kinds.composites import CompositeImplementation
from toolcrib.contracts.kinds.entities import EntityImplementation
from toolcrib.contracts.kinds.grpc import GrpcImplementation
from toolcrib.contracts.kinds.http import HttpImplementation
from toolcrib.contracts.kinds.mcp import McpImplementation
from toolcrib.contracts.kinds.plugins import PluginImplementation
from toolcrib.contracts.specs.agents import AgenticImplementation, AgentImplementation
from toolcrib.contracts.specs.workflow_steps import WorkflowImplementation
from toolcrib.kinds.graphql.shape import GraphqlImplementation


class PythonImplementation(Contract):
    """A Python function of the application. It is bound by content hash at start, never imported by this name."""

    kind: Literal["python"] = "python"
    function: str
    """`module:qualname`, for people to read."""


Implementation: TypeAlias = Annotated[
    PythonImplementation
    | HttpImplementation
    | McpImplementation
    | GrpcImplementation
    | GraphqlImplementation
    | EntityImplementation
    | CodeImplementation
    | CompositeImplementation
    | AgenticImplementation
    | AgentImplementation
    | WorkflowImplementation
    | PluginImplementation,
    Field(discriminator="kind"),
]

DELEGATES: Final[frozenset[Literal["agent", "agentic", "code", "composite", "workflow"]]] = frozenset(
    {"agent", "agentic", "code", "composite", "workflow"}
)
"""Kinds whose call is a run of its own, in which they call other tools."""
