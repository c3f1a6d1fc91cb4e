"""What an operation is made of, whatever the document's version: the form from which tools are made.

References are resolved and the defaults of paths and documents applied; schemas are still as the document has them.
"""

from dataclasses import dataclass, field

from toolcrib.contracts import FieldEncoding, HttpMethod, ParameterPlace, ParameterStyle
from toolcrib.core.providers.losses import Losses
from toolcrib.kinds.http.openapi.read.nodes import Node


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter outside the body."""

    node: Node
    """The Parameter Object, for its description."""
    name: str
    place: ParameterPlace
    schema: Node
    """Null in a parameter without a schema."""
    style: ParameterStyle
    explode: bool
    required: bool
    allow_reserved: bool = False
    allow_empty: bool = False
    content_type: str | None = None
    """Media type in which the value is written, instead of a style."""


@dataclass(frozen=True, slots=True)
class BodyField:
    """One property of a body."""

    name: str
    schema: Node
    required: bool
    description: Node | None = None
    """Where a description of its own stands."""
    encoding: FieldEncoding | None = None


@dataclass(frozen=True, slots=True)
class Media:
    """One way to write a body or an answer."""

    type: str
    schema: Node
    """Null if there is none."""
    encoding: Node
    """Encoding Objects by property; null if there are none."""
    place: str
    fields: tuple[BodyField, ...] = ()
    """The fields of a form of OpenAPI 2.0, which has no schema."""


@dataclass(frozen=True, slots=True)
class Body:
    """A request body."""

    node: Node
    media: tuple[Media, ...]
    required: bool | None
    """Null where the document does not say."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One response."""

    status: str
    """`200`, `2XX` or `default`."""
    node: Node
    media: tuple[Media, ...]
    headers: Node


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path."""

    method: HttpMethod
    path: str
    node: Node
    """The Operation Object."""
    parameters: tuple[Parameter, ...]
    body: Body | None
    answers: tuple[Answer, ...]
    security: Node | None
    """Security Requirement Objects of its own; null for the document's."""
    servers: tuple[Node, ...]
    """Server Objects of the operation or its path alone, not those of the document."""
    losses: Losses = field(compare=False)
    kept: list[str] = field(compare=False, default_factory=list[str])

    @property
    def key(self) -> str:
        """`GET /deals/{id}`."""
        return f"{self.method} {self.path}"

    @property
    def operation_id(self) -> str | None:
        """The document's own name for it."""
        return self.node.text("operationId") or None

    @property
    def tags(self) -> tuple[str, ...]:
        """The document's tags for it."""
        return tuple(entry.value for entry in self.node.get("tags").entries() if isinstance(entry.value, str))
