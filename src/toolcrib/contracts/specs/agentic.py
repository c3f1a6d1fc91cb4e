"""A tool with a model inside: its mode, its tools, what its model is told (000, sections 4.2 to 4.4)."""

from typing import Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract, JsonSchema
from toolcrib.contracts.providers.providers import ProviderData, ReferenceSource
from toolcrib.contracts.specs.models import Limits, LLMConfig

AgenticMode: TypeAlias = Literal["deterministic", "agentic"]
AgenticStatus: TypeAlias = Literal["draft", "active", "disabled"]
Grounding: TypeAlias = Literal["evidence", "strict", "off"]
"""How sure one must be of what a model takes from a task. evidence: each value that decides says where it comes from;
doubts are put to a second reading, then to a person. strict: nothing is taken on a model's word, and tasks that only
read are held to it too. off: any plan that meets its schema runs."""


class AgenticStep(Contract):
    """One step of the fixed sequence of the deterministic mode."""

    id: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """Unique in the sequence; references and the journal name it."""
    tool: str
    """`name` or `name@range`."""
    purpose: str = ""


class AllocatedTool(Contract):
    """A tool that the agentic mode may choose, or many."""

    tool: str
    """`name`, `name@range`, a pattern of names (`stripe.*`), or a group (`group:stripe/customers`)."""
    priority: int = 0
    """A hint: higher is preferred."""


class AgenticContext(Contract):
    """What the embedded model is told besides the task."""

    include_schemas: bool = True
    reference_data: tuple[ReferenceSource, ...] = ()
    """Lists of the tool's own."""
    provider_data: tuple[ProviderData, ...] = ()
    """Lists that providers declare."""
    documentation: str = ""
    """Stands where the prompt says `{{documentation}}`, else after it."""
    example_queries: tuple[str, ...] = ()
    """Stand where the prompt says `{{example_queries}}`, else after it."""


class AgenticImplementation(Contract):
    """A tool with a model inside (000): a fixed sequence that it fills in, or a choice of tools that it makes."""

    kind: Literal["agentic"] = "agentic"
    status: AgenticStatus = "active"
    """A draft is run by its author's tests only, a disabled tool by nobody (000, section 4.2)."""
    mode: AgenticMode
    llm: LLMConfig
    system_prompt: str
    """A template over the placeholders that docs/agentic-tools.md lists, such as `{{user_task}}`."""
    steps: tuple[AgenticStep, ...] = ()
    tools: tuple[AllocatedTool, ...] = ()
    context: AgenticContext = AgenticContext()
    limits: Limits = Limits()
    grounding: Grounding = "evidence"
    preview_above: int = Field(default=500, ge=0)
    """A change of more items than this waits for a person, who is shown how many there are and some of them."""
    result_schema: JsonSchema | None = None
    """Schema of the formatted answer; null for `{"summary": text}`."""
    made_from: dict[str, str] = Field(default_factory=dict)
    """What the prompt was made from: content hashes of the tools by reference, and of providers' lists as
    `reference_data.NAME`. Filled in when the definition is saved; drift is told against it."""
