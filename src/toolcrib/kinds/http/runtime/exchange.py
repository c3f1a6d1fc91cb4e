"""Makes the requests of one call: adds credentials, sends under the egress policy, returns 2xx responses or errors.

Credentials of the provider are obtained again when a fetched token was refused.
"""

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from toolcrib.contracts import (
    Attachment,
    EgressDenied,
    ErrorCode,
    InvalidInput,
    Json,
    JsonObject,
    Principal,
    ProviderDefinition,
    Reason,
    SecurityRequirement,
    Unavailable,
)
from toolcrib.contracts.base.media import attachment_of, input_of, is_true
from toolcrib.core.executor import BlobSink, CallFailed, Clock, Dispatch, Outcome
from toolcrib.core.providers import Credentials, ProviderAccess
from toolcrib.core.providers.request_errors import count_request, network_failure, request_limit_s
from toolcrib.infrastructure.net import HttpResponse, HttpSession, NetworkError, Timeouts
from toolcrib.infrastructure.net.origins import Origin, origin_of
from toolcrib.kinds.http.runtime.failures import bad_response, status_failure
from toolcrib.kinds.http.runtime.requests import Target, build_request
from toolcrib.kinds.http.runtime.response_bodies import BadBody, describe_file, read_body, visible_headers
from toolcrib.kinds.http.runtime.response_forms import OversizedPayload, read_as


@dataclass(frozen=True, slots=True)
class Access:
    """One operation's way to its credentials."""

    provider: ProviderDefinition | None
    """Null for an operation without credentials."""
    url: str
    security: Sequence[SecurityRequirement] | None
    principal: Principal
    providers: ProviderAccess = field(repr=False)

    @property
    def origins(self) -> frozenset[Origin | None]:
        """Where a following page may be: the operation's own origin, and its provider's."""
        base = None if self.provider is None else self.provider.address
        return frozenset({origin_of(self.url), origin_of(base or self.url)} - {None})

    async def credentials(self) -> Credentials:
        """What a request has to carry now; see `ProviderAccess.credentials`."""
        if self.provider is None:
            return Credentials()
        return await self.providers.credentials(self.provider, self.url, self.principal, self.security)

    def with_reconnect_hint(self, failure: CallFailed, credentials: Credentials) -> CallFailed:
        """A failure, which says who has to act where a person's connection was refused for good."""
        if failure.http_status == 401 and credentials.consented and self.provider is not None:
            name = self.provider.name
            message = f"{failure.error.message}; reconnect with `toolcrib provider connect {name}`"
            details = {**(failure.error.details or {}), "reason": Reason.RECONNECT_REQUIRED.value}
            failure.error = failure.error.model_copy(update={"message": message, "details": details})
        return failure

    def forget(self, credentials: Credentials) -> bool:
        """Discard refused credentials; returns whether they include tokens that can be fetched again."""
        return self.providers.forget(credentials)


MAX_PAGE_WAIT_S: Final = 10.0
"""Seconds that a page in the middle of a list may wait for a rate limit."""

_DEFAULT_PAGE_WAIT_S: Final = 1.0
_SERVER_ERROR: Final = 500
_CONNECT_S: Final = 30.0
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_ABOUT_A_FILE: Final = 1_000
"""Bytes that the description of a file may take beside its base64."""


@dataclass(slots=True)
class Exchange:
    """The requests of one call and what they share."""

    dispatch: Dispatch
    target: Target
    access: Access
    session: HttpSession
    blob_sink: BlobSink
    clock: Clock
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Of all credentials that were used so far."""
    is_answered: bool = False
    """Whether there was a response to a request."""

    async def send(self, arguments: JsonObject, at: str | None = None) -> HttpResponse:
        """One request with an answer of 2xx; a second one if a fetched token was refused, with a new token.

        Args:
            arguments: The arguments of the operation.
            at: The address of a following page, instead of the operation's.

        Raises:
            CallFailed: The budget, the policy, the network or the other side refused.
        """
        credentials = await self.access.credentials()
        response = await self._ask(arguments, at, credentials)
        if response.status == 401 and self.access.forget(credentials):
            response = await self._ask(arguments, at, await self.access.credentials())
        if not 200 <= response.status < 300:
            failure = status_failure(self.target.tool, response, self.clock.now(), again=self._is_again())
            raise self.access.with_reconnect_hint(failure, credentials)
        return response

    async def send_again_once(self, arguments: JsonObject, at: str | None) -> HttpResponse:
        """As `send`, but a rate limit is waited out once if the wait is short, and so is a passing fault of a read."""
        try:
            return await self.send(arguments, at)
        except CallFailed as failure:
            retry_after_s = failure.error.retry_after_s
            wait = _DEFAULT_PAGE_WAIT_S if retry_after_s is None else retry_after_s
            passing = failure.error.code is ErrorCode.NETWORK_ERROR or (failure.http_status or 0) >= _SERVER_ERROR
            passing = passing and self.target.tool.side_effects == "reads"
            if not (passing or failure.error.code is ErrorCode.RATE_LIMIT) or wait > MAX_PAGE_WAIT_S:
                raise
        await self.clock.sleep(wait)
        return await self.send(arguments, at)

    async def _ask(self, arguments: JsonObject, at: str | None, credentials: Credentials) -> HttpResponse:
        tool = self.target.tool
        self.secrets = tuple(dict.fromkeys((*self.secrets, *credentials.secrets)))
        request = build_request(self.target, arguments, credentials, at)
        count_request(self.dispatch)
        limit_s = min(request_limit_s(tool, self.access.provider), self._caller_timeout_s())
        try:
            response = await self.session.request(
                request.method,
                request.url,
                headers=request.headers,
                body=request.body,
                timeout=Timeouts(connect_s=min(limit_s, _CONNECT_S), read_idle_s=limit_s, total_s=limit_s),
                follow_redirects=request.method in _SAFE,
                tls=credentials.tls,
            )
        except (EgressDenied, NetworkError, InvalidInput) as problem:
            raise network_failure(tool, problem) from None
        self.is_answered = True
        return response

    def _is_again(self) -> bool:
        """Whether the same call was sent before, in this process or another one."""
        return self.dispatch.attempt > 1 or self.dispatch.context.attempt > 1

    def _caller_timeout_s(self) -> float:
        """Seconds that the caller gives the request, where the tool lets it say so."""
        timeout_ms = self.dispatch.input.get(self.target.implementation.timeout_argument or "")
        return timeout_ms / 1000 if isinstance(timeout_ms, int | float) and timeout_ms > 0 else math.inf

    def read(self, response: HttpResponse) -> Json | bytes:
        """The body of a page: JSON, or bytes.

        Raises:
            CallFailed: It is not what it claims to be.
        """
        promised = self.target.tool.output_schema or {}
        try:
            return read_body(response, as_text=promised.get("type") == "string")
        except BadBody as problem:
            raise bad_response(self.target.tool, response, str(problem)) from None

    async def outcome(self, response: HttpResponse) -> Outcome:
        """The outcome of a call with one request: the response in the form that the tool declares.

        Raises:
            CallFailed: The answer has not that form.
        """
        tool = self.target.tool
        as_text = (tool.output_schema or {}).get("type") == "string"
        try:
            reading = await read_as(self.target.implementation.response, response, as_text=as_text)
        except BadBody as problem:
            raise bad_response(tool, response, str(problem)) from None
        if isinstance(reading.output, bytes):
            return await self._file(response, reading.output, reading.warnings)
        warnings, attachments = list(reading.warnings), list[Attachment]()
        for kept in reading.kept:
            try:
                attachments.append(await self._keep(kept))
            except Unavailable as problem:
                warnings.append(f"the whole {kept.kind} ({len(kept.data)} bytes) could not be kept: {problem}")
        return self.make_outcome(response, reading.output, warnings=warnings, attachments=tuple(attachments))

    def make_outcome(
        self,
        response: HttpResponse,
        output: Json,
        *,
        warnings: Sequence[str] = (),
        attachments: tuple[Attachment, ...] = (),
        **metadata: Json,
    ) -> Outcome:
        """An output with what accompanies it."""
        notes: JsonObject = {"warnings": list(warnings)} if warnings else {}
        return Outcome(
            output,
            http_status=response.status,
            metadata={"headers": visible_headers(response), **metadata, **notes},
            attachments=attachments,
            secrets=self.secrets,
        )

    async def _file(self, response: HttpResponse, data: bytes, warnings: Sequence[str]) -> Outcome:
        """Bytes: in the output as base64 if they fit in there, for other tools, else in a blob, as an attachment.

        What models can be shown is an attachment in any case.
        """
        file = describe_file(response)
        fits = len(data) * 4 / 3 + _ABOUT_A_FILE <= self.target.tool.max_output_bytes
        if fits:
            file = file.model_copy(update={"base64": base64.b64encode(data).decode()})
        output = file.model_dump(mode="json")
        if fits and (input_of(file.media_type) == "text" or not is_true(data, file.media_type)):
            return self.make_outcome(response, output, warnings=warnings)
        kind = "image" if file.media_type.startswith("image/") else "blob"
        try:
            kept = await self._keep(OversizedPayload(kind, data, file.media_type), file.filename)
        except Unavailable as problem:
            lost = f"the file ({len(data)} bytes) could not be kept: {problem}"
            return self.make_outcome(response, output, warnings=[*warnings, lost])
        return self.make_outcome(response, output, warnings=warnings, attachments=(kept,))

    async def _keep(self, kept: OversizedPayload, name: str | None = None) -> Attachment:
        owner = self.dispatch.context.principal.id
        await self.blob_sink.put(
            kept.data, realm=self.dispatch.tool.realm, made_by=owner, content_type=kept.content_type
        )
        return attachment_of(kept.data, kept.content_type, kind=kept.kind, name=name)
