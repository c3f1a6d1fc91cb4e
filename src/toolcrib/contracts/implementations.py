"""What a tool is made of: a union tagged by `kind`. The executor knows none of them; a runtime each does.

Kinds are added as their runtimes are built: `python`, `http` and `agentic` today.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts._base import Contract, Json, JsonObject, JsonSchema
from toolcrib.contracts.models import Limits, LLMConfig

ParameterPlace: TypeAlias = Literal["path", "query", "header", "cookie"]
ParameterStyle: TypeAlias = Literal[
    "simple", "label", "matrix", "form", "spaceDelimited", "pipeDelimited", "deepObject"
]
AgenticMode: TypeAlias = Literal["deterministic", "agentic"]
HttpMethod: TypeAlias = Literal["GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"]


class PythonImplementation(Contract):
    """A Python function of the application. It is bound by content hash at start, never imported by this name."""

    kind: Literal["python"] = "python"
    function: str
    """`module:qualname`, for people to read."""


class HttpParameter(Contract):
    """How one argument travels outside the body (OpenAPI 3.1, Parameter Object)."""

    name: str
    """Name on the wire."""
    argument: str
    """Name in the tool's input."""
    place: ParameterPlace
    style: ParameterStyle = "form"
    explode: bool = True
    required: bool = False
    allow_reserved: bool = False


class HttpBody(Contract):
    """How the request body is made from the arguments."""

    content_type: str = "application/json"
    argument: str | None = None
    """The argument that is the whole body; if null, the body is an object of `fields`."""
    fields: dict[str, str] = Field(default_factory=dict)
    """Argument name to name on the wire."""
    required: bool = False


class CursorPaging(Contract):
    """A response names the next page; the cursor goes back into the request."""

    cursor_in: str
    """Argument that takes the cursor."""
    cursor_out: str
    """RFC 9535 path of the next cursor in the response; nothing found means the last page."""
    items: str
    """Name of the list in the response, which is concatenated over the pages."""
    limit_argument: str | None = None
    """Argument for the page size; filled with `page_size` where the caller gives none."""
    page_size: int | None = None
    max_pages: int = Field(default=100, ge=1)


class HttpImplementation(Contract):
    """One HTTP operation. Credentials and default headers come from its provider."""

    kind: Literal["http"] = "http"
    method: HttpMethod
    url: str
    """Absolute, with `{name}` for path parameters."""
    parameters: tuple[HttpParameter, ...] = ()
    body: HttpBody | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    provider: str | None = None
    """Name of the provider whose authentication is used."""
    paging: CursorPaging | None = None


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
