"""Makes a request from arguments. Pure; arguments that cannot be sent raise a failed call that names the argument."""

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote

import orjson

from toolcrib.contracts import ErrorCode, JsonObject, Reason, ToolDefinition
from toolcrib.core.executor import CallFailed, error
from toolcrib.core.providers import Credentials
from toolcrib.kinds.http.runtime.bodies import UnsendableBody, write_body
from toolcrib.kinds.http.runtime.styles import header_value, path_piece, query_pairs
from toolcrib.kinds.http.shape import WHOLE_ADDRESS, HttpImplementation, HttpParameter

_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
_AUTHORITY: Final = re.compile(r"[^:/?#]*://[^/?#]*")
_FORBIDDEN_IN_HEADERS: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_HEADER_KEY: Final = "header:"
_ADDRESS: Final = re.compile(r"https?://[^\s/?#@\\]+([/?#][^\s\x00-\x1f\x7f]*)?", re.IGNORECASE)
_SHOWN: Final = 200
"""Maximum number of characters of an invalid address in a message."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """What is sent. Holds credentials, so its representation shows none of it."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    """Names in lower case."""
    body: bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Target:
    """Where and how an operation is called, whatever the arguments."""

    tool: ToolDefinition
    implementation: HttpImplementation
    url: str
    """Absolute, with `{name}` for path parameters."""
    headers: Mapping[str, str] = field(repr=False)
    """The provider's default headers."""
    idempotency_key: str
    """Sent if the tool takes one."""


def build_request(
    target: Target, arguments: JsonObject, credentials: Credentials, at: str | None = None
) -> HttpRequest:
    """Put the arguments where the implementation says.

    Args:
        target: The operation.
        arguments: Validated; null and absent ones are not sent outside of a body.
        credentials: Of the provider; an argument never replaces them.
        at: The address of a following page, which takes the place of path and query.

    Raises:
        CallFailed: `VALIDATION_ERROR`: a path argument is missing or would change the path, a header would break, a
            body cannot be written, or a string is no Unicode.
    """
    tool = target.tool
    try:
        return _build(target, arguments, credentials, at)
    except UnsendableBody as problem:
        raise _input_failure(tool, str(problem)) from None
    except UnicodeEncodeError as problem:
        character = problem.object[problem.start]
        if not "\ud800" <= character <= "\udfff":
            raise _input_failure(tool, f"{problem.encoding} has no character {character!r}") from None
        raise _input_failure(tool, "a string holds a lone surrogate, which is no Unicode") from None
    except orjson.JSONEncodeError:
        raise _input_failure(tool, "a string holds a lone surrogate, which is no Unicode") from None


def describe_request(target: Target, arguments: JsonObject) -> JsonObject:
    """The request that a client is to make itself, without credentials.

    Raises:
        CallFailed: As `build_request`.
    """
    request = build_request(target, arguments, Credentials())
    shown: JsonObject = {"method": request.method, "url": request.url, "headers": dict(request.headers)}
    if request.body is not None:
        try:
            shown["body"] = request.body.decode()
        except UnicodeDecodeError:
            shown["body_base64"] = b64encode(request.body).decode()
    return shown


def _build(target: Target, arguments: JsonObject, credentials: Credentials, at: str | None) -> HttpRequest:
    tool, implementation = target.tool, target.implementation
    given = _with_key(tool, arguments, target.idempotency_key) | _tokens(implementation, credentials)
    parameters = [found for found in implementation.parameters if given.get(found.argument) is not None]
    if implementation.body is not None and credentials.body:
        fields = implementation.body.top_names.items()
        given |= {argument: credentials.body[name] for argument, name in fields if name in credentials.body}
    content = None if implementation.body is None else write_body(implementation.body, given)
    sent = {"accept": "application/json, */*;q=0.5"}
    for more in (target.headers, implementation.headers):
        sent |= {name.lower(): value for name, value in more.items()}
    sent |= {p.name.lower(): header_value(p, given[p.argument]) for p in parameters if p.place == "header"}
    if cookies := _cookies(parameters, given, credentials):
        sent["cookie"] = cookies
    if content is not None:
        sent["content-type"] = content.content_type
    if tool.idempotency_key is not None and tool.idempotency_key.startswith(_HEADER_KEY):
        sent[tool.idempotency_key.removeprefix(_HEADER_KEY).lower()] = target.idempotency_key
    sent |= credentials.headers
    _check_headers(tool, sent)
    url = _url(target, parameters, given, credentials) if at is None else _with_credentials(at, credentials)
    return HttpRequest(implementation.method, url, sent, None if content is None else content.data)


def whole_address(tool: ToolDefinition, url: str, arguments: JsonObject) -> str:
    """The address that an argument gives, for a URL of the form `{+argument}`; any other URL as it is.

    Raises:
        CallFailed: `VALIDATION_ERROR`: the argument is no http or https URL, or holds a user name.
    """
    found = WHOLE_ADDRESS.fullmatch(url)
    if found is None:
        return url
    given = arguments.get(found[1])
    if not isinstance(given, str) or not _ADDRESS.fullmatch(given):
        raise _input_failure(tool, f"{found[1]!r} is no http or https URL without a user name: {str(given)[:_SHOWN]!r}")
    return given.replace("{", "%7B").replace("}", "%7D")


def _tokens(implementation: HttpImplementation, credentials: Credentials) -> JsonObject:
    """The bearer token, if there is one, for parameters that repeat the header."""
    scheme, _, token = credentials.headers.get("authorization", "").partition(" ")
    return dict.fromkeys(implementation.token_arguments, token) if scheme == "Bearer" else {}


def _with_key(tool: ToolDefinition, arguments: JsonObject, key: str) -> JsonObject:
    taken_by = tool.idempotency_key
    if taken_by is None or taken_by.startswith(_HEADER_KEY):
        return arguments
    return {taken_by: key, **arguments}


def _url(target: Target, parameters: list[HttpParameter], given: JsonObject, credentials: Credentials) -> str:
    tool = target.tool
    template = target.url.partition("#")[0]
    authority = _AUTHORITY.match(template)
    start = authority.end() if authority else 0
    path, _, query = template[start:].partition("?")
    filled = "/".join(_segment(tool, segment, parameters, given) for segment in path.split("/"))
    pairs = [pair for p in parameters if p.place == "query" for pair in query_pairs(p, given[p.argument])]
    for name, _ in pairs:
        if unquote(name) in credentials.query:
            raise _input_failure(
                tool, f"an argument may not set the query parameter {unquote(name)!r}, which authenticates"
            )
    pairs += _query_credentials(credentials)
    whole = "&".join([query] * bool(query) + [f"{name}={value}" for name, value in pairs])
    return template[:start] + filled + (f"?{whole}" if whole else "")


def _with_credentials(url: str, credentials: Credentials) -> str:
    """A following page's address with our own credentials in the query, whether or not the other side repeats them."""
    if not credentials.query:
        return url
    head, _, query = url.partition("#")[0].partition("?")
    kept = [pair for pair in query.split("&") if pair and unquote(pair.partition("=")[0]) not in credentials.query]
    return f"{head}?{'&'.join([*kept, *(f'{name}={value}' for name, value in _query_credentials(credentials))])}"


def _query_credentials(credentials: Credentials) -> list[tuple[str, str]]:
    return [(quote(name, safe=""), quote(value, safe="")) for name, value in credentials.query.items()]


def _segment(tool: ToolDefinition, template: str, parameters: list[HttpParameter], given: JsonObject) -> str:
    """One path segment with its placeholders filled: one segment again, neither empty nor dotted."""
    if "{" not in template:
        return template
    by_name = {parameter.name: parameter for parameter in parameters if parameter.place == "path"}

    def fill(match: re.Match[str]) -> str:
        parameter = by_name.get(match[1])
        if parameter is None:
            raise _input_failure(tool, f"the path needs an argument for {match[1]!r}")
        return path_piece(parameter, given[parameter.argument])

    filled = _PLACEHOLDER.sub(fill, template)
    if filled != template and filled in {"", ".", ".."}:
        raise _input_failure(tool, f"path argument {template} would be {filled!r}, which leads to another path")
    return filled


def _cookies(parameters: list[HttpParameter], given: JsonObject, credentials: Credentials) -> str:
    pairs = [pair for p in parameters if p.place == "cookie" for pair in query_pairs(p, given[p.argument])]
    pairs = [(name, value) for name, value in pairs if name not in credentials.cookies]
    return "; ".join(f"{name}={value}" for name, value in [*pairs, *credentials.cookies.items()])


def _check_headers(tool: ToolDefinition, headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if _FORBIDDEN_IN_HEADERS.search(value):
            raise _input_failure(tool, f"header {name!r} would hold a line break or another control character")


def _input_failure(tool: ToolDefinition, problem: str) -> CallFailed:
    message = f"tool {tool.name!r} was not called: {problem}; correct the arguments and call again"
    return CallFailed(error(ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH, message), sent=False)
