"""The shape of an HTTP tool: how arguments become a request, in terms of OpenAPI 3.1, and how a paged list is read.

The paging variants are a union tagged by `kind`. Requests for further pages stay on the origin of the operation or of
its provider, whatever the response says.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

from pydantic import Discriminator, Field, Tag

from toolcrib.contracts import CachePolicy, InvalidDefinition, RateLimit, RetryPolicy, SideEffects
from toolcrib.contracts.base.base import Contract, Json, JsonObject
from toolcrib.contracts.base.implementations import Implementation
from toolcrib.contracts.providers.providers import SecurityRequirement

HEADER_OUT: Final = "header:"
"""In `CursorPaging.cursor_out`: the cursor is in the header of this name."""

WHOLE_ADDRESS: Final = re.compile(r"\{\+([^{}]+)\}")
"""A URL that is all of one argument: its name."""

_ARGUMENT_MARK: Final = "$argument"
"""The only member of an object that stands for an argument in a template."""


class _Pages(Contract):
    """What every kind of paging says."""

    items: str = "$"
    """The list that is joined over the pages: its name in the answer, or an RFC 9535 path of names to it
    (`$.data.rows`; `$` if the answer is the list)."""
    limit_argument: str | None = None
    """Argument for the page size; filled with `page_size` where the caller gives none."""
    page_size: int | None = Field(default=None, ge=1)
    """The largest page that the other side gives."""
    max_pages: int = Field(default=100, ge=1)


class CursorPaging(_Pages):
    """A response names the next page; the cursor goes back into the request."""

    kind: Literal["cursor"] = "cursor"
    cursor_in: str
    """Argument that takes the cursor; a JSON pointer (`/body/page/after`) reaches into an argument."""
    cursor_out: str
    """RFC 9535 path of the next cursor in the response, or `header:NAME`; nothing found means the last page."""
    first: str | int | None = None
    """Cursor of the first page, for systems that want one in every request; null if it is left out."""

    @property
    def start_argument(self) -> str | None:
        """The argument with which a caller asks for one page."""
        return None if self.cursor_in.startswith("/") else self.cursor_in


class OffsetPaging(_Pages):
    """The request says how many items to skip."""

    kind: Literal["offset"] = "offset"
    argument: str
    """Argument that takes the number of items to skip, from 0 on."""
    total: str | None = None
    """RFC 9535 path of the number of all items; null if the answer does not tell, and a short page is the last."""

    @property
    def start_argument(self) -> str | None:
        """The argument with which a caller asks for one page."""
        return self.argument


class PageNumberPaging(_Pages):
    """The request names the page by its number."""

    kind: Literal["page"] = "page"
    argument: str
    """Argument that takes the page's number."""
    first: int = 1
    """Number of the first page."""
    total: str | None = None
    """RFC 9535 path of the number of all items."""
    total_pages: str | None = None
    """RFC 9535 path of the number of all pages. With neither, a short page is the last."""

    @property
    def start_argument(self) -> str | None:
        """The argument with which a caller asks for one page."""
        return self.argument


class LinkPaging(_Pages):
    """The `Link` header names the next page's address (RFC 8288, `rel="next"`)."""

    kind: Literal["link"] = "link"
    argument: str | None = None
    """Argument with which a caller may ask for one page, if the operation has one."""

    @property
    def start_argument(self) -> str | None:
        """The argument with which a caller asks for one page."""
        return self.argument


class NextUrlPaging(_Pages):
    """The answer's body names the next page's address."""

    kind: Literal["next_url"] = "next_url"
    url_out: str
    """RFC 9535 path of the address (`$.next`, `$['@odata.nextLink']`); nothing found means the last page."""
    argument: str | None = None
    """Argument with which a caller may ask for one page, if the operation has one."""

    @property
    def start_argument(self) -> str | None:
        """The argument with which a caller asks for one page."""
        return self.argument


def _kind_of(value: Any) -> str | None:
    """The tag; what was stored before there were kinds has none and is of the first."""
    if isinstance(value, dict):
        return cast("JsonObject", value).get("kind", "cursor")
    return getattr(value, "kind", None)


Paging: TypeAlias = Annotated[
    Annotated[CursorPaging, Tag("cursor")]
    | Annotated[OffsetPaging, Tag("offset")]
    | Annotated[PageNumberPaging, Tag("page")]
    | Annotated[LinkPaging, Tag("link")]
    | Annotated[NextUrlPaging, Tag("next_url")],
    Discriminator(_kind_of),
]


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
    """The argument that is the whole body; if null, the body is an object of `fields`, or made by `template`."""
    fields: dict[str, str] = Field(default_factory=dict)
    """Argument name to name on the wire."""
    template: JsonObject | list[Json] | None = None
    """A JSON body with constants, in which `{"$argument": NAME}` stands for the value of an argument, at any depth. The
    value is put there as JSON, and never into a text. Where an argument is not given, its member or item is left out,
    and so is an object or list in which nothing else stands."""
    encodings: dict[str, FieldEncoding] = Field(default_factory=dict)
    """By name on the wire, for the fields of a form or multipart body that are not written in the usual way."""
    required: bool = False

    @property
    def argument_names(self) -> frozenset[str]:
        """Every argument that the body takes."""
        whole = {self.argument} if self.argument is not None else set[str]()
        return frozenset(self.fields) | whole | template_arguments(self.template)

    @property
    def top_names(self) -> Mapping[str, str]:
        """The arguments that are members of the body itself, with their names on the wire."""
        if not isinstance(self.template, dict):
            return self.fields
        found = ((name, argument_of(value)) for name, value in self.template.items())
        return {argument: name for name, argument in found if argument is not None}


def argument_of(part: Json) -> str | None:
    """The argument that a part of a template stands for; null if it is something else."""
    if isinstance(part, dict) and part.keys() == {_ARGUMENT_MARK}:
        return cast("JsonObject", part)[_ARGUMENT_MARK]
    return None


def template_arguments(part: Json) -> frozenset[str]:
    """The arguments that a template names, at any depth."""
    if (argument := argument_of(part)) is not None:
        return frozenset({argument})
    if isinstance(part, dict):
        part = [*cast("JsonObject", part).values()]
    parts = cast("list[Json]", part) if isinstance(part, list) else []
    return frozenset[str]().union(*map(template_arguments, parts))


class HttpFile(Contract):
    """Bytes as an argument or an output."""

    media_type: str = "application/octet-stream"
    filename: str | None = None
    size: int | None = None
    """Bytes."""
    base64: str | None = None
    """The bytes (RFC 4648, section 4); null in an output whose bytes are an attachment, because they are too many."""


class HttpImplementation(Implementation):
    """One HTTP operation. Credentials and default headers come from its provider."""

    kind: Literal["http"] = "http"
    has_outside_text = True

    method: HttpMethod
    url: str
    """With `{name}` for path parameters: absolute, or from `/` on below the provider's base address. Where it begins
    with the provider's `base_url`, the provider's variables are filled in. `{+name}` alone: the argument is the whole
    address (RFC 6570, reserved expansion); then there is no provider, so that no credentials go to it."""
    parameters: tuple[HttpParameter, ...] = ()
    body: HttpBody | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    """Sent with every request, in place of the provider's of the same name; a parameter takes their place."""
    provider: str | None = None
    """Name of the provider whose authentication is used."""
    security: tuple[SecurityRequirement, ...] | None = None
    """Alternatives of which one is met, in order of preference; empty for none at all, null for the provider's."""
    token_arguments: tuple[str, ...] = ()
    """Arguments that callers do not give: they repeat the bearer token, for systems that require it there too."""
    paging: Paging | None = None
    document_operation: str | None = None
    """What the imported document calls the operation, such as `POST /#Action=List`; null if method and URL say it."""
    response: ResponseForm = "auto"
    method_argument: str | None = None
    """Argument that names the method, in place of `method`; the input schema says which it may be."""
    timeout_argument: str | None = None
    """Argument that says how many milliseconds the request may take, within `timeout_s`."""
    errors_as_text: bool = False
    """A request that the other side or the network refuses is a success whose output is the error's message, told as a
    warning and in the metadata too; what policy or the tool's own schema refuses stays an error."""

    @property
    def provider_name(self) -> str | None:
        """Name of the provider whose address and credentials it uses."""
        return self.provider

    def deletes(self, arguments: Mapping[str, Any]) -> bool:
        """Whether the method is DELETE."""
        return (arguments.get(self.method_argument or "") or self.method) == "DELETE"

    def content(self) -> JsonObject:
        """As every shape's, with the kind of a paging that is not the first kind."""
        content = super().content()
        if self.paging is not None and self.paging.kind != "cursor":
            content["paging"]["kind"] = self.paging.kind
        return content


class ToolOverride(Contract):
    """Replaces what was derived from the document, field by field; a field that is not given stays derived."""

    name: str | None = None
    description: str | None = None
    side_effects: SideEffects | None = None
    idempotent: bool | None = None
    timeout_s: float | None = None
    """Seconds for all attempts of one call."""
    rate_limit: RateLimit | None = None
    retry: RetryPolicy | None = None
    cache: CachePolicy | None = None
    cache_ttl_s: float | None = None
    paging: Paging | None = None
    """How pages are followed; null, if given, for one page per call."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Headers that every request sends, beside those that the document leaves no choice about."""

    def fields(self) -> JsonObject:
        """The given fields of the tool's definition."""
        named = self.model_fields_set - {"paging", "headers"}
        return {name: value for name in named if (value := getattr(self, name)) is not None}


HOW_TO_RAISE: Final = "bounds=Bounds(...) in Python, --bound on the command line, bounds over REST"


class Bounds(Contract):
    """How large an OpenAPI document may be that is imported, from a URL or a file, each one it refers to included."""

    max_bytes: int = Field(default=40_000_000, ge=1, le=500_000_000)
    """Bytes of text; all documents of one import together have as many. It holds in place of `egress.max_bytes`."""
    max_depth: int = Field(default=100, ge=1, le=100)
    """Levels; not more than canonical JSON takes, so that whatever is read can be stored."""
    max_values: int = Field(default=4_000_000, ge=1, le=50_000_000)
    """Objects, arrays and scalars, YAML aliases expanded."""
    max_operations: int = Field(default=20_000, ge=1, le=200_000)
    """Operations that become tools; those of further paths are left out and reported."""

    def check_bytes(self, size: int) -> None:
        """Refuse a text that is too long."""
        if size > self.max_bytes:
            raise InvalidDefinition(
                f"the OpenAPI document has {size} bytes, the limit is {self.max_bytes}; split it, or raise the bound "
                f"max_bytes of the import ({HOW_TO_RAISE})"
            )

    def check_depth(self, depth: int) -> None:
        """Refuse nesting that is too deep."""
        if depth > self.max_depth:
            raise InvalidDefinition(
                f"the OpenAPI document nests deeper than {self.max_depth} levels; use $ref instead of nesting, "
                "and check it for YAML aliases that contain themselves"
            )

    def check_values(self, count: int) -> None:
        """Refuse a document of too many values."""
        if count > self.max_values:
            raise InvalidDefinition(
                f"the OpenAPI document expands to more than {self.max_values} values; write it without nested YAML "
                f"aliases, or raise the bound max_values of the import ({HOW_TO_RAISE})"
            )
