"""From an answer's bytes to JSON: by content type, never by guessing."""

import base64
import re
from email.message import Message
from typing import Final

import orjson

from toolcrib.contracts import Json, JsonObject
from toolcrib.net import HttpResponse

MAX_SHOWN_HEADER: Final = 2_000

_JSON: Final = re.compile(r".+[/+]json")
_TEXT: Final = re.compile(r"text/.+|.+[/+](xml|yaml|javascript)|application/(x-yaml|x-www-form-urlencoded|x-ndjson)")
_SHOWN: Final = re.compile(r"content-type|retry-after|x-request-id|(x-)?ratelimit(-.+)?|idempotent-replayed|link")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class BadBody(ValueError):
    """The body is not what its content type says."""


def read_body(response: HttpResponse) -> Json:
    """The body as JSON: parsed JSON, text, `{content_type, base64}` for other bytes, null if there is none.

    Raises:
        BadBody: It claims to be JSON and is not.
    """
    if not response.body:
        return None
    kind, charset = _content_type(response)
    if _JSON.fullmatch(kind):
        try:
            return orjson.loads(response.body.removeprefix(_BYTE_ORDER_MARK))
        except orjson.JSONDecodeError as problem:
            raise BadBody(f"the answer says it is {kind} but is not: {problem}") from None
    if _TEXT.fullmatch(kind):
        return _decoded(response.body, charset)
    return {"content_type": kind, "base64": base64.b64encode(response.body).decode()}


def shown_headers(response: HttpResponse) -> JsonObject:
    """The headers that an envelope may show: none of them authenticates."""
    return {
        name: value[:MAX_SHOWN_HEADER] for name, value in sorted(response.headers.items()) if _SHOWN.fullmatch(name)
    }


def _content_type(response: HttpResponse) -> tuple[str, str]:
    message = Message()
    message["content-type"] = response.headers.get("content-type", "application/octet-stream")
    return message.get_content_type(), message.get_content_charset("utf-8")


def _decoded(body: bytes, charset: str) -> str:
    try:
        return body.decode(charset, errors="replace")
    except LookupError:
        return body.decode(errors="replace")
