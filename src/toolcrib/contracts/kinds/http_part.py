"""How the arguments of a tool become an HTTP request, in the terms of OpenAPI 3.1."""

from typing import Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract
from toolcrib.contracts.kinds.http import Paging
from toolcrib.contracts.providers.providers_part import SecurityRequirement

ParameterPlace: TypeAlias = Literal["path", "query", "header", "cookie"]
ParameterStyle: TypeAlias = Literal[
    "simple", "label", "matrix", "form", "spaceDelimited", "pipeDelimited", "tabDelimited", "deepObject"
]
"""The styles of OpenAPI 3.1, and `tabDelimited` for the `tsv` of OpenAPI 2.0. Of its other collection formats `csv` is
`form` (`simple` in a path or a header), `ssv` is `spaceDelimited` and `pipes` is `pipeDelimited`, all without
`explode`; `multi` is `form` with it."""
FieldStyle: TypeAlias = Literal["form", "spaceDelimited", "pipeDelimited", "tabDelimited", "deepObject"]
BodyEncoding: TypeAlias = Literal["json", "form", "multipart", "text", "binary"]
ResponseForm: TypeAlias = Literal["auto", "readable", "json", "text", "html", "table", "bytes"]
"""What becomes of an answer. `auto`: what its content type says: JSON, text as it stands, or a file. `readable`: the
same for a model to read, with HTML as a page's text, links and tables, CSV and TSV as a table, and a content type that
is plainly false not believed. The others: that and nothing else."""
HttpMethod: TypeAlias = Literal["GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"]


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
    allow_empty: bool = False
    """An empty list or object is sent as `name=`, instead of not at all."""
    content_type: str | None = None
    """The value is written as this media type, JSON or text, instead of in a style (`content` of OpenAPI)."""


class FieldEncoding(Contract):
    """How one field of a form or multipart body is written (OpenAPI 3.1, Encoding Object)."""

    content_type: str | None = None
    """In a form: the value is one text of this media type, JSON or text, instead of in a style. In a multipart body:
    the part's type; if null, `text/plain` for scalars, `application/json` for objects and lists of lists, and
    `application/octet-stream` for files."""
    style: FieldStyle = "form"
    """In a form only."""
    explode: bool = True
    """In a form as in a parameter. In a multipart body a list is one part per item, or if false one JSON part."""
    allow_reserved: bool = False
    file: bool = False
    """In a multipart body: the value is bytes, given as base64 text or as an `HttpFile`; a list is several files."""
    filename: str | None = None
    """Name of a file whose argument gives none; the field's name if null."""
    headers: dict[str, str] = Field(default_factory=dict)
    """In a multipart body: further headers of the part, each with the name of the argument that it is taken from."""


class HttpBody(Contract):
    """How the request body is made from the arguments."""

    content_type: str = "application/json"
    encoding: BodyEncoding = "json"
    """How it is written: `text` sends a string in the charset of the content type, `binary` the bytes behind base64."""
    argument: str | None = None
    """The argument that is the whole body; if null, the body is an object of `fields`."""
    fields: dict[str, str] = Field(default_factory=dict)
    """Argument name to name on the wire."""
    encodings: dict[str, FieldEncoding] = Field(default_factory=dict)
    """By name on the wire, for the fields of a form or multipart body that are not written in the usual way."""
    required: bool = False


class HttpFile(Contract):
    """Bytes as an argument or an output."""

    media_type: str = "application/octet-stream"
    filename: str | None = None
    size: int | None = None
    """Bytes."""
    base64: str | None = None
    """The bytes (RFC 4648, section 4); null in an output whose bytes are an attachment, because they are too many."""


class HttpImplementation(Contract):
    """One HTTP operation. Credentials and default headers come from its provider."""

    kind: Literal["http"] = "http"
    method: HttpMethod
    url: str
    """With `{name}` for path parameters: absolute, or from `/` on below the provider's base address. Where it begins
    with the provider's `base_url`, the provider's variables are filled in. `{+name}` alone: the argument is the whole
    address (RFC 6570, reserved expansion); then there is no provider, so that no credentials go to it."""
    parameters: tuple[HttpParameter, ...] = ()
    body: HttpBody | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    provider: str | None = None
    """Name of the provider whose authentication is used."""
    security: tuple[SecurityRequirement, ...] | None = None
    """Alternatives of which one is met, in order of preference; empty for none at all, null for the provider's."""
    token_arguments: tuple[str, ...] = ()
    """Arguments that nobody gives: they carry the bearer token, for systems that want it there too."""
    paging: Paging | None = None
    response: ResponseForm = "auto"
    method_argument: str | None = None
    """Argument that names the method, in place of `method`; the input schema says which it may be."""
    timeout_argument: str | None = None
    """Argument that says how many milliseconds the request may take, within `timeout_s`."""
    errors_as_text: bool = False
    """A request that the other side or the network refuses is a success whose output is the error's message, told as a
    warning and in the metadata too; what policy or the tool's own schema refuses stays an error."""
