"""Request bodies: from arguments to bytes and a content type. Pure.

JSON keeps nulls, and a form and a multipart body leave them out. What cannot be sent is an `UnsendableBody` that says
which argument to correct.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, assert_never, cast

import orjson
from pydantic import ValidationError

from toolcrib.contracts import FieldEncoding, HttpBody, HttpFile, HttpParameter, Json, JsonObject
from toolcrib.kinds.http.runtime.media_part import is_json, media_type
from toolcrib.kinds.http.runtime.multipart import Part, write_multipart
from toolcrib.kinds.http.runtime.styles import as_media, query_pairs, text

_USUAL: Final = FieldEncoding()
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
    if body.argument is not None:
        if body.argument not in given:
            return None
        value: Json = given[body.argument]
    else:
        value = {name: given[argument] for argument, name in body.fields.items() if argument in given}
        if not value and not body.required:
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
            return Content(body.content_type, _encoded_text(body.content_type, value))
        case "binary":
            return Content(body.content_type, _file(str(body.argument), value)[1])
        case _:
            assert_never(body.encoding)


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


def _parts(body: HttpBody, value: Json, given: Mapping[str, Json]) -> Iterator[Part]:
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


def _part(name: str, encoding: FieldEncoding, item: Json, headers: Mapping[str, str]) -> Part:
    if encoding.file:
        described, data = _file(name, item)
        kind = described.media_type if described.media_type != _BYTES else encoding.content_type or _BYTES
        return Part(name, data, kind, described.filename or encoding.filename or name, headers)
    kind = encoding.content_type or ("application/json" if isinstance(item, dict | list) else None)
    if kind is not None and not is_json(kind):
        return Part(name, _encoded_text(kind, item), kind, encoding.filename, headers)
    return Part(name, (as_media(kind, item) if kind else text(item)).encode(), kind, encoding.filename, headers)


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


def _encoded_text(content_type: str, value: Json) -> bytes:
    charset = media_type(content_type).charset or "utf-8"
    try:
        return text(value).encode(charset)
    except LookupError:
        raise UnsendableBody(f"the body's charset {charset!r} is unknown") from None


def _members(value: Json) -> list[tuple[str, Json]]:
    if not isinstance(value, dict):
        raise UnsendableBody("a form or multipart body is made of an object's members, and the argument is no object")
    return [(name, member) for name, member in cast("JsonObject", value).items() if member is not None]
