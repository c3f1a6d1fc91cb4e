"""The requests of one call: counted, sent through the one way out, and turned into answers of 2xx or failed calls."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from toolcrib.contracts import (
    EgressDenied,
    ErrorCode,
    HttpImplementation,
    InvalidInput,
    Json,
    JsonObject,
    ToolDefinition,
)
from toolcrib.executor import CallFailed, Clock, Dispatch, Outcome, error
from toolcrib.net import HttpResponse, HttpSession, NetworkError, Timeouts
from toolcrib.providers import Credentials
from toolcrib.runtimes.http.answers import BadBody, read_body, shown_headers
from toolcrib.runtimes.http.failures import answered, bad_response, unanswered
from toolcrib.runtimes.http.requests import build_request

MAX_PAGE_WAIT_S: Final = 10.0
"""Seconds that a page in the middle of a list may wait for a rate limit."""

_DEFAULT_PAGE_WAIT_S: Final = 1.0
_CONNECT_S: Final = 30.0
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Exchange:
    """The requests of one call and what they share."""

    dispatch: Dispatch
    tool: ToolDefinition
    implementation: HttpImplementation
    headers: Mapping[str, str] = field(repr=False)
    credentials: Credentials
    session: HttpSession
    clock: Clock

    async def send(self, arguments: JsonObject) -> HttpResponse:
        """One request with an answer of 2xx.

        Raises:
            CallFailed: The budget, the policy, the network or the other side refused.
        """
        request = build_request(
            self.tool,
            self.implementation,
            arguments,
            idempotency_key=self.dispatch.idempotency_key,
            headers=self.headers,
            credentials=self.credentials,
        )
        shortage = self.dispatch.context.budget.take_request()
        if shortage is not None:
            raise CallFailed(error(ErrorCode.POLICY_DENIED, shortage.reason, f"{self.tool.name!r}: {shortage.message}"))
        limit_s = self.tool.timeout_s
        try:
            response = await self.session.request(
                request.method,
                request.url,
                headers=request.headers,
                body=request.body,
                timeout=Timeouts(connect_s=min(limit_s, _CONNECT_S), read_idle_s=limit_s, total_s=limit_s),
                follow_redirects=request.method in _SAFE,
            )
        except (EgressDenied, NetworkError, InvalidInput) as problem:
            raise unanswered(self.tool, problem) from None
        if not 200 <= response.status < 300:
            raise answered(self.tool, response, self.clock.now())
        return response

    async def send_again_once(self, arguments: JsonObject) -> HttpResponse:
        """As `send`, but a refusal by rate limit is waited out once, if the wait is short."""
        try:
            return await self.send(arguments)
        except CallFailed as failure:
            asked = failure.error.retry_after_s
            wait = _DEFAULT_PAGE_WAIT_S if asked is None else asked
            if failure.error.code is not ErrorCode.RATE_LIMIT or wait > MAX_PAGE_WAIT_S:
                raise
        await self.clock.sleep(wait)
        return await self.send(arguments)

    def read(self, response: HttpResponse) -> Json:
        """The answer's body.

        Raises:
            CallFailed: It is not what it claims to be.
        """
        try:
            return read_body(response)
        except BadBody as problem:
            raise bad_response(self.tool, response, str(problem)) from None

    def outcome(self, response: HttpResponse, output: Json, **metadata: Json) -> Outcome:
        """What the call brings back."""
        return Outcome(
            output,
            http_status=response.status,
            metadata={"headers": shown_headers(response), **metadata},
            secrets=self.credentials.secrets,
        )
