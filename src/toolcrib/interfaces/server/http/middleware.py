"""The middleware of every request: error responses, the limit of the body's size, and authentication.

It is plain ASGI, so no part of the application is reachable without it. All paths except listed ones require a key.
"""

import asyncio
import logging
import re
import secrets
from collections.abc import Set as AbstractSet
from typing import Final

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolcrib.contracts import PermissionDenied, Principal, ToolcribError, Unauthenticated
from toolcrib.interfaces.server.http.access_tokens import AccessTokens, is_access_token
from toolcrib.interfaces.server.http.errors import error_response, explain
from toolcrib.interfaces.server.http.keys import Authenticator

_logger = logging.getLogger(__name__)

_STOPPING: Final = (
    "the server stops; a started run continues when the store is served again: GET /api/v1/executions finds it"
)
_NO_KEY: Final = "this path needs an API key; send the header 'Authorization: Bearer tcb_…'"


def _header(scope: Scope, name: bytes) -> str:
    """The first header of a name, in lower case as ASGI has it; empty if there is none."""
    for given, value in scope["headers"]:
        if given == name:
            return value.decode("latin-1")
    return ""


class Failures:
    """Responds to each unhandled exception: with the status of its class, or with the id under which it is logged."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and catch what comes back."""
        started = False

        async def watch(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watch)
        except ToolcribError as error:
            if started or scope["type"] != "http":
                raise
            await explain(error)(scope, receive, send)
        except Exception:  # the edge of the process: whatever it was, the caller gets an answer and nothing internal
            if started or scope["type"] != "http":
                raise
            incident = secrets.token_hex(6)
            _logger.exception("request %s %s failed; incident %s", scope["method"], scope["path"], incident)
            message = f"the server failed; its operator finds the cause in the log under incident {incident}"
            await error_response(500, "internal_error", message, {"incident": incident})(scope, receive, send)


class ShutdownResponses:
    """Ends the requests that a stopping server cancels: with a 503 if no response has started, else silently.

    Only for the outermost place in a server's own tasks; anywhere else it would swallow a caller's cancellation.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and catch the cancellation."""
        started = False

        async def watch(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watch)
        except asyncio.CancelledError:
            if not started and scope["type"] == "http":
                headers = {"Retry-After": "1", "Connection": "close"}
                await error_response(503, "unavailable", _STOPPING, headers=headers)(scope, receive, send)


class BodyCap:
    """Refuses bodies above a number of bytes, as announced or as they arrive.

    Args:
        app: What is behind it.
        limit: Bytes of a body.
        wider: The bytes instead, of paths that a pattern fits.
    """

    def __init__(self, app: ASGIApp, limit: int, wider: tuple[re.Pattern[str], int]) -> None:
        self._app = app
        self._limit = limit
        self._wide_paths, self._wide_limit = wider

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a body that is counted."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._wide_limit if self._wide_paths.fullmatch(scope["path"]) else self._limit
        announced = _header(scope, b"content-length")
        if announced.isdecimal() and int(announced) > limit:
            response = error_response(413, "content_too_large", _too_large(limit), headers={"Connection": "close"})
            await response(scope, receive, send)
            return
        received = 0

        async def count() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise HTTPException(413, _too_large(limit), {"Connection": "close"})
            return message

        await self._app(scope, count, send)


def _too_large(limit: int) -> str:
    return f"the body is larger than {limit} bytes; send less, or a URL instead of a document"


class Authentication:
    """Names the caller in `request.state.principal`; without a valid key there is only what is open to everybody.

    Args:
        app: The next in line.
        authenticate: Tells who holds a bearer token.
        open_paths: Paths that need no key.
        open_prefixes: What paths begin with that have a proof of their own, or are for everybody.
        tokens: Recognises the access tokens of an authorization server; null if there is none.
        token_prefix: What paths begin with on which such tokens count.
    """

    def __init__(
        self,
        app: ASGIApp,
        authenticate: Authenticator,
        *,
        open_paths: AbstractSet[str],
        open_prefixes: tuple[str, ...],
        tokens: AccessTokens | None,
        token_prefix: str,
    ) -> None:
        self._app = app
        self._authenticate = authenticate
        self._open_paths = open_paths
        self._open_prefixes = open_prefixes
        self._tokens = tokens
        self._token_prefix = token_prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on the requests of known callers."""
        path = scope.get("path", "").removeprefix(scope.get("root_path", ""))
        if scope["type"] != "http" or path in self._open_paths or path.startswith(self._open_prefixes):
            await self._app(scope, receive, send)
            return
        scheme, _, token = _header(scope, b"authorization").partition(" ")
        given = token.strip() if scheme.lower() == "bearer" else ""
        if self._tokens is not None and (path == self._token_prefix or path.startswith(f"{self._token_prefix}/")):
            await self._with_tokens(self._tokens, given, scope, receive, send)
            return
        scope.setdefault("state", {})["principal"] = await self._principal(given)
        await self._app(scope, receive, send)

    async def _principal(self, given: str) -> Principal:
        if not given:
            raise Unauthenticated(_NO_KEY)
        return await self._authenticate(given)

    async def _with_tokens(self, tokens: AccessTokens, given: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request with an access token or a key; a refusal says where tokens come from."""
        is_token = is_access_token(given)
        try:
            principal = await (tokens.authenticate(given) if is_token else self._principal(given))
        except Unauthenticated as refusal:
            response = explain(refusal, tokens.challenge("invalid_token" if given else None))
            await response(scope, receive, send)
            return
        if is_token and not principal.grants:
            needed = ", ".join(tokens.scopes_needed()) or "none; the operator has to set authorization.scopes"
            refusal = PermissionDenied(f"the access token has no scope that counts here; those that do: {needed}")
            await explain(refusal, tokens.challenge("insufficient_scope"))(scope, receive, send)
            return
        scope.setdefault("state", {})["principal"] = principal
        await self._app(scope, receive, send)
