"""What a tool is made of: a union tagged by `kind`. The executor knows none of them; a runtime each does.

Kinds are added as their runtimes are built: `python`, `http` and `agentic` today.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts._base import Contract, Json, JsonObject, JsonSchema
from toolcrib.contracts.http import HttpImplementation
from toolcrib.contracts.models import Limits, LLMConfig

AgenticMode: TypeAlias = Literal["deterministic", "agentic"]


class PythonImplementation(Contract):
    """A Python function of the application. It is bound by content hash at start, never imported by this name."""

    kind: Literal["python"] = "python"
    function: str
    """`module:qualname`, for people to read."""


class AgenticStep(Contract):
    """One step of the fixed sequence of the deterministic mode."""

    id: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """Unique in the sequence; references and the journal name it."""
    tool: str
    """`name` or `name@range`."""
    purpose: str = ""


class AllocatedTool(Contract):
    """One tool that the agentic mode may choose."""

    tool: str
    priority: int = 0
    """A hint: higher is preferred."""


class ReferenceSource(Contract):
    """A named list of valid values, as context for the model and as live enums in the schemas it sees."""

    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """`{{reference_data.NAME}}` in the prompt."""
    tool: str | None = None
    """Tool that lists the values; null if `values` are given."""
    input: JsonObject = Field(default_factory=dict)
    values: tuple[Json, ...] = ()
    items: str = "$[*]"
    """RFC 9535 path of the items in the tool's output."""
    value: str = "id"
    """Field of an item that is sent."""
    label: str = "label"
    """Field of an item that people say."""
    applies_to: tuple[str, ...] = ()
    """Property names in the tools' schemas whose values this list closes."""


class AgenticContext(Contract):
    """What the embedded model is told besides the task."""

    include_schemas: bool = True
    reference_data: tuple[ReferenceSource, ...] = ()
    documentation: str = ""
    example_queries: tuple[str, ...] = ()


class AgenticImplementation(Contract):
    """A tool with a model inside (000): a fixed sequence that it fills in, or a choice of tools that it makes."""

    kind: Literal["agentic"] = "agentic"
    mode: AgenticMode
    llm: LLMConfig
    system_prompt: str
    """A template over `{{integration_schema}}`, `{{reference_data}}`, `{{user_task}}`, `{{available_tools}}`,
    `{{execution_history}}`."""
    steps: tuple[AgenticStep, ...] = ()
    tools: tuple[AllocatedTool, ...] = ()
    context: AgenticContext = AgenticContext()
    limits: Limits = Limits()
    result_schema: JsonSchema | None = None
    """Schema of the formatted answer; null for `{"summary": text}`."""


Implementation: TypeAlias = Annotated[
    PythonImplementation | HttpImplementation | AgenticImplementation, Field(discriminator="kind")
]
