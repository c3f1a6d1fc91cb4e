"""The parts of an operation, common to all versions of OpenAPI: parameters, bodies, responses, paths and media types.

References are resolved, and defaults of paths and documents applied. Schemas are still as in the document. Paths are
URL templates such as `/deals/{id}`, with one name in each pair of braces.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import quote, unquote

from toolcrib.core.providers.imports import Losses
from toolcrib.kinds.http.openapi.read.nodes import Node
from toolcrib.kinds.http.shape import BodyEncoding, FieldEncoding, HttpMethod, ParameterPlace, ParameterStyle


@dataclass(frozen=True, slots=True)
class ApiParameter:
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
    """Position of its own description."""
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
class ApiResponse:
    """One response."""

    status: str
    """`200`, `2XX` or `default`."""
    node: Node
    media: tuple[Media, ...]
    headers: Node


@dataclass(frozen=True, slots=True)
class ApiOperation:
    """One method of one path."""

    method: HttpMethod
    path: str
    node: Node
    """The Operation Object."""
    parameters: tuple[ApiParameter, ...]
    body: Body | None
    answers: tuple[ApiResponse, ...]
    security: Node | None
    """Security Requirement Objects of its own; null for the document's."""
    servers: tuple[Node, ...]
    """Server Objects of the operation or its path alone, not those of the document."""
    losses: Losses = field(compare=False)
    kept: list[str] = field(compare=False, default_factory=list[str])
    fragment: str = ""
    """What follows `#` in the path as written; it tells apart operations that share method and path."""
    constants: tuple[tuple[ParameterPlace, str, str], ...] = ()
    """Place, name and value of what each request says, because the fragment and the document leave no choice."""

    @property
    def key(self) -> str:
        """`GET /deals/{id}`, or `POST /#Action=List` if the path has a fragment."""
        return f"{self.method} {self.path}{'#' if self.fragment else ''}{self.fragment}"

    @property
    def url(self) -> str:
        """The path with the constants of its query."""
        query = "&".join(
            f"{quote(name, safe='')}={quote(value, safe='')}"
            for place, name, value in self.constants
            if place == "query"
        )
        return f"{self.path}{'&' if '?' in self.path else '?'}{query}" if query else self.path

    @property
    def headers(self) -> dict[str, str]:
        """The constants that are headers."""
        return {name: value for place, name, value in self.constants if place == "header"}

    @property
    def operation_id(self) -> str | None:
        """What the document calls it, its `operationId`."""
        return self.node.text("operationId") or None

    @property
    def tags(self) -> tuple[str, ...]:
        """The document's tags for it."""
        return tuple(entry.value for entry in self.node.get("tags").entries() if isinstance(entry.value, str))


_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
_OPERATORS: Final = "+#./;?&"
"""Of RFC 6570, which OpenAPI does not have."""


@dataclass(frozen=True, slots=True)
class ApiPath:
    """One path and what it says for all of its operations."""

    written: str
    """As the document has it, for people."""
    template: str
    """As a URL takes it."""
    item: Node
    fragment: str = ""
    """What follows `#`, which names the operation and is not sent."""

    @property
    def place(self) -> str:
        """Its position."""
        return self.item.place


def read_path(written: str, item: Node, losses: Losses) -> ApiPath:
    """A path with everything set right that documents add to it."""
    template = written.strip()
    if not template.startswith("/"):
        template = f"/{template}"
        losses.add_changed(item.place, "invalid", f"path {written[:200]}", "taken with a slash before it")
    bare, mark, fragment = template.partition("#")
    if mark:
        losses.add_changed(
            item.place, "annotation", f"fragment {fragment[:200]}", "a request has none; it names the operation"
        )
    plain = _PLACEHOLDER.sub(_simple, bare)
    if plain != bare:
        losses.add_changed(item.place, "invalid", f"path {written[:200]}", f"taken as {plain[:200]}")
    return ApiPath(written, plain, item, fragment)


def with_constants(operation: ApiOperation) -> ApiOperation:
    """An operation of a path with a fragment, in which parameters with only one value are constants, not arguments.

    Documents of AWS and Azure write `/#X-Amz-Target=Service.List` or `/#Action=List`, and declare that parameter with
    an `enum` of one value. What the fragment says and nothing declares is sent if it is known where: `X-Amz-Target` is
    a header, `Action` is in the query. Any other fragment is only a name.
    """
    if not operation.fragment:
        return operation
    said = dict(_said(operation.fragment))
    left: list[ApiParameter] = []
    constants: list[tuple[ParameterPlace, str, str]] = []
    for parameter in operation.parameters:
        value = said.get(parameter.name, _only_value(parameter) if parameter.required else None)
        if value is None or parameter.place not in {"query", "header"}:
            left.append(parameter)
            continue
        constants.append((parameter.place, parameter.name, value))
        why = f"always {value[:200]!r}: it tells the operation from others of the same path"
        operation.losses.add_changed(parameter.node.place, "annotation", f"parameter {parameter.name}", why)
    declared = {name.lower() for _, name, _ in constants} | {found.name.lower() for found in left}
    for name, place in _UNDECLARED.items():
        if name in said and name.lower() not in declared:
            constants.append((place, name, said[name]))
            declared.add(name.lower())
    for name in said.keys() - {name for name in said if name.lower() in declared}:
        why = "not sent: no parameter has this name, so nothing says where it belongs"
        operation.losses.add_dropped(operation.node.place, "invalid", f"{name}={said[name]}"[:200], why)
    return replace(operation, parameters=tuple(left), constants=tuple(constants))


_UNDECLARED: Final[dict[str, ParameterPlace]] = {"X-Amz-Target": "header", "Action": "query"}


def _said(fragment: str) -> list[tuple[str, str]]:
    pairs = (part.partition("=") for part in fragment.split("&"))
    return [(unquote(name), unquote(value)) for name, mark, value in pairs if mark and name and value]


def _only_value(parameter: ApiParameter) -> str | None:
    values = parameter.schema.get("enum").list
    return values[0] if len(values) == 1 and isinstance(values[0], str) else None


def placeholders(template: str) -> tuple[str, ...]:
    """Names in braces, each once, in order."""
    return tuple(dict.fromkeys(_PLACEHOLDER.findall(template.partition("?")[0])))


def _simple(match: re.Match[str]) -> str:
    name = match[1].strip().lstrip(_OPERATORS).rstrip("*").partition(":")[0]
    return f"{{{name or match[1]}}}"


FORM: Final = "application/x-www-form-urlencoded"
JSON_TYPE: Final = "application/json"
_JSON: Final = re.compile(
    r"(application/json|[a-z0-9.+*-]+/[a-z0-9.+*-]+\+json|text/json|text/x-json)\s*(;.*)?", re.IGNORECASE
)
_LINES: Final = re.compile(r"application/((x-)?ndjson|jsonl|x-jsonlines|json-seq)\s*(;.*)?", re.IGNORECASE)
_TEXT: Final = re.compile(r"text/.+|.+[/+](xml|yaml|x-yaml|javascript|graphql)\s*(;.*)?|application/csv", re.IGNORECASE)
_ANY: Final = frozenset({"*/*", "application/*", "*", "application/any", "any"})
_ORDER: Final[tuple[BodyEncoding, ...]] = ("json", "form", "multipart", "text", "binary")


def is_json(media_type: str) -> bool:
    """Whether a media type is JSON (RFC 6839, section 3.1), or so open that JSON fits."""
    return _JSON.fullmatch(media_type) is not None or media_type.lower() in _ANY


def is_lines(media_type: str) -> bool:
    """Whether it is a sequence of JSON values."""
    return _LINES.fullmatch(media_type) is not None


def is_text(media_type: str) -> bool:
    """Whether it is text that is not JSON."""
    return _TEXT.fullmatch(media_type) is not None and not is_json(media_type)


def encoding_of(media_type: str) -> BodyEncoding:
    """How a request body of a media type is written."""
    if is_json(media_type):
        return "json"
    lower = media_type.lower()
    if lower.startswith(FORM):
        return "form"
    if lower.startswith("multipart/"):
        return "multipart"
    return "text" if is_text(media_type) or is_lines(media_type) else "binary"


def content_type(media_type: str) -> str:
    """The type to send: JSON where the document leaves it open."""
    return JSON_TYPE if media_type.lower() in _ANY else media_type


def choose_media(media: Sequence[Media], *, files: bool) -> Media:
    """The media type to send: JSON before forms before the rest; a multipart form first where there are files."""
    order = ("multipart", *_ORDER) if files else _ORDER
    return min(media, key=lambda found: order.index(encoding_of(found.type)))
