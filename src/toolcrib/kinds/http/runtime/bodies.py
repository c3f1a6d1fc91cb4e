"""Encodes arguments as request bodies: JSON, forms, `multipart/form-data` (RFC 7578, RFC 2046), and raw bytes. Pure.

JSON keeps nulls; forms and multipart bodies leave them out. A value that cannot be sent raises an `UnsendableBody`
that names the argument. Multipart names are escaped as in browsers (WHATWG HTML), so no name can end a header. The
boundary is derived from the content, so the same parts always make the same bytes.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, assert_never, cast

import orjson
from pydantic import ValidationError

from toolcrib.contracts import Json, JsonObject
from toolcrib.kinds.http.runtime.media import is_json, media_type
from toolcrib.kinds.http.runtime.styles import as_media, query_pairs, text
from toolcrib.kinds.http.shape import FieldEncoding, HttpBody, HttpFile, HttpParameter, argument_of

_ESCAPED: Final = re.compile(r'[\x00-\x1f\x7f"]')
_BOUNDARY: Final = re.compile(r"\s*;\s*boundary=(\"[^\"]*\"|[^;\s]*)", re.IGNORECASE)
_FORM_DATA: Final = "multipart/form-data"


class MultipartPart(NamedTuple):
    """One part; texts are encoded already."""

    name: str
    data: bytes
    content_type: str | None
    """Null for plain text in UTF-8, which needs no header."""
    filename: str | None
    headers: Mapping[str, str]


def write_multipart(content_type: str, parts: Sequence[MultipartPart]) -> tuple[str, bytes]:
    """Content type with its boundary, and the body. Only `form-data` names its parts."""
    named = content_type.lower().startswith(_FORM_DATA)
    heads = [_head(part, named=named) for part in parts]
    boundary = _boundary(heads, parts)
    pieces = [b"--%b\r\n%b\r\n%b\r\n" % (boundary, head, part.data) for head, part in zip(heads, parts, strict=True)]
    kind = _BOUNDARY.sub("", content_type)
    return f"{kind}; boundary={boundary.decode()}", b"".join([*pieces, b"--%b--\r\n" % boundary])


def _head(part: MultipartPart, *, named: bool) -> bytes:
    lines: list[str] = []
    if named:
        filename = "" if part.filename is None else f'; filename="{_escape(part.filename)}"'
        lines.append(f'Content-Disposition: form-data; name="{_escape(part.name)}"{filename}')
    if part.content_type is not None:
        lines.append(f"Content-Type: {_escape(part.content_type, quotes=False)}")
    lines += [f"{_escape(name)}: {_escape(value, quotes=False)}" for name, value in part.headers.items()]
    return "".join(f"{line}\r\n" for line in lines).encode()


def _escape(value: str, *, quotes: bool = True) -> str:
    """Control characters, and double quotes where they would end a name, as `%XX`."""
    return _ESCAPED.sub(lambda found: found[0] if found[0] == '"' and not quotes else f"%{ord(found[0]):02X}", value)


def _boundary(heads: Sequence[bytes], parts: Sequence[MultipartPart]) -> bytes:
    hashed = hashlib.sha256()
    for head, part in zip(heads, parts, strict=True):
        hashed.update(head)
        hashed.update(part.data)
    return b"toolcrib-" + hashed.hexdigest()[:40].encode()


_USUAL: Final = FieldEncoding()
_NOTHING: Final = object()
"""In the place of an argument that is not given: null is a value."""
_BYTES: Final = "application/octet-stream"


class UnsendableBody(ValueError):
    """An argument cannot become what the body needs."""


class Content(NamedTuple):
    """A body as it is sent."""

    content_type: str
    data: bytes


def write_body(body: HttpBody, given: Mapping[str, Json]) -> Content | None:
    """The body that the arguments make; null where nothing is given and nothing is needed.

    Args:
        body: How it is made.
        given: Arguments by name.

    Raises:
        UnsendableBody: An argument does not fit.
        UnicodeEncodeError: A text holds what its charset does not.
    """
    value = _value(body, given)
    if value is _NOTHING:
        return None
    if value is None and body.encoding != "json":
        return None
    match body.encoding:
        case "json":
            return Content(body.content_type, orjson.dumps(value))
        case "form":
            return Content(body.content_type, _form(body, value))
        case "multipart":
            return Content(*write_multipart(body.content_type, list(_parts(body, value, given))))
        case "text":
            return Content(body.content_type, _encode_text(body.content_type, value))
        case "binary":
            return Content(body.content_type, _file(str(body.argument), value)[1])
        case _:
            assert_never(body.encoding)


def _value(body: HttpBody, given: Mapping[str, Json]) -> Json:
    """What is written; `_NOTHING` where nothing is given and nothing is needed."""
    if body.argument is not None:
        return given.get(body.argument, _NOTHING)
    if body.template is not None:
        filled = _fill(body.template, given)
        return type(body.template)() if filled is _NOTHING and body.required else filled
    value = {name: given[argument] for argument, name in body.fields.items() if argument in given}
    return value if value or body.required else _NOTHING


def _fill(part: Json, given: Mapping[str, Json]) -> Json:
    """A part of a template with the arguments in their places; `_NOTHING` if it held only some that are not given."""
    if (argument := argument_of(part)) is not None:
        return given.get(argument, _NOTHING)
    if isinstance(part, dict):
        members = ((name, _fill(member, given)) for name, member in cast("JsonObject", part).items())
        filled: Json = {name: member for name, member in members if member is not _NOTHING}
    elif isinstance(part, list):
        items = (_fill(item, given) for item in cast("list[Json]", part))
        filled = [item for item in items if item is not _NOTHING]
    else:
        return part
    return filled if filled or not part else _NOTHING


def _form(body: HttpBody, value: Json) -> bytes:
    """`application/x-www-form-urlencoded`, each field in its own style (OpenAPI 3.1, section 4.8.14.4)."""
    pairs = [pair for name, member in _members(value) for pair in query_pairs(_field(body, name), member)]
    return "&".join(f"{name}={encoded}" for name, encoded in pairs).encode("ascii")


def _field(body: HttpBody, name: str) -> HttpParameter:
    found = body.encodings.get(name, _USUAL)
    return HttpParameter(
        name=name,
        argument=name,
        place="query",
        style=found.style,
        explode=found.explode,
        allow_reserved=found.allow_reserved,
        content_type=found.content_type,
    )


def _parts(body: HttpBody, value: Json, given: Mapping[str, Json]) -> Iterator[MultipartPart]:
    for name, member in _members(value):
        encoding = body.encodings.get(name, _USUAL)
        headers = {
            header: text(given[argument])
            for header, argument in encoding.headers.items()
            if given.get(argument) is not None
        }
        several = isinstance(member, list) and encoding.explode
        items = cast("list[Json]", member if several else [member])
        yield from (_part(name, encoding, item, headers) for item in items)


def _part(name: str, encoding: FieldEncoding, item: Json, headers: Mapping[str, str]) -> MultipartPart:
    if encoding.file:
        described, data = _file(name, item)
        kind = described.media_type if described.media_type != _BYTES else encoding.content_type or _BYTES
        return MultipartPart(name, data, kind, described.filename or encoding.filename or name, headers)
    kind = encoding.content_type or ("application/json" if isinstance(item, dict | list) else None)
    if kind is not None and not is_json(kind):
        return MultipartPart(name, _encode_text(kind, item), kind, encoding.filename, headers)
    return MultipartPart(
        name, (as_media(kind, item) if kind else text(item)).encode(), kind, encoding.filename, headers
    )


def _file(name: str, value: Json) -> tuple[HttpFile, bytes]:
    """A file and its bytes, from base64 text or an `HttpFile`."""
    try:
        described = HttpFile(base64=value) if isinstance(value, str) else HttpFile.model_validate(value)
    except ValidationError as problem:
        wrong = ", ".join(".".join(map(str, found["loc"])) or "the whole" for found in problem.errors())
        raise UnsendableBody(f"{name!r} is neither base64 text nor a file with base64 ({wrong})") from None
    try:
        data = base64.b64decode("".join((described.base64 or "").split()), validate=True)
    except (binascii.Error, ValueError) as problem:
        raise UnsendableBody(f"{name!r} is not base64 (RFC 4648, section 4): {problem}") from None
    return described, data


def _encode_text(content_type: str, value: Json) -> bytes:
    charset = media_type(content_type).charset or "utf-8"
    try:
        return text(value).encode(charset)
    except LookupError:
        raise UnsendableBody(f"the body's charset {charset!r} is unknown") from None


def _members(value: Json) -> list[tuple[str, Json]]:
    if not isinstance(value, dict):
        raise UnsendableBody("a form or multipart body is made of an object's members, and the argument is no object")
    return [(name, member) for name, member in cast("JsonObject", value).items() if member is not None]
