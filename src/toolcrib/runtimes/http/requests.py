"""From arguments to a request. Pure; what cannot be sent is a failed call that names the argument."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote

import orjson

from toolcrib.contracts import (
    ErrorCode,
    HttpBody,
    HttpImplementation,
    HttpParameter,
    Json,
    JsonObject,
    Reason,
    ToolDefinition,
)
from toolcrib.executor import CallFailed, error
from toolcrib.providers import Credentials
from toolcrib.runtimes.http.styles import header_value, path_piece, query_pairs

_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
_AUTHORITY: Final = re.compile(r"[^:/?#]*://[^/?#]*")
_JSON: Final = re.compile(r"[^;]+[/+]json\s*(;.*)?", re.IGNORECASE)
_FORBIDDEN_IN_HEADERS: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_HEADER_KEY: Final = "header:"


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent. Holds credentials, so its representation shows none of it."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    """Names in lower case."""
    body: bytes | None = field(repr=False)


def build_request(
    tool: ToolDefinition,
    implementation: HttpImplementation,
    arguments: JsonObject,
    *,
    idempotency_key: str,
    headers: Mapping[str, str],
    credentials: Credentials,
) -> Request:
    """Put the arguments where the implementation says.

    Args:
        tool: Whose call it is.
        implementation: Its HTTP operation.
        arguments: Validated; null and absent ones are not sent outside of a body.
        idempotency_key: Sent if the tool takes one.
        headers: The provider's default headers.
        credentials: Of the provider; an argument never replaces them.

    Raises:
        CallFailed: `VALIDATION_ERROR`: a path argument is missing or would change the path, a header would break, or a
            string is no Unicode.
    """
    try:
        return _build(
            tool,
            implementation,
            arguments,
            idempotency_key=idempotency_key,
            headers=headers,
            credentials=credentials,
        )
    except (UnicodeEncodeError, orjson.JSONEncodeError):
        raise _refused(tool, "a string holds a lone surrogate, which is no Unicode") from None


def _build(
    tool: ToolDefinition,
    implementation: HttpImplementation,
    arguments: JsonObject,
    *,
    idempotency_key: str,
    headers: Mapping[str, str],
    credentials: Credentials,
) -> Request:
    given = _with_key(tool, arguments, idempotency_key)
    parameters = [found for found in implementation.parameters if given.get(found.argument) is not None]
    body = _body(tool, implementation.body, given)
    sent = {"accept": "application/json, */*;q=0.5"}
    for more in (headers, implementation.headers):
        sent |= {name.lower(): value for name, value in more.items()}
    sent |= {p.name.lower(): header_value(p, given[p.argument]) for p in parameters if p.place == "header"}
    if cookies := _cookies(parameters, given, credentials):
        sent["cookie"] = cookies
    if implementation.body is not None and body is not None:
        sent["content-type"] = implementation.body.content_type
    if tool.idempotency_key is not None and tool.idempotency_key.startswith(_HEADER_KEY):
        sent[tool.idempotency_key.removeprefix(_HEADER_KEY).lower()] = idempotency_key
    sent |= credentials.headers
    _check_headers(tool, sent)
    url = _url(tool, implementation, parameters, given, credentials)
    return Request(implementation.method, url, sent, body)


def _with_key(tool: ToolDefinition, arguments: JsonObject, key: str) -> JsonObject:
    taken_by = tool.idempotency_key
    if taken_by is None or taken_by.startswith(_HEADER_KEY):
        return arguments
    return {taken_by: key, **arguments}


def _url(
    tool: ToolDefinition,
    implementation: HttpImplementation,
    parameters: list[HttpParameter],
    given: JsonObject,
    credentials: Credentials,
) -> str:
    template = implementation.url.partition("#")[0]
    authority = _AUTHORITY.match(template)
    start = authority.end() if authority else 0
    path, _, query = template[start:].partition("?")
    filled = "/".join(_segment(tool, segment, parameters, given) for segment in path.split("/"))
    pairs = [pair for p in parameters if p.place == "query" for pair in query_pairs(p, given[p.argument])]
    for name, _ in pairs:
        if unquote(name) in credentials.query:
            raise _refused(tool, f"an argument may not set the query parameter {unquote(name)!r}, which authenticates")
    pairs += [(quote(name, safe=""), quote(value, safe="")) for name, value in credentials.query.items()]
    whole = "&".join([query] * bool(query) + [f"{name}={value}" for name, value in pairs])
    return template[:start] + filled + (f"?{whole}" if whole else "")


def _segment(tool: ToolDefinition, template: str, parameters: list[HttpParameter], given: JsonObject) -> str:
    """One path segment with its placeholders filled: one segment again, neither empty nor dotted."""
    by_name = {parameter.name: parameter for parameter in parameters if parameter.place == "path"}

    def fill(match: re.Match[str]) -> str:
        parameter = by_name.get(match[1])
        if parameter is None:
            raise _refused(tool, f"the path needs an argument for {match[1]!r}")
        return path_piece(parameter, given[parameter.argument])

    filled = _PLACEHOLDER.sub(fill, template)
    if filled != template and filled in {"", ".", ".."}:
        raise _refused(tool, f"path argument {template} would be {filled!r}, which leads to another path")
    return filled


def _body(tool: ToolDefinition, body: HttpBody | None, given: JsonObject) -> bytes | None:
    if body is None:
        return None
    value: Json
    if body.argument is not None:
        if body.argument not in given:
            return None
        value = given[body.argument]
    else:
        value = {name: given[argument] for argument, name in body.fields.items() if argument in given}
        if not value and not body.required:
            return None
    if not _JSON.fullmatch(body.content_type):
        message = f"tool {tool.name!r} has a body of type {body.content_type!r}; this release sends JSON only"
        raise CallFailed(error(ErrorCode.UNKNOWN, Reason.RUNTIME_MISSING, message))
    return orjson.dumps(value)


def _cookies(parameters: list[HttpParameter], given: JsonObject, credentials: Credentials) -> str:
    pairs = [pair for p in parameters if p.place == "cookie" for pair in query_pairs(p, given[p.argument])]
    pairs = [(name, value) for name, value in pairs if name not in credentials.cookies]
    return "; ".join(f"{name}={value}" for name, value in [*pairs, *credentials.cookies.items()])


def _check_headers(tool: ToolDefinition, headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if _FORBIDDEN_IN_HEADERS.search(value):
            raise _refused(tool, f"header {name!r} would hold a line break or another control character")


def _refused(tool: ToolDefinition, problem: str) -> CallFailed:
    message = f"tool {tool.name!r} was not called: {problem}; correct the arguments and call again"
    return CallFailed(error(ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH, message))
